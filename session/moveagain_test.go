package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/tmux"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/release"
	"rentop/sync"
)

// far is a fleet of three that nobody dials.
func far(t *testing.T) (f *Fleet, s map[string]*Session) {
	t.Helper()
	dir := t.TempDir()
	f, err := Open(t.Context(), Options{Dirs: Dirs{Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}, Secrets: noKeyring{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	s = map[string]*Session{}
	for _, name := range []string{"a", "b", "c"} {
		if err := f.Add(config.Instance{Name: name, SSH: "ssh -p 1 nobody@127.0.0.1"}); err != nil {
			t.Fatal(err)
		}
		s[name] = session(t, f, name)
	}
	return f, s
}

// TestMovedOnce: a job that was moved is not moved again unasked, to wherever, and
// whatever was moved since.
func TestMovedOnce(t *testing.T) {
	t.Parallel()
	f, s := far(t)
	for _, d := range []moveData{
		{Run: "1", Step: moveBegun, Job: "train-1", NewJob: "train-x"}, {Run: "1", Step: moveDone, Job: "train-1", NewJob: "train-x", To: s["b"].uid, ToName: "b"},
		{Run: "2", Step: moveBegun, Job: "train-2"}, {Run: "2", Step: moveDone, Job: "train-2", To: s["b"].uid, ToName: "b"},
		{Run: "3", Step: moveBegun, Job: "train-3"}, {Run: "3", Step: moveGivenUp, Job: "train-3"},
	} {
		if _, err := f.ledger.Append(t.Context(), ledger.NewEvent(ledger.Moved, s["a"].uid, "rentop", d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		job, to string
		anew    bool
		again   bool
	}{{"train-1", "b", false, true}, {"train-2", "b", false, true}, {"train-1", "c", false, true}, {"train-1", "c", true, false}, {"train-3", "b", false, false}, {"train-4", "b", false, false}} {
		m := &mover{f: f, spec: MoveSpec{Anew: c.anew}, a: s["a"], b: s[c.to], job: &tmux.Job{ID: c.job}}
		var err error
		if m.log, err = m.loadLog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.moved(); errors.Is(err, ErrAlreadyMoved) != c.again || c.again && !strings.Contains(err.Error(), "runs on b, or ran") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMoveIsNotMixed: what goes on is what was begun.
func TestMoveIsNotMixed(t *testing.T) {
	t.Parallel()
	f, s := far(t)
	for name, c := range map[string]struct {
		job   string
		spec  MoveSpec
		mixes bool
	}{
		"files, then a job":            {"", MoveSpec{StopJob: true}, true},
		"files, then another command":  {"", MoveSpec{Command: "x"}, true},
		"files again":                  {"", MoveSpec{NoJob: true}, false},
		"files again, nothing said":    {"", MoveSpec{}, false},
		"a job, then files":            {"train-1", MoveSpec{NoJob: true}, true},
		"a job again":                  {"train-1", MoveSpec{StopJob: true}, false},
		"a job, then begun anew":       {"train-1", MoveSpec{NoJob: true, Anew: true}, false},
		"a job, then to another place": {"train-1", MoveSpec{To: s["c"]}, true},
	} {
		to := s["b"]
		if c.spec.To != nil {
			to = c.spec.To
		}
		m := &mover{f: f, spec: c.spec, a: s["a"], b: to, log: moveLog{under: true, did: map[string]bool{moveBegun: true}, data: moveData{Run: "1", To: s["b"].uid, Job: c.job}}}
		if err := m.resume(t.Context()); errors.Is(err, ErrUnfinishedMove) != c.mixes {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSavedOfAnother: the snapshot of an earlier instance that had the name is not taken.
func TestSavedOfAnother(t *testing.T) {
	t.Parallel()
	f, s := far(t)
	dir := filepath.Join(f.opt.Dirs.State, "snapshots", "a")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	keep := func(name, uid string, at int) {
		b, err := json.Marshal(release.Portable{Version: 1, UID: uid, At: time.Unix(int64(at), 0)})
		if err != nil {
			t.Fatal(err)
		}
		for f, b := range map[string][]byte{name: nil, name + ".json": b} {
			if err := os.WriteFile(filepath.Join(dir, f), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	away := errors.New("away")
	keep("other.tar.gz", "another", 2e9)
	m := &mover{f: f, a: s["a"], b: s["b"]}
	if err := m.planSaved(t.Context(), away); !errors.Is(err, away) {
		t.Errorf("another's: %v", err)
	}
	keep("mine.tar.gz", s["a"].uid, 1e9)
	if err := m.planSaved(t.Context(), away); err != nil || m.out.Plan.Saved.ID != "mine" {
		t.Errorf("its own: %v %+v", err, m.out.Plan.Saved)
	}
	m.spec.Paths = []string{"p"}
	if err := m.planSaved(t.Context(), away); !errors.Is(err, away) {
		t.Errorf("a path: %v", err)
	}
}

// TestMoveFromSavedThenLive: a move that began from a snapshot, and was refused, carries
// the instance's files once that answers.
func TestMoveFromSavedThenLive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, a, b, job := trainee(t, dir)
	if _, err := session(t, f, "a").KillJob(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	takeOf(t, f, "a", "p")
	f.Close()
	a.Kill9()
	f = reopen(t, dir, b)
	put(t, b.Home, "p/train.sh", "in the way")
	if _, err := f.Move(t.Context(), moveOf(t, f), nil, quietly, nil); err == nil {
		t.Fatal("what is in the way was not refused")
	}
	f.Close()
	if err := os.Remove(filepath.Join(b.Home, "p/train.sh")); err != nil {
		t.Fatal(err)
	}
	a.Restart()
	f = reopen(t, dir, a)
	got, err := f.Move(t.Context(), moveOf(t, f), nil, quietly, nil)
	if err != nil || !got.Plan.Resumed || len(got.Plan.Paths) != 2 || got.Proven < 6 || got.Checkpoint != filepath.Join(b.Home, "out/checkpoint-100") {
		t.Errorf("%v %+v", err, got)
	}
}

// disk is a transport that knows how much is free where.
type disk struct {
	sync.Local
	free map[string]int64
}

func (d disk) Space(_ context.Context, root string) (free, total int64, err error) {
	for p := root; ; p = filepath.Dir(p) {
		if n, ok := d.free[p]; ok {
			return n, 1 << 50, nil
		}
	}
}

// TestRoom: each file counts where it comes to lie.
func TestRoom(t *testing.T) {
	t.Parallel()
	t1 := disk{free: map[string]int64{"/": 1 << 30, "/root/autodl-tmp": 100 << 30, "/root/autodl-tmp/small": 2 << 30}}
	for name, c := range map[string]struct {
		files []sync.Entry
		where string
	}{
		"on the data disk":        {[]sync.Entry{{Path: "autodl-tmp/deep/er/x", Size: 50 << 30}, {Path: "y", Size: 1 << 20}}, ""},
		"too much in the home":    {[]sync.Entry{{Path: "a/x", Size: 1 << 29}, {Path: "b/c/d/x", Size: 1 << 29}}, "a:/root/a"},
		"too much for the disk":   {[]sync.Entry{{Path: "autodl-tmp/x", Size: 60 << 30}, {Path: "autodl-tmp/z/x", Size: 60 << 30}}, "a:/root/autodl-tmp"},
		"a disk in the data disk": {[]sync.Entry{{Path: "autodl-tmp/small/x", Size: 3 << 30}}, "a:/root/autodl-tmp/small"},
		"nothing":                 {nil, ""},
	} {
		r := newRoom(t1)
		r.add(t.Context(), "/root", c.files)
		err := r.lacks("a")
		var full *NoRoomError
		if errors.As(err, &full) != (c.where != "") || full != nil && full.Where != c.where {
			t.Errorf("%s: %v", name, err)
		}
	}
}
