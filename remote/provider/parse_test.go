package provider

import (
	"strings"
	"testing"
	"unicode"
)

func TestParseState(t *testing.T) {
	for word, want := range map[string]State{
		"Running": Running, "ACTIVE": Running, "运行中": Running,
		"SHUTOFF": Stopped, "powered off": Stopped, "STOP_CHARGING": Stopped,
		"Terminated": Gone, "does not exist": Gone,
		"Shutting-Down": Changing, "PROVISIONING": Changing,
		"": Unknown, "error": Unknown, "not running": Unknown, "paused": Unknown,
	} {
		if got := ParseState(word); got != want {
			t.Errorf("%q is %s, want %s", word, got, want)
		}
	}
	seen := map[string]State{}
	for state, list := range words {
		for w := range strings.FieldsSeq(list) {
			if other, twice := seen[w]; twice {
				t.Errorf("%q means both %s and %s", w, state, other)
			}
			seen[w] = state
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	for _, s := range []string{"running", `{"state":"stopped","started_at":"2026-11-30T10:00:00Z","billed":true}`, "", "{", `{"state":1}`, "\x1b[31m"} {
		f.Add([]byte(s), 0)
		f.Add([]byte(s), exitGone)
	}
	f.Fuzz(func(t *testing.T, out []byte, code int) {
		s, err := parseStatus(out, code)
		if err == nil && s.State == "" {
			t.Error("no state and no error")
		}
		if strings.ContainsFunc(s.Detail, unicode.IsControl) {
			t.Errorf("%q holds control characters", s.Detail)
		}
	})
}

func FuzzParseLists(f *testing.F) {
	for _, s := range []string{`[{"kind":"disk","id":"d","per_month":"1.2","currency":"USD"}]`, `{"id":"s"}`, "snap-1", "", "[]", "null"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		if list, err := parseLeftovers(out); err == nil {
			for _, l := range list {
				if l.Kind == "" || l.ID == "" || strings.ContainsAny(l.PerMonth, "eE-+/") {
					t.Errorf("%+v", l)
				}
			}
		}
		if s, err := parseSnapshot(out, "name"); err == nil && (s.ID == "" || strings.ContainsFunc(s.ID, unicode.IsControl)) {
			t.Errorf("%+v", s)
		}
	})
}
