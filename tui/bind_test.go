package tui

import (
	"strings"
	"testing"
)

func TestCheckKeys(t *testing.T) {
	for _, c := range []struct {
		action, key, want string
	}{
		{"release", "R", ""},
		{"quit", "ctrl+q", ""},
		{"redraw", "f5", ""},
		{"open", "ctrl+alt+enter", ""},
		{"release", "hello", "is no key"},
		{"release", " ", "is no key"},
		{"release", "ctrl+", "is no key"},
		{"relaese", "R", `no action "relaese"`},
		{"col.name", "R", "no action"},
	} {
		action, what := CheckKeys(map[string][]string{c.action: {c.key}})
		if c.want == "" && what != "" || !strings.Contains(what, c.want) || what != "" && action != c.action {
			t.Errorf("%s = %q: %q %q, want %q", c.action, c.key, action, what, c.want)
		}
	}
	if _, what := CheckKeys(map[string][]string{"open": nil}); what == "" {
		t.Error("an action without keys must be refused")
	}
}

// A key that the person gives to an action is taken from the one that had it.
func TestOwnKeyWins(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.opt.Keys = map[string][]string{"costs": {"j"}}
	d.press("j").see("rentop → costs")
}
