// Package text is every sentence of the screens in every language, by short ids.
package text

import (
	"fmt"
	"strings"
	"time"

	"rentop/session/phrase"
)

// Lang is one language's catalogue.
type Lang struct {
	Name string // "en", "zh"
	m    map[string]string
	said map[phrase.ID]string // templates of what session says
}

// Names lists the languages.
func Names() []string { return []string{"en", "zh"} }

// Load returns a language by name: "en", "zh", or a locale such as "zh_CN.UTF-8".
func Load(name string) (*Lang, error) {
	switch lower := strings.ToLower(name); {
	case strings.HasPrefix(lower, "zh"):
		return &Lang{"zh", chinese(), chinesePhrases()}, nil
	case strings.HasPrefix(lower, "en"):
		return &Lang{"en", english(), phrase.English()}, nil
	}
	return nil, fmt.Errorf("there is no language %q; known are auto, %s", name, strings.Join(Names(), ", "))
}

// Choose resolves a wish: RENTOP_LANG wins over it, and where both are "" or
// "auto" the locale decides, in setlocale(3)'s order; what is not Chinese is
// English.
func Choose(name string, getenv func(string) string) (*Lang, error) {
	if v := getenv("RENTOP_LANG"); v != "" {
		name = v
	}
	if name != "" && !strings.EqualFold(name, "auto") {
		return Load(name)
	}
	for _, k := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		v := getenv(k)
		if v == "" {
			continue
		}
		if l, err := Load(v); err == nil {
			return l, nil
		}
		break
	}
	return Load("en")
}

// T is the text of an id with its arguments. An id that is not there is shown as
// it is; a test sees to it that none is.
func (l *Lang) T(id string, args ...any) string {
	s, ok := l.m[id]
	if !ok {
		return id
	}
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// S is what session says, in this language.
func (l *Lang) S(t phrase.Text) string { return t.In(l.said) }

// Has says whether there is a text of that id.
func (l *Lang) Has(id string) bool { _, ok := l.m[id]; return ok }

// N is T for a count, which stands before the other arguments: id+".1", without
// the count, where n is 1 and the language has it.
func (l *Lang) N(id string, n int, more ...any) string {
	if n == 1 && l.Has(id+".1") {
		return l.T(id+".1", more...)
	}
	return l.T(id, append([]any{n}, more...)...)
}

// Dur is a duration in at most six cells: 42s, 24m, 3h12m, 2d04h. It is the same
// in every language.
func Dur(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d/time.Hour), int(d/time.Minute)%60)
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%dd%02dh", int(d/(24*time.Hour)), int(d/time.Hour)%24)
	}
	return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
}
