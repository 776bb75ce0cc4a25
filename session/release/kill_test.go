// kill -9 at every line of a release, one by one and at random, against a fake
// provider with faults; clouds_test.go has it against real adapters. An oracle that
// shares no code with the machine looks at the files at the moment of each teardown.

package release

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/tmux"
)

var errKilled = errors.New("killed")

// killJournal dies at a line: before it is written, or after.
type killJournal struct {
	MemoryJournal
	n      int
	at     int // 0: never
	after  bool
	dead   bool
	random func() (die, after bool)
}

func (j *killJournal) Append(ctx context.Context, e Entry) error {
	if j.dead {
		return errKilled
	}
	j.n++
	die, after := j.n == j.at, j.after
	if j.random != nil {
		die, after = j.random()
	}
	if die {
		j.dead = true
		if after {
			_ = j.MemoryJournal.Append(ctx, e)
		}
		return errKilled
	}
	return j.MemoryJournal.Append(ctx, e)
}

// oracle watches a world for what must never happen.
type oracle struct {
	w         *world
	j         *killJournal
	shown     map[string]bool // what the person saw as lost when they typed the name
	blind     bool            // and that the files could not be looked at
	images    []string        // that the provider was shown to hold
	spent     map[string]bool // what was requested on that name
	first     []Decision      // what the person says before all else
	acted     map[string]bool // requests that change something, since the person's last word
	teardowns int
	saw       []string // violations
}

func (o *oracle) fail(format string, args ...any) {
	o.saw = append(o.saw, fmt.Sprintf(format, args...))
}

// typed remembers what a typed name waives.
func (o *oracle) typed(v View) {
	o.shown, o.spent = map[string]bool{}, map[string]bool{}
	o.blind = line(v, CheckUnsaved).State == Unknown
	o.images = nil
	if c := line(v, CheckSnapshot); c.State == Passed {
		for _, e := range c.Evidence {
			if e.Size < 0 {
				o.images = append(o.images, e.What)
			}
		}
	}
	for _, e := range v.Lost {
		o.shown[e.What] = true
	}
	if c := line(v, CheckArtifacts); c.State == Passed && slices.ContainsFunc(c.Evidence, func(e Evidence) bool { return e.Lost }) {
		o.fail("a line passed with something lost")
	}
}

// teardown is called by the provider's service as it is asked.
func (o *oracle) teardown(action, id string) {
	o.teardowns++
	if id != o.w.deps.ProviderID {
		o.fail("%s of another machine: %s", action, id)
	}
	if o.spent == nil || o.spent[action] {
		o.fail("%s without a typed name, or a second time on one", action)
		return
	}
	o.spent[action] = true
	o.journal(action)
	if o.blind {
		return
	}
	// Every file there is equal here or was shown as lost.
	_ = filepath.WalkDir(o.w.home, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		there, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(o.w.home, p)
		here, _ := os.ReadFile(filepath.Join(o.w.here, rel))
		pulled, _ := os.ReadFile(filepath.Join(o.w.deps.PullDir, p))
		if string(there) == string(here) || string(there) == string(pulled) || o.shown[p] || o.archived(p, there) {
			return nil
		}
		o.fail("%s while %s exists nowhere else and was not shown", action, rel)
		return nil
	})
	for _, job := range o.w.jobs {
		if job.State == tmux.Running && !o.shown[job.Name] {
			o.fail("%s while job %s runs and was not shown", action, job.Name)
		}
	}
}

// archived looks for the file in the manifests of portable snapshots.
func (o *oracle) archived(p string, content []byte) bool {
	list, _ := filepath.Glob(filepath.Join(o.w.deps.SnapshotDir, "*.sha256"))
	for _, m := range list {
		b, _ := os.ReadFile(m)
		if strings.Contains(string(b), sum(string(content))+"  "+strings.TrimPrefix(p, "/")+"\n") {
			return true
		}
	}
	return false
}

// journal holds the order of steps since the last beginning: two whole rounds of
// checks around a typed name, then the request.
func (o *oracle) journal(action string) {
	entries, _ := o.j.Load(context.Background())
	var steps []string
	run := ""
	for _, e := range entries {
		if e.Step == stepStart || e.Step == stepResume || e.Step == stepOver {
			steps, run = nil, e.Run
			continue
		}
		if e.Run == run {
			steps = append(steps, e.Step)
		}
	}
	n := len(steps)
	round := []string{}
	for range order {
		round = append(round, stepCheck, stepChecked)
	}
	want := append(slices.Clone(round), stepDecision, stepRecheck)
	want = append(append(want, round...), stepProven, stepTeardown)
	if n < len(want) || !slices.Equal(steps[n-len(want):], want) {
		o.fail("%s after %v", action, steps)
	}
}

// live runs a release to its end through as many deaths as come.
func (o *oracle) live(t testing.TB, goal Goal, person func(m *Machine, v View), revive func()) View {
	w := o.w
	var last View
	for range 30 {
		o.j.dead = false
		var m *Machine
		ctx, stop := context.WithCancel(t.Context())
		w.deps.Changed = func(v View) {
			if o.j.dead {
				return
			}
			if truth := w.truth(); v.Phase == Review && (v.Ended != truth || truth != provider.Gone && (goal != Stop || truth != provider.Stopped)) {
				o.fail("review of a %s that says %s, but the machine is %s", goal, v.Ended, truth)
			}
			if v.Phase == Waiting || v.Phase == Stuck && w.deps.Stay {
				person(m, v)
			}
		}
		m, err := Resume(ctx, w.deps)
		if err != nil {
			t.Fatal(err)
		}
		if m != nil && m.View().Phase != Proving {
			for _, c := range m.View().Checks {
				if c.State != Pending {
					o.fail("%s is %s right after a crash", c.ID, c.State)
				}
			}
		}
		if m == nil {
			if last.Phase == Review || last.Phase == Cancelled {
				stop()
				return last
			}
			if m, err = New(w.deps, goal); err != nil {
				t.Fatal(err)
			}
		}
		err = m.Run(ctx)
		stop()
		last = m.View()
		if err == nil {
			return last
		}
		if !errors.Is(err, errKilled) && !errors.Is(err, ErrStuck) {
			t.Fatalf("run: %v", err)
		}
		if errors.Is(err, ErrStuck) && last.Phase != Stuck {
			o.fail("stuck, but shown as %s", last.Phase)
		}
		revive()
	}
	return last
}

func newOracle(w *world) *oracle {
	o := &oracle{w: w, j: &killJournal{}}
	w.deps.Journal = o.j
	w.prov.before = o.teardown
	return o
}

func (o *oracle) report(t testing.TB, what string) {
	t.Helper()
	for _, s := range o.saw {
		t.Errorf("%s: %s", what, s)
	}
}

// TestKilledAtEveryLine stops the process before and after each line of the
// journal of a release that waives one file, and resumes it.
func TestKilledAtEveryLine(t *testing.T) {
	for _, f := range []fault{honest, slow, doneButFailed, acceptedNotOK} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			lines := 1000
			for at := 1; at <= lines; at++ {
				for _, after := range []bool{false, true} {
					w := newWorld(t)
					w.fastEnv()
					w.prov.fault = f
					w.there("scratch.bin", "to be lost")
					o := newOracle(w)
					o.j.at, o.j.after = at, after
					v := o.live(t, Destroy, func(m *Machine, v View) {
						o.typed(v)
						m.Decide(typeName(v))
					}, func() { w.prov.fault = honest })
					what := fmt.Sprintf("killed at line %d, written %t", at, after)
					o.report(t, what)
					if v.Phase != Review || w.prov.state != provider.Gone {
						t.Errorf("%s: it ends %s, the machine is %s", what, v.Phase, w.prov.state)
					}
					if f == honest && len(w.prov.calls) != 1 {
						t.Errorf("%s: %v", what, w.prov.calls)
					}
					if !after {
						continue
					}
					if o.j.n < at { // no line was left to die at
						lines = 0
					}
				}
				switch {
				case testing.Short():
					at += 3
				case f != honest && *randomRounds == usualRounds: // .ci/soak takes every line
					at++
				}
			}
			if lines != 0 {
				t.Error("the journal never ended")
			}
		})
	}
}

// TestKilledDuringTheRequest dies inside the provider's call, after it had its
// effect: the next start asks and does not repeat it.
func TestKilledDuringTheRequest(t *testing.T) {
	for _, f := range []fault{honest, slow, doneButFailed} {
		w := newWorld(t)
		w.fastEnv()
		w.prov.fault = f
		o := newOracle(w)
		w.prov.after = func() { o.j.dead = true }
		v := o.live(t, Destroy, func(m *Machine, v View) { o.typed(v); m.Decide(typeName(v)) }, func() { w.prov.after = nil })
		o.report(t, string(f))
		if v.Phase != Review || !v.Resumed || len(w.prov.calls) != 1 {
			t.Errorf("%s: %v\n%s", f, w.prov.calls, text(v))
		}
	}
}

const usualRounds = 120

var randomRounds = flag.Int("release.rounds", usualRounds, "releases of TestRandomReleases")

// TestRandomReleases is releases with everything at random: faults, deaths,
// changes of the world at any script, and a person who errs.
func TestRandomReleases(t *testing.T) {
	const workers = 4
	runs := *randomRounds
	if testing.Short() {
		runs = 40
	}
	for worker := range workers {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			reviews, teardowns := 0, 0
			for seed := worker; seed < runs; seed += workers {
				v, asked := randomRelease(t, uint64(seed))
				if v.Phase == Review {
					reviews++
				}
				teardowns += asked
			}
			t.Logf("%d releases, %d to the review after %d teardowns", runs/workers, reviews, teardowns)
			if min(teardowns, reviews) < runs/workers/4 {
				t.Errorf("too few came to a teardown for the test to mean anything")
			}
		})
	}
}

func randomRelease(t *testing.T, seed uint64) (View, int) {
	r := rand.New(rand.NewPCG(seed, 7))
	w := newWorld(t)
	o := newOracle(w)
	goal := []Goal{Destroy, Destroy, Stop}[r.IntN(3)]
	if w.prov.fault = faults[r.IntN(len(faults))]; w.prov.fault == alreadyGone {
		w.prov.state = provider.Gone
	}
	if goal == Stop && w.prov.fault == slow {
		w.prov.fault = honest
	}
	if r.IntN(4) == 0 {
		w.prov.after = func() { o.j.dead = true; w.prov.after = nil }
	}
	w.deps.Runner = skipEnv{w.sh}
	v := o.wander(t, r, goal, func() { w.prov.fault = honest })
	o.report(t, fmt.Sprintf("seed %d (%s)", seed, goal))
	if t.Failed() {
		t.Fatalf("seed %d\n%s", seed, text(v))
	}
	return v, o.teardowns
}

// wander is a release with files that change, deaths at lines of the journal, and a
// person who errs.
func (o *oracle) wander(t testing.TB, r *rand.Rand, goal Goal, revive func()) View {
	w := o.w
	if r.IntN(3) == 0 {
		w.there("scratch.bin", "to be lost")
	}
	changes := r.IntN(4)
	w.sh.hook = func(string) {
		if changes > 0 && r.IntN(12) == 0 {
			changes--
			w.change(r)
		}
	}
	death, deaths := []float64{0, 0.01, 0.05, 0.15}[r.IntN(4)], 8
	o.j.random = func() (bool, bool) {
		if deaths > 0 && r.Float64() < death {
			deaths--
			return true, r.IntN(2) == 0
		}
		return false, false
	}
	words := 12
	return o.live(t, goal, func(m *Machine, v View) {
		if v.Phase == Stuck {
			if r.IntN(3) == 0 {
				m.Decide(Decision{Kind: DecideAgain})
			}
			return
		}
		if words--; words < 0 {
			m.Decide(Decision{Kind: DecideCancel})
			return
		}
		m.Decide(o.word(r, v))
	}, revive)
}

// word is what a person says at a picture: mostly the right name.
func (o *oracle) word(r *rand.Rand, v View) Decision {
	o.acted = map[string]bool{}
	if len(o.first) > 0 {
		d := o.first[0]
		o.first = o.first[1:]
		return d
	}
	switch r.IntN(12) {
	case 0:
		return Decision{Kind: DecideName, Name: "a1000", Shown: v.Shown}
	case 1:
		return Decision{Kind: DecideName, Name: v.Instance, Shown: "stale"}
	case 2:
		return Decision{Kind: DecideAgain}
	case 3:
		return Decision{Kind: DecidePull}
	case 4:
		return Decision{Kind: DecideSnapshot, Snapshot: PortableSnapshot}
	case 5:
		return Decision{Kind: DecideSnapshot, Snapshot: []SnapshotKind{ProviderSnapshot, NoSnapshot}[r.IntN(2)]}
	}
	o.typed(v)
	return typeName(v)
}

// change makes one change to the world that a release must notice.
func (w *world) change(r *rand.Rand) {
	switch r.IntN(7) {
	case 0:
		w.there(fmt.Sprintf("late%d.bin", r.IntN(3)), fmt.Sprint("late", r.IntN(1000)))
	case 1:
		w.there("out/model.pt", fmt.Sprintf("w%06d", r.IntN(1000)))
	case 2:
		w.there(fmt.Sprintf("out/e%d.pt", r.IntN(3)), "epoch")
	case 3:
		_ = os.Remove(filepath.Join(w.here, "out/model.pt"))
	case 4:
		w.jobs = []tmux.Job{{ID: "1", Name: "train", State: tmux.Running, StartedAt: time.Now()}}
	case 5:
		w.jobs = nil
	case 6:
		w.there("scratch.bin", fmt.Sprint("other", r.IntN(1000)))
	}
}
