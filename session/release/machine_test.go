package release

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/provider"
	"rentop/remote/tmux"
)

// person answers each time the machine waits; the last answer repeats.
type person struct {
	answers []func(View) Decision
	seen    []View // every picture at which it was asked
}

func typeName(v View) Decision {
	return Decision{Kind: DecideName, Name: v.Instance, Shown: v.Shown}
}

func cancel(View) Decision { return Decision{Kind: DecideCancel} }

func (p *person) attach(w *world, m func() *Machine) {
	prev := w.deps.Changed
	w.deps.Changed = func(v View) {
		prev(v)
		if v.Phase != Waiting {
			return
		}
		p.seen = append(p.seen, v)
		i := min(len(p.seen), len(p.answers)) - 1
		m().Decide(p.answers[i](v))
	}
}

// release runs one machine to its end.
func (w *world) release(goal Goal, answers ...func(View) Decision) (View, *person, error) {
	w.t.Helper()
	p := &person{answers: answers}
	var m *Machine
	keep := w.deps.Changed
	defer func() { w.deps.Changed = keep }()
	p.attach(w, func() *Machine { return m })
	var err error
	if m, err = New(w.deps, goal); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(w.t.Context(), time.Minute)
	defer stop()
	err = m.Run(ctx)
	return m.View(), p, err
}

func TestDestroyed(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	v, p, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || v.Proof.String() != "fake says gone (GONE)" || v.Cost != "25.61 CNY" || len(p.seen) != 1 {
		t.Fatalf("%v\n%s", err, text(v))
	}
	if got := strings.Join(w.prov.calls, ","); got != "destroy i-1" {
		t.Errorf("calls: %s", got)
	}
	if m, err := Resume(t.Context(), w.deps); m != nil || err != nil {
		t.Errorf("a finished release is resumed: %v %v", m, err)
	}
}

func TestStopped(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	v, _, err := w.release(Stop, typeName)
	if err != nil || v.Phase != Review || !strings.Contains(v.Proof.String(), "stopped") {
		t.Fatalf("%v\n%s", err, text(v))
	}
	if got := strings.Join(w.prov.calls, ","); got != "stop i-1" {
		t.Errorf("calls: %s", got)
	}
}

func TestWrongName(t *testing.T) {
	for name, wrong := range map[string]func(View) Decision{
		"other name":  func(v View) Decision { return Decision{Kind: DecideName, Name: "b200", Shown: v.Shown} },
		"other case":  func(v View) Decision { return Decision{Kind: DecideName, Name: "A100", Shown: v.Shown} },
		"a space":     func(v View) Decision { return Decision{Kind: DecideName, Name: "a100 ", Shown: v.Shown} },
		"empty":       func(v View) Decision { return Decision{Kind: DecideName, Shown: v.Shown} },
		"old picture": func(v View) Decision { return Decision{Kind: DecideName, Name: v.Instance, Shown: "0"} },
		"no picture":  func(v View) Decision { return Decision{Kind: DecideName, Name: v.Instance} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			v, p, err := w.release(Destroy, wrong, cancel)
			if err != nil || v.Phase != Cancelled || len(w.prov.calls) != 0 {
				t.Fatalf("%v %v\n%s", err, w.prov.calls, text(v))
			}
			if len(p.seen) != 2 || p.seen[1].Why.String() == "" {
				t.Errorf("the person was not told: %d pictures", len(p.seen))
			}
		})
	}
}

func TestWaivedAsShown(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("scratch.bin", "to be lost")
	v, p, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || line(v, CheckUnsaved).State != Waived || len(p.seen) != 1 {
		t.Fatalf("%v\n%s", err, text(v))
	}
	if s := p.seen[0]; len(s.Lost) != 1 || s.LostSize != 10 {
		t.Errorf("lost: %+v", s.Lost)
	}
}

// What changes between the proof and the teardown starts it over, and what
// appeared is not waived by the name typed before.
func TestChangedAfterProof(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a new file there":        func(w *world) { w.there("late.bin", "late") },
		"an artifact grew":        func(w *world) { w.there("out/model.pt", "weights, trained on") },
		"an artifact, same size":  func(w *world) { w.there("out/model.pt", "WEIGHTS") },
		"a new artifact":          func(w *world) { w.there("out/epoch2.pt", "two") },
		"the copy here vanished":  func(w *world) { must(w.t, os.Remove(filepath.Join(w.here, "out/model.pt"))) },
		"the copy here differs":   func(w *world) { w.local("out/model.pt", "WEIGHTS") },
		"a job began":             func(w *world) { w.jobs = []tmux.Job{{ID: "9", Name: "late", State: tmux.Running}} },
		"a waived file changed":   func(w *world) { w.there("scratch.bin", "other words") },
		"a waived file vanished":  func(w *world) { must(w.t, os.Remove(filepath.Join(w.home, "scratch.bin"))) },
		"the connection was lost": func(w *world) { w.sh.down = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			w.there("scratch.bin", "to be lost")
			v, p, err := w.release(Destroy, func(v View) Decision { change(w); return typeName(v) }, cancel)
			if err != nil || v.Phase != Cancelled || len(w.prov.calls) != 0 {
				t.Fatalf("%v %v\n%s", err, w.prov.calls, text(v))
			}
			if len(p.seen) != 2 || !strings.Contains(p.seen[1].Why.String(), "changed between the proof and the teardown") {
				t.Errorf("the person was not told: %+v", p.seen)
			}
		})
	}
}

// The same changes, made at the last look: after the long recheck has read all.
func TestChangedAtTheLastLook(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a new file there":       func(w *world) { w.there("late.bin", "late") },
		"an artifact, same size": func(w *world) { w.there("out/model.pt", "WEIGHTS") },
		"the copy here vanished": func(w *world) { must(w.t, os.Remove(filepath.Join(w.here, "out/model.pt"))) },
		"a job began":            func(w *world) { w.jobs = []tmux.Job{{ID: "9", State: tmux.Running}} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			done := false
			prev := w.deps.Changed
			w.deps.Changed = func(v View) {
				prev(v)
				if v.Phase == Rechecking && line(v, CheckJobs).Summary.String() == "a last look" && !done {
					done = true
					change(w)
				}
			}
			v, p, err := w.release(Destroy, typeName, cancel)
			if err != nil || !done || v.Phase != Cancelled || len(w.prov.calls) != 0 || len(p.seen) != 2 {
				t.Fatalf("%v %v %d\n%s", err, w.prov.calls, len(p.seen), text(v))
			}
		})
	}
}

// A log that a waived job keeps writing is shown as being written at the second
// picture, and can be waived as that.
func TestMovingFile(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	n := 0
	w.sh.hook = func(string) { n++; w.there("out/train.log", strings.Repeat("line\n", n)) }
	w.deps.Runner = skipEnv{w.sh}
	v, p, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 2 {
		t.Fatalf("%v, %d pictures\n%s", err, len(p.seen), text(v))
	}
	if e := line(p.seen[1], CheckUnsaved).Evidence; len(e) != 1 || e[0].Detail.String() != "is being written" {
		t.Errorf("%+v", e)
	}
}

func TestProviderFaults(t *testing.T) {
	for _, c := range []struct {
		fault fault
		phase Phase
		stuck bool
		calls int
	}{
		{honest, Review, false, 1},
		{acceptedNotOK, Stuck, true, 1},
		{doneButFailed, Review, false, 1},
		{refused, Stuck, true, 1},
		{slow, Review, false, 1},
		{silentStatus, Review, false, 1},
		{alreadyGone, Review, false, 0},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			w.prov.fault = c.fault
			if c.fault == alreadyGone {
				w.prov.state = provider.Gone
			}
			v, _, err := w.release(Destroy, typeName)
			if v.Phase != c.phase || errors.Is(err, ErrStuck) != c.stuck || len(w.prov.calls) != c.calls {
				t.Fatalf("%v %v\n%s", err, w.prov.calls, text(v))
			}
			if c.stuck && !strings.Contains(v.Why.String(), "still billed") {
				t.Errorf("why: %s", v.Why.String())
			}
			if c.phase == Review && w.prov.state != provider.Gone {
				t.Errorf("review, but the machine is %s", w.prov.state)
			}
		})
	}
}

// A key of another account says "gone" about everything. The instance answers,
// so that is neither the end before a request nor silently believed after it.
func TestGoneButAnswers(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.prov.id, w.prov.fault = "another", acceptedNotOK
	w.prov.before = nil
	v, p, err := w.release(Destroy, typeName)
	if err != nil || len(p.seen) != 1 || !strings.Contains(v.Why.String(), "still answers") {
		t.Fatalf("%v, %d pictures\n%s", err, len(p.seen), text(v))
	}
}

// An artifact with two destinations, of which one was waived, is one failure and
// not an endless start over.
func TestArtifactAtTwoPlaces(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.deps.Artifacts = append(w.deps.Artifacts, Artifact{Path: "~/out/**", To: "second"})
	v, p, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 1 || len(p.seen[0].Lost) != 2 {
		t.Fatalf("%v, %d pictures\n%s", err, len(p.seen), text(v))
	}
}

// Stuck with a screen: it goes on asking, and "again" is a whole new checklist.
func TestStuckAndAgain(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.prov.fault = refused
	w.deps.Stay = true
	var m *Machine
	stuck, waits := 0, 0
	w.deps.Changed = func(v View) {
		switch v.Phase {
		case Stuck:
			if stuck++; stuck == 3 {
				w.prov.fault = honest
				m.Decide(Decision{Kind: DecideAgain})
			}
		case Waiting:
			waits++
			m.Decide(typeName(v))
		}
	}
	m, err := New(w.deps, Destroy)
	must(t, err)
	if err := m.Run(t.Context()); err != nil || m.View().Phase != Review || len(w.prov.calls) != 2 || waits != 2 {
		t.Fatalf("%v, %d pictures, %v\n%s", err, waits, w.prov.calls, text(m.View()))
	}
}

func TestPlainSSH(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.deps.Provider, w.deps.ProviderID = nil, ""
	v, _, err := w.release(Destroy, typeName)
	if !errors.Is(err, ErrHandedOver) || v.Phase != Stuck || v.Proof.String() != "" || !strings.Contains(v.Why.String(), "provider's console") {
		t.Fatalf("%v\n%s", err, text(v))
	}
	if m, err := Resume(t.Context(), w.deps); m != nil || err != nil {
		t.Errorf("resumed: %v %v", m, err)
	}
}

// A dead machine can still be given back, by a name typed under lines that say
// that nothing could be checked.
func TestUnreachableDestroyed(t *testing.T) {
	w := newWorld(t)
	w.sh.down = true
	v, p, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 1 || len(p.seen[0].Fails()) != 5 {
		t.Fatalf("%v\n%s", err, text(v))
	}
}

func TestPinned(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	ctx, stop := context.WithCancel(t.Context())
	w.deps.Changed = func(v View) {
		if v.Phase == Waiting {
			stop()
		}
	}
	m, err := New(w.deps, Destroy)
	must(t, err)
	if err := m.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.deps.ProviderID = "i-2"
	if m, err := Resume(t.Context(), w.deps); m != nil || !errors.Is(err, ErrPinned) {
		t.Fatalf("%v %v", m, err)
	}
	w.deps.ProviderID = "i-1"
	if m, err := Resume(t.Context(), w.deps); err != nil || !m.View().Resumed || m.View().Goal != Destroy {
		t.Fatalf("%v %v", m, err)
	}
	w.deps.UID = "another instance"
	if m, err := Resume(t.Context(), w.deps); m != nil || err != nil {
		t.Fatalf("another instance's release is resumed: %v %v", m, err)
	}
}

func TestRefusedGoals(t *testing.T) {
	w := newWorld(t)
	w.prov.can.Stop = false
	if _, err := New(w.deps, Stop); err == nil || !strings.Contains(err.Error(), "cannot stop") {
		t.Error(err)
	}
	w.deps.ProviderID = ""
	if _, err := New(w.deps, Destroy); err == nil || !strings.Contains(err.Error(), "id") {
		t.Error(err)
	}
	if _, err := New(w.deps, "sell"); err == nil {
		t.Error("a goal that is none")
	}
	w.deps.Journal = nil
	if _, err := New(w.deps, Destroy); err == nil || !strings.Contains(err.Error(), "journal") {
		t.Error(err)
	}
}

// TestCheckOnly: the list without a teardown, from the screen: a typed name does
// nothing, the files can be pulled, and the end leaves nothing to resume.
func TestCheckOnly(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("data/x", "nowhere else")
	pull := func(View) Decision { return Decision{Kind: DecidePull} }
	var typed string
	v, p, err := w.release(CheckOnly, typeName, func(v View) Decision { typed = v.Why.String(); return pull(v) }, cancel)
	if err != nil || v.Phase != Cancelled || len(p.seen) != 3 {
		t.Fatalf("%v, %s, %d pictures", err, v.Phase, len(p.seen))
	}
	if len(p.seen[0].Fails()) == 0 || len(p.seen[2].Fails()) != 0 || !strings.Contains(typed, "this is a check") {
		t.Errorf("first %v, last %v, said %q", p.seen[0].Fails(), p.seen[2].Fails(), typed)
	}
	if entries, err := w.deps.Journal.Load(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("journal: %v, %v", entries, err)
	}
	if len(w.prov.calls) != 0 {
		t.Errorf("the provider was asked to %v", w.prov.calls)
	}
}

// Two rentops: the second to ask finds the first's request in the journal.
func TestTwoRentops(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.prov.fault = acceptedNotOK
	v, p, err := w.release(Destroy, func(v View) Decision {
		other := w.deps
		other.Changed = func(View) {}
		m, err := New(other, Destroy)
		must(t, err)
		other.Changed = nil
		m.d.Changed = func(v View) {
			if v.Phase == Waiting {
				m.Decide(typeName(v))
			}
		}
		m.d.Timing.Prove = time.Second
		if err := m.Run(t.Context()); !errors.Is(err, ErrStuck) {
			t.Error(err)
		}
		return typeName(v)
	}, cancel)
	if err != nil || v.Phase != Cancelled || len(w.prov.calls) != 1 || len(p.seen) != 2 {
		t.Fatalf("%v %v\n%s", err, w.prov.calls, text(v))
	}
}

func TestCancelDuringChecks(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	var m *Machine
	w.deps.Changed = func(v View) {
		if line(v, CheckArtifacts).State == Active {
			m.Decide(Decision{Kind: DecideCancel})
		}
	}
	m, err := New(w.deps, Destroy)
	must(t, err)
	if err := m.Run(t.Context()); err != nil || m.View().Phase != Cancelled || len(w.prov.calls) != 0 {
		t.Fatalf("%v\n%s", err, text(m.View()))
	}
	if m, err := Resume(t.Context(), w.deps); m != nil || err != nil {
		t.Errorf("resumed: %v %v", m, err)
	}
}

func TestFileJournal(t *testing.T) {
	j := FileJournal{Path: filepath.Join(t.TempDir(), "sub", "journal")}
	if got, err := j.Load(t.Context()); len(got) != 0 || err != nil {
		t.Fatal(got, err)
	}
	must(t, j.Append(t.Context(), Entry{Run: "r", Step: "one"}))
	f, err := os.OpenFile(j.Path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"run":"r","step":"cu`)
	must(t, err)
	must(t, f.Close())
	must(t, j.Append(t.Context(), Entry{Run: "r", Step: "two"}))
	got, err := j.Load(t.Context())
	if err != nil || len(got) != 2 || got[1].Step != "two" {
		t.Fatal(got, err)
	}
}

// A provider that is changing the instance already is not asked on top of it.
func TestChangingAlready(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.prov.state, w.prov.ripe = provider.Changing, 6
	v, _, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || len(w.prov.calls) != 0 {
		t.Fatalf("%v %v\n%s", err, w.prov.calls, text(v))
	}
}

// A name typed twice in haste approves one picture, not the next one.
func TestHastyName(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.prov.fault = refused
	w.deps.Stay = true
	var m *Machine
	waits := 0
	w.deps.Changed = func(v View) {
		switch v.Phase {
		case Stuck:
			m.Decide(Decision{Kind: DecideAgain})
		case Waiting:
			if waits++; waits == 1 {
				m.Decide(typeName(v))
			}
			if waits == 3 { // after the second name was refused
				m.Decide(Decision{Kind: DecideCancel})
			}
		case Proving:
			m.Decide(Decision{Kind: DecideAgain})
		case Tearing:
			last := w.lastView
			m.Decide(typeName(last))
		}
		w.lastView = v
	}
	m, err := New(w.deps, Destroy)
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if err := m.Run(ctx); err != nil || len(w.prov.calls) != 1 {
		t.Fatalf("%v, %v\n%s", err, w.prov.calls, text(m.View()))
	}
}

// The real mounts of this machine: the look at them ends and is whole.
func TestWholeMachine(t *testing.T) {
	needtest.File(t, "/proc/mounts")
	needtest.Time(t, "looks at every file of this machine")
	w := newWorld(t)
	w.deps.Roots, w.deps.Since = nil, time.Now().Add(time.Hour)
	m := newMachine(w.deps.filled(), CheckOnly, "r")
	m.runner = m.d.Runner
	start := time.Now()
	s, err := m.scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("dpkg-query"); err == nil && len(s.packaged) == 0 {
		t.Error("no configuration file of a package is as it came")
	}
	t.Logf("%v: %d packaged, %d files, %d git trees, %d prefixes, %d caches, network %v, %d unread", time.Since(start), len(s.packaged), len(s.files), len(s.gits), len(s.prefixes), len(s.downloads), s.network, s.unread)
}
