package themes

import (
	"reflect"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func env(kv ...string) func(string) string {
	return func(k string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == k {
				return kv[i+1]
			}
		}
		return ""
	}
}

func TestEveryNameLoads(t *testing.T) {
	for _, n := range Names() {
		if _, err := Load(n); err != nil {
			t.Error(err)
		}
	}
	if _, err := Load("neon"); err == nil {
		t.Error("an unknown theme must be refused")
	}
}

func TestChoose(t *testing.T) {
	utf := []string{"LANG", "en_US.UTF-8", "TERM", "xterm-256color"}
	cases := []struct {
		name, theme string
		env         []string
		want        string
		depth       Depth
		ask         bool
	}{
		{"auto asks", "", utf, "auto", Colours256, true},
		{"the environment wins", "light", append([]string{"RENTOP_THEME", "dark"}, utf...), "dark", Colours256, false},
		{"named does not ask", "light", utf, "light", Colours256, false},
		{"truecolor in tmux", "", append([]string{"COLORTERM", "truecolor"}, utf...), "auto", TrueColour, true},
		{"NO_COLOR with any value", "dark", append([]string{"NO_COLOR", "yes"}, utf...), "mono", NoColour, false},
		{"empty NO_COLOR is none", "dark", append([]string{"NO_COLOR", ""}, utf...), "dark", Colours256, false},
		{"few colours follow the palette", "auto", []string{"TERM", "xterm"}, "16", Colours16, false},
		{"mono by name", "mono", utf, "mono", NoColour, false},
	}
	for _, c := range cases {
		got, err := Choose(c.theme, "", env(c.env...))
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got.Theme.Name != c.want || got.Depth != c.depth || got.Ask != c.ask {
			t.Errorf("%s: got %s depth %d ask %v", c.name, got.Theme.Name, got.Depth, got.Ask)
		}
	}
}

func TestGlyphsFollowTheLocale(t *testing.T) {
	cases := []struct {
		env  []string
		want string
	}{
		{[]string{"LANG", "zh_CN.UTF-8"}, "unicode"},
		{[]string{"LC_ALL", "C", "LANG", "zh_CN.UTF-8"}, "ascii"},
		{nil, "unicode"},
		{[]string{"TERM", "linux", "LANG", "en_US.UTF-8"}, "ascii"},
	}
	for _, c := range cases {
		g, err := LoadGlyphs("auto", env(c.env...))
		if err != nil || g.Name != c.want {
			t.Errorf("%v: %s, %v; want %s", c.env, g.Name, err, c.want)
		}
	}
}

// Every glyph of both sets is one cell wide by both ways of counting, but for
// the ASCII name of the Enter key.
func TestGlyphsAreOneCellWide(t *testing.T) {
	for _, g := range []Glyphs{unicodeGlyphs(), asciiGlyphs()} {
		v := reflect.ValueOf(g)
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			if name == "Name" || name == "Enter" {
				continue
			}
			var all []string
			if f.Kind() == reflect.String {
				all = []string{f.String()}
			} else {
				for j := range f.Len() {
					if s := f.Index(j).String(); s != "" {
						all = append(all, s)
					}
				}
			}
			for _, s := range all {
				if ansi.StringWidth(s) != 1 || ansi.StringWidthWc(s) != 1 {
					t.Errorf("%s.%s: %q is not one cell wide", g.Name, name, s)
				}
			}
		}
	}
}

// In mono no style has a colour.
func TestMonoHasNoColour(t *testing.T) {
	v := reflect.ValueOf(mono())
	for i := range v.NumField() {
		if s, ok := v.Field(i).Interface().(Style); ok && (s.FG != 0 || s.BG != 0) {
			t.Errorf("mono.%s has a colour", v.Type().Field(i).Name)
		}
	}
}
