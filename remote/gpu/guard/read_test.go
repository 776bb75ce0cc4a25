package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func report(t testing.TB, change func(*State), process string) string {
	st := State{Version: Version, Spec: Spec{Version: Version, ID: "abcdefgh1", Rules: soon}, Phase: Watching, PID: 42, Start: 7, Box: "boot/1", Now: noon}
	if change != nil {
		change(&st)
	}
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("rentop-guard 1\nnow %d\nbox boot/1\n%sstate %s\nentry {\"what\":\"armed\",\"at\":\"2026-11-30T12:00:00Z\"}\nrentop-guard-end\n", noon.Unix()+3, process, b)
}

// TestParseReport: armed is the very process, in this boot, that wrote a moment ago.
func TestParseReport(t *testing.T) {
	t.Parallel()
	const living = "process 42 7\n"
	for name, c := range map[string]struct {
		text                 string
		armed, gone, stopped bool
		bad                  bool
	}{
		"armed":                       {text: report(t, nil, living), armed: true},
		"another process of that PID": {text: report(t, nil, "process 42 8\n"), gone: true},
		"no process":                  {text: report(t, nil, ""), gone: true},
		"another boot":                {text: report(t, func(s *State) { s.Box = "boot/2" }, living), gone: true},
		"it has not written for long": {text: report(t, func(s *State) { s.Now = noon.Add(-2 * time.Minute) }, living)},
		"told to end":                 {text: strings.Replace(report(t, nil, ""), "box boot/1\n", "box boot/1\noff\n", 1)},
		"it stopped the instance":     {text: report(t, func(s *State) { s.Box, s.Phase, s.Spec.Stops = "boot/0", Stopping, true }, ""), stopped: true},
		"done":                        {text: report(t, func(s *State) { s.Phase = Done }, "")},
		"refused":                     {text: report(t, func(s *State) { s.Phase = Refused }, "")},
		"none":                        {text: "rentop-guard 1\nnow 5\nbox b\nrentop-guard-end\n"},
		"cut":                         {text: strings.TrimSuffix(report(t, nil, living), "rentop-guard-end\n"), bad: true},
		"noise":                       {text: "bash: no job control\n" + report(t, nil, living), bad: true},
		"another version":             {text: report(t, func(s *State) { s.Version = 9 }, living), bad: true},
		"nonsense":                    {text: report(t, func(s *State) { s.Spec.Rules = []Rule{{Kind: "x"}} }, living), bad: true},
		"a full disk":                 {text: "rentop-guard 1\nfail cannot write in ~/.rentop/guard\n", bad: true},
	} {
		r, err := ParseReport([]byte(c.text))
		if (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil && (r.Armed() != c.armed || r.Gone() != c.gone || r.Stopped() != c.stopped) {
			t.Errorf("%s: armed %v, gone %v, stopped %v", name, r.Armed(), r.Gone(), r.Stopped())
		}
	}
}

func FuzzParseReport(f *testing.F) {
	f.Add(report(f, nil, "process 42 7\n"))
	f.Add(report(f, func(s *State) { s.Phase, s.Trip = Waiting, &Trip{Kind: Idle, Error: "\x1b[31m"} }, ""))
	f.Add("rentop-guard 1\nrentop-guard-end\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReport([]byte(text))
		if err != nil {
			return
		}
		if len(r.Journal) > maxEntries {
			t.Errorf("%d entries", len(r.Journal))
		}
		for _, e := range r.Journal {
			if strings.ContainsAny(e.Out+e.Error+e.What, "\x1b\n") {
				t.Errorf("not clean: %+v", e)
			}
		}
		if s := r.State; s != nil {
			if len(s.Rules) > maxRules || strings.ContainsAny(s.Fault+s.Source+string(s.Phase)+s.Why.Key, "\x1b\n") {
				t.Errorf("not clean: %+v", s)
			}
			if r.Armed() && !r.Alive {
				t.Error("armed without a process")
			}
		}
	})
}
