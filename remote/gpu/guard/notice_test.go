package guard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var takenBack = Rule{Kind: Reclaim, Script: "ask"}

func TestNoticeOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		out   string
		err   error
		given bool
		at    string
		says  string
	}{
		"nothing":              {},
		"AWS":                  {out: `{"action": "terminate", "time": "2026-11-30T12:03:00Z"}`, given: true, at: "12:03:00"},
		"a time alone":         {out: "2026-11-30T12:05:00Z", given: true, at: "12:05:00"},
		"Tencent's, in UTC+8":  {out: "2026-11-30 20:05:00\n", given: true, at: "12:05:00"},
		"a time on a page":     {out: "<p>served 2026-11-30T12:05:00Z</p>", says: "not understood"},
		"another's JSON":       {out: `{"time": "2026-11-30T12:05:00Z"}`, says: "not understood"},
		"not an action of it":  {out: `{"action": "none", "time": "2026-11-30T12:05:00Z"}`, says: "not understood"},
		"any page":             {out: "<html>log in to the hotel</html>", says: "not understood"},
		"no such day":          {out: "2026-13-39T12:05:00Z", says: "not understood"},
		"nobody":               {out: "nobody answers", err: errors.New("exit status 1"), says: "nobody answers"},
		"nothing said":         {err: errors.New("it did not end within 4s"), says: "did not end"},
		"an answer that fails": {out: "2026-11-30T12:05:00Z", err: errors.New("exit status 1"), says: "2026"},
	} {
		t.Run(name, func(t *testing.T) {
			n := noticeOf(c.out, c.err)
			if !n.Asked || n.Given != c.given || c.given && n.At.Format(time.TimeOnly) != c.at || !strings.Contains(n.Err, c.says) || (n.Err == "") != (c.says == "") {
				t.Errorf("%+v", n)
			}
		})
	}
}

func FuzzNotice(f *testing.F) {
	f.Add(`{"action":"stop","time":"2026-11-30T12:03:00Z"}`)
	f.Add("2026-11-30 20:03:00")
	f.Fuzz(func(t *testing.T, out string) {
		if n := noticeOf(out, nil); n.Given && (n.Err != "" || n.At.IsZero()) {
			t.Errorf("%+v", n)
		}
	})
}

// TestAsker: one question at a time, none of another spec is believed, and what was
// announced stays.
func TestAsker(t *testing.T) {
	t.Parallel()
	a := asker{answers: make(chan noticed)}
	said := "2026-11-30T12:03:00Z"
	asked := 0
	run := func(context.Context, script) (string, error) { return said, nil }
	spec := &Spec{ID: "first000", Rules: []Rule{takenBack}}
	ask := func(mono time.Duration) { asked++; a.ask(t.Context(), spec, mono, run) }
	ask(time.Hour)
	if !a.asking {
		t.Fatal("it asks at once")
	}
	ask(time.Hour + time.Minute) // the first has not answered
	first := <-a.answers
	spec = &Spec{ID: "second00", Rules: []Rule{takenBack}}
	a.ask(t.Context(), spec, time.Hour+2*time.Minute, run)
	if a.took(first); a.heard.Given {
		t.Error("an answer to another spec's question was believed")
	}
	ask(time.Hour + 3*time.Minute)
	a.took(<-a.answers)
	said = ""
	ask(time.Hour + 4*time.Minute)
	a.took(<-a.answers)
	if !a.heard.Given {
		t.Error("what was announced was taken back")
	}
	if ask(time.Hour + 4*time.Minute + time.Second); a.asking {
		t.Error("it asked after a second")
	}
	if a.ask(t.Context(), &Spec{ID: "third000"}, 2*time.Hour, run); a.asking {
		t.Error("it asked without a rule")
	}
}

// TestReclaimed: what can be saved is saved at once and again until it succeeds; the
// action of the other rules is not done, nor is it done after another rule's.
func TestReclaimed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 3, 0, 0, time.UTC)
	announce := func(b *bench) { b.w.notice = Notice{Asked: true, Given: true, At: at} }
	for name, c := range map[string]struct {
		rules []Rule
		then  string
		save  string
		fail  int
		ran   []string
		phase Phase
	}{
		"saved at once":               {[]Rule{takenBack, {Kind: At, Seconds: 7200}}, "x", "y", 0, []string{"save"}, Done},
		"a save that comes good":      {[]Rule{takenBack}, "x", "y", 3, []string{"save", "save", "save", "save"}, Done},
		"nothing to save is told":     {[]Rule{takenBack}, "x", "", 0, nil, Done},
		"after another rule was done": {[]Rule{{Kind: At, Seconds: 1}, takenBack}, "", "y", 0, []string{"save", "save"}, Done},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Spec{Rules: c.rules, Then: c.then, Save: c.save})
			b.fail["save"] = c.fail
			b.pass(10 * time.Second)
			announce(b)
			b.pass(30 * time.Second)
			if !slices.Equal(b.ran, c.ran) || b.st.Phase != c.phase || b.st.Trip == nil || b.st.Trip.Kind != Reclaim || !b.st.Trip.Due.Equal(at) {
				t.Errorf("ran %q, %s %+v\n%q", b.ran, b.st.Phase, b.st.Trip, b.journal)
			}
		})
	}
}

// TestReclaimRefused: a guard that cannot hear of it is not armed for it.
func TestReclaimRefused(t *testing.T) {
	t.Parallel()
	w := newWorld()
	watch, err := NewWatch([]Rule{takenBack}, w.mono, w.wall)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []Notice{{}, {Asked: true, Err: "nobody answers"}, {Asked: true}} {
		m := w.moment()
		m.Notice = n
		why, soon, refused := watch.Refuse(m)
		if good := n.Asked && n.Err == ""; refused == good || refused && (!soon || why.Key != "noanswer") {
			t.Errorf("%+v: %v %v %v", n, why, soon, refused)
		}
	}
}
