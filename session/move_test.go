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

	"rentop/remote/sshtest"
	"rentop/remote/tmux"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/sync"
)

// trainee is a fleet of two with a job on a that trains in ~/p and has left checkpoints
// in ~/out: one that is whole, and a newer one that is cut short.
func trainee(t *testing.T, dir string) (f *Fleet, a, b *sshtest.Server, job tmux.Job) {
	t.Helper()
	f, a, b = two(t, dir, func(in *config.Instance) {
		in.Artifacts = []config.Artifact{{Path: "~/out/**", To: filepath.Join(dir, "kept")}}
	})
	put(t, a.Home, "p/train.sh", `echo "$X from ${RENTOP_CHECKPOINT:-nothing}" >>"$HOME/p/started"; exec sleep 300`)
	put(t, a.Home, "out/checkpoint-100/model.pt", string(torchFile()))
	put(t, a.Home, "out/checkpoint-100/trainer_state.json", "{}")
	put(t, a.Home, "out/checkpoint-200/model.pt", string(torchFile()[:500]))
	put(t, a.Home, "out/checkpoint-200/trainer_state.json", "{}")
	old := time.Now().Add(-time.Hour)
	for _, rel := range []string{"out/checkpoint-100/model.pt", "out/checkpoint-100/trainer_state.json"} {
		if err := os.Chtimes(filepath.Join(a.Home, rel), old, old); err != nil {
			t.Fatal(err)
		}
	}
	job, err := session(t, f, "a").StartJob(t.Context(), JobSpec{Name: "train", Command: "sh train.sh", Dir: "~/p", Env: map[string]string{"X": "a secret"}})
	if err != nil {
		t.Fatal(err)
	}
	return f, a, b, job
}

func moveOf(t *testing.T, f *Fleet) MoveSpec {
	t.Helper()
	return MoveSpec{From: session(t, f, "a"), To: session(t, f, "b")}
}

func quietly(MoveStage) {}

// TestMove: files, then the job, from its newest complete checkpoint, with its folder
// and variables; nothing of what is on the other is written over, and nothing twice.
func TestMove(t *testing.T) {
	t.Parallel()
	f, a, b, job := trainee(t, t.TempDir())
	ctx := t.Context()
	if _, err := f.Move(ctx, moveOf(t, f), nil, quietly, nil); !errors.Is(err, ErrStillRuns) {
		t.Fatalf("what becomes of the job was not asked: %v", err)
	}
	spec := moveOf(t, f)
	spec.StopJob = true
	put(t, b.Home, "p/train.sh", "mine")
	var taken *OccupiedError
	if _, err := f.Move(ctx, spec, nil, quietly, nil); !errors.As(err, &taken) || len(taken.Differ) != 1 || reads(t, b.Home, "out/checkpoint-100/model.pt") != "?" {
		t.Fatalf("what differs there is refused before anything is changed: %v", err)
	}
	spec.Overwrite = true
	got, err := f.Move(ctx, spec, nil, quietly, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Proven < 6 || !got.Stopped || got.Job == nil || got.Job.State != tmux.Running || len(got.Trash) != 1 {
		t.Errorf("%+v", got)
	}
	want := filepath.Join(b.Home, "out/checkpoint-100")
	if got.Checkpoint != want || len(got.Passed) != 1 || !strings.Contains(got.Passed[0], "checkpoint-200: model.pt: the file is not complete") {
		t.Errorf("checkpoint %q, passed %q", got.Checkpoint, got.Passed)
	}
	if j, err := session(t, f, "a").findJob(ctx, job.ID); err != nil || j.State != tmux.Killed {
		t.Errorf("the job on a: %+v %v", j, err)
	}
	begun := "a secret from " + want + "\n"
	for end := time.Now().Add(20 * time.Second); !strings.HasSuffix(reads(t, b.Home, "p/started"), begun) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	if all := reads(t, b.Home, "p/started"); all != "a secret from nothing\n"+begun {
		t.Errorf("started: %q", all)
	}
	if reads(t, b.Home, strings.TrimPrefix(got.Trash[0], b.Home)+"/train.sh") != "mine" {
		t.Errorf("what was in the way is not in %q", got.Trash)
	}
	if reads(t, a.Home, "p/train.sh") == "?" {
		t.Error("a lost a file")
	}
	if _, err := f.Move(ctx, spec, nil, quietly, nil); !errors.Is(err, ErrAlreadyMoved) {
		t.Errorf("once more: %v", err)
	}
	events, err := f.ledger.Events(ctx, ledger.Filter{Instance: session(t, f, "a").uid, Kinds: []ledger.Kind{ledger.Moved}})
	if err != nil || len(events) == 0 {
		t.Fatal(err)
	}
	for _, e := range events {
		if strings.Contains(string(e.Data), "a secret") {
			t.Errorf("a job's variable is in the ledger: %s", e.Data)
		}
	}
}

// TestMoveGoesOn: ended at each of its stages and run again, it ends as if it had run
// once, and the job is started once.
func TestMoveGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, a, b, job := trainee(t, dir)
	put(t, a.Home, "p/notes", "of a")
	for _, at := range []MoveStage{MoveCarries, MoveStops, MoveProves, MoveStarts} {
		ctx, stop := context.WithCancel(t.Context())
		spec := moveOf(t, f)
		spec.StopJob = true
		_, err := f.Move(ctx, spec, nil, func(s MoveStage) {
			if s == at {
				stop()
			}
		}, nil)
		stop()
		if err == nil {
			t.Fatalf("it was not ended where it %s", at)
		}
		f.Close()
		f = reopen(t, dir, a)
	}
	// Somebody writes there meanwhile, by a clock that is years behind.
	if err := os.Chtimes(put(t, b.Home, "p/notes", "of b"), time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	spec := moveOf(t, f)
	spec.Command = "sh train.sh --resume {checkpoint}"
	got, err := f.Move(t.Context(), spec, nil, quietly, nil)
	if len(got.Trash) != 1 || reads(t, got.Trash[0], "notes") != "of b" || reads(t, b.Home, "p/notes") != "of a" {
		t.Errorf("what was written there meanwhile is lost; trash %q", got.Trash)
	}
	if err != nil || !got.Plan.Resumed || got.Job == nil || got.Checkpoint != filepath.Join(b.Home, "out/checkpoint-100") {
		t.Fatalf("%v %+v", err, got)
	}
	// Killed after the job was started, and before that was written down.
	events, err := f.ledger.Events(t.Context(), ledger.Filter{Instance: session(t, f, "a").uid, Kinds: []ledger.Kind{ledger.Moved}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		var d moveData
		if json.Unmarshal(e.Data, &d) == nil && (d.Step == moveBegun || d.Step == moveStarting) {
			if _, err := f.ledger.Append(t.Context(), ledger.NewEvent(ledger.Moved, e.Instance, "rentop", d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	again, err := f.Move(t.Context(), spec, nil, quietly, nil)
	if err != nil || again.Job == nil || again.Job.ID != got.Job.ID || again.Checkpoint != got.Checkpoint {
		t.Fatalf("%v %+v", err, again)
	}
	jobs, err := session(t, f, "b").Jobs(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Command != "sh train.sh --resume "+got.Checkpoint {
		t.Errorf("jobs there: %+v %v", jobs, err)
	}
	if j, err := session(t, f, "a").findJob(t.Context(), job.ID); err != nil || j.State != tmux.Killed {
		t.Errorf("the job on a: %+v %v", j, err)
	}
}

// TestMoveWithout: an instance that cannot be reached is moved from its snapshot.
func TestMoveWithout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, a, b, job := trainee(t, dir)
	if _, err := session(t, f, "a").KillJob(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	takeOf(t, f, "a", "p", "out")
	f.Close()
	a.Kill9()
	f = reopen(t, dir, b)
	got, err := f.Move(t.Context(), moveOf(t, f), nil, quietly, func(sync.Progress) {})
	if err != nil || got.Plan.Saved == nil || got.Job == nil || !got.NoEnv || got.Checkpoint != filepath.Join(b.Home, "out/checkpoint-100") {
		t.Fatalf("%v %+v", err, got)
	}
	for end := time.Now().Add(20 * time.Second); !strings.Contains(reads(t, b.Home, "p/started"), got.Checkpoint) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
	}
	if all := reads(t, b.Home, "p/started"); !strings.Contains(all, " from "+got.Checkpoint) {
		t.Errorf("started: %q", all)
	}
}
