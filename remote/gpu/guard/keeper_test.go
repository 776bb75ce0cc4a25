package guard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// bench is a keeper whose scripts, clock and disk are the test's.
type bench struct {
	*keeper
	w       *world
	fail    map[string]int // scripts that fail, how often
	ran     []string
	diskErr error
	disk    State // what is on it
	journal []string
}

func newBench(t *testing.T, spec Spec) *bench {
	t.Helper()
	spec.Version, spec.ID = Version, "abcdefgh1"
	if spec.Save != "" {
		spec.SaveSeconds = 60
	}
	b := &bench{w: newWorld(0), fail: map[string]int{}}
	b.keeper = &keeper{kick: make(chan result, 1)}
	b.run = func(_ context.Context, s script) (string, error) {
		if b.fail[s.name] > 0 {
			b.fail[s.name]--
			return "", errors.New(s.name + " failed")
		}
		return "ok", nil
	}
	b.persist = func(s *State, _ bool) error {
		if b.diskErr == nil {
			b.disk = *s
			if s.Trip != nil {
				trip := *s.Trip
				b.disk.Trip = &trip
			}
		}
		return b.diskErr
	}
	b.note = func(e Entry) error { b.journal = append(b.journal, e.What); return b.diskErr }
	b.now = func() (time.Duration, time.Time) { return b.w.mono, b.w.wall }
	b.st = State{Version: Version, Spec: spec, Phase: Arming, ArmedAt: b.w.wall, ArmedMono: b.w.mono}
	var err error
	if b.watch, err = NewWatch(spec.Rules, b.w.mono, b.w.wall); err != nil {
		t.Fatal(err)
	}
	if b.arm(b.w.moment(), false); b.st.Phase != Watching {
		t.Fatalf("not armed: %+v", b.st)
	}
	return b
}

// pass lets time go by, a second a step, and scripts end within one.
func (b *bench) pass(d time.Duration) {
	for end := b.w.mono + d; b.w.mono < end; {
		b.w.pass(time.Second)
		b.step(context.Background(), b.w.moment())
		for b.st.Phase == Saving || b.st.Phase == Acting {
			b.ran = append(b.ran, map[Phase]string{Saving: "save", Acting: "act"}[b.st.Phase])
			b.ended(context.Background(), <-b.kick)
		}
	}
}

var soon = []Rule{{Kind: At, Seconds: 5}}

func TestKeeper(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec  Spec
		fail  map[string]int
		pass  time.Duration
		ran   []string
		phase Phase
	}{
		"an action, once":              {Spec{Rules: soon, Then: "x"}, nil, time.Hour, []string{"act"}, Done},
		"nothing to do is told":        {Spec{Rules: soon}, nil, time.Hour, nil, Done},
		"save, then the action":        {Spec{Rules: soon, Then: "x", Save: "y"}, nil, time.Hour, []string{"save", "act"}, Done},
		"no action without the save":   {Spec{Rules: soon, Then: "x", Save: "y"}, map[string]int{"save": 99}, 2 * time.Minute, []string{"save", "save", "save", "save"}, Waiting},
		"a save that comes good":       {Spec{Rules: soon, Then: "x", Save: "y"}, map[string]int{"save": 2}, time.Hour, []string{"save", "save", "save", "act"}, Done},
		"a failed action is tried":     {Spec{Rules: soon, Then: "x"}, map[string]int{"act": 2}, time.Hour, []string{"act", "act", "act"}, Done},
		"a stop is believed at first":  {Spec{Rules: soon, Then: "x", Stops: true}, nil, 4 * time.Minute, []string{"act"}, Stopping},
		"to live on is to have failed": {Spec{Rules: soon, Then: "x", Stops: true}, nil, 6 * time.Minute, []string{"act", "act"}, Stopping},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.spec)
			if c.fail != nil {
				b.fail = c.fail
			}
			b.pass(c.pass)
			if !slices.Equal(b.ran, c.ran) || b.st.Phase != c.phase {
				t.Errorf("ran %q, %s; want %q, %s\n%q\n%+v", b.ran, b.st.Phase, c.ran, c.phase, b.journal, b.st.Trip)
			}
		})
	}
}

// TestBackoff: attempts come at longer distances, and never stop coming.
func TestBackoff(t *testing.T) {
	t.Parallel()
	b := newBench(t, Spec{Rules: soon, Then: "x"})
	b.fail["act"] = 1000
	b.pass(time.Hour)
	if n := len(b.ran); n < 8 || n > 14 {
		t.Errorf("%d attempts in an hour", n)
	}
}

// TestKilled: a guard that is killed at any moment, and started again from what is on
// the disk, does nothing twice that may have been done.
func TestKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec  Spec
		at    Phase
		ran   []string // after the restart, within ten minutes
		phase Phase
	}{
		"while it watched":             {Spec{Rules: soon, Then: "x"}, Watching, []string{"act"}, Done},
		"during the save":              {Spec{Rules: soon, Then: "x", Save: "y"}, Saving, []string{"save", "act"}, Done},
		"during an action":             {Spec{Rules: soon, Then: "x"}, Acting, nil, Unsure},
		"during a stop: we still live": {Spec{Rules: soon, Then: "x", Stops: true}, Acting, []string{"act"}, Stopping},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.spec)
			for b.st.Phase != c.at {
				b.w.pass(time.Second)
				b.step(context.Background(), b.w.moment())
			}
			if b.disk.Phase != c.at {
				t.Fatalf("on the disk is %s, it was %s", b.disk.Phase, c.at)
			}
			again := newBench(t, c.spec)
			again.w, again.st = b.w, b.disk
			again.w.pass(3 * time.Second)
			again.resume()
			again.pass(10 * time.Minute)
			if !slices.Equal(again.ran, c.ran) || again.st.Phase != c.phase {
				t.Errorf("ran %q, %s; want %q, %s", again.ran, again.st.Phase, c.ran, c.phase)
			}
			if len(again.st.Armed) == 0 || again.st.Armed[0].Mono != b.disk.Armed[0].Mono {
				t.Error("the deadline moved")
			}
		})
	}
}

// TestFullDisk: what cannot be written is told, and keeps nothing from being stopped.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t, Spec{Rules: soon, Then: "x"})
	b.diskErr = errors.New("no space left on device")
	b.pass(10 * time.Second)
	if b.st.Phase != Done || b.st.Fault == "" {
		t.Errorf("%s, fault %q", b.st.Phase, b.st.Fault)
	}
	b.diskErr = nil
	b.tell(Entry{What: "x"})
	if b.st.Fault != "" {
		t.Errorf("the fault stays: %q", b.st.Fault)
	}
}
