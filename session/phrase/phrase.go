// Package phrase is what session says to a person, as data: ids with arguments.
// String is the English text, which commands and JSON print; a screen in another
// language has its own templates for the same ids.
//
//	phrase.Say("job.failed", "train", 1)          "job train failed with exit code 1"
//	phrase.Count("alert.idle.files", 12)          " and holds 12 files that exist nowhere else"
//	phrase.Say("release.unchecked").Of(err)        "could not be checked: …"
package phrase

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rentop/remote"
)

// ID names a template. The one that begins with another and ".1" is the
// singular of it, for languages that have one.
type ID string

// plain is the id of what has no translation: a library's words, a name.
const plain ID = ""

// Phrase is an id of the list in en.go with its arguments: formatted, and clean
// of what an instance could have put into them.
type Phrase struct {
	ID   ID
	Args []string
}

// Text is phrases, one behind the other. The zero value is no text.
type Text []Phrase

// Say is one phrase. An id that is not in the list is shown as it is; a test sees
// to it that there is none.
func Say(id ID, args ...any) Text {
	p := Phrase{ID: id}
	for _, a := range args {
		p.Args = append(p.Args, remote.Clean(fmt.Sprint(a)))
	}
	return Text{p}
}

// Count is Say with n as the first argument, in the singular where n is 1.
func Count(id ID, n int, more ...any) Text {
	if n == 1 {
		id += ".1"
	}
	return Say(id, append([]any{n}, more...)...)
}

// Plain is a text that is the same in every language.
func Plain(s string) Text {
	if s = remote.Clean(s); s == "" {
		return nil
	}
	return Text{{plain, []string{s}}}
}

// Word is one word of a closed list, as the id prefix+w where there is one: a list
// that another package may have grown.
func Word(prefix ID, w string) Text {
	if _, ok := english[prefix+ID(w)]; ok {
		return Say(prefix + ID(w))
	}
	return Plain(w)
}

// Then puts more behind a text.
func (t Text) Then(more ...Text) Text { return slices.Concat(append([]Text{t}, more...)...) }

// Of puts a library's own words behind a text.
func (t Text) Of(err error) Text { return t.Then(Plain(err.Error())) }

// List joins texts with commas; those that are empty are left out.
func List(parts ...Text) Text {
	var out Text
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, Phrase{ID: "comma"})
		}
		out = append(out, p...)
	}
	return out
}

// In writes a text with the templates of a language: fmt's %s and %[n]s for the
// arguments. A singular that it does not have is written as the plural.
func (t Text) In(templates map[ID]string) string {
	var b strings.Builder
	for _, p := range t {
		template, ok := templates[p.ID]
		if !ok {
			template, ok = templates[ID(strings.TrimSuffix(string(p.ID), ".1"))]
		}
		switch {
		case ok && !strings.Contains(template, "%"): // a singular may leave its number out
			b.WriteString(template)
		case ok:
			args := make([]any, len(p.Args))
			for i, a := range p.Args {
				args[i] = a
			}
			fmt.Fprintf(&b, template, args...)
		case p.ID == plain:
			b.WriteString(strings.Join(p.Args, " "))
		default:
			fmt.Fprint(&b, p.ID, p.Args)
		}
	}
	return b.String()
}

// String is the text in English.
func (t Text) String() string { return t.In(english) }

// MarshalText makes JSON hold the English text.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// English are the templates of every id, for a test of another language's.
func English() map[ID]string { return maps.Clone(english) }
