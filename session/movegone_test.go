package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/store/storetest"
	"rentop/session/config"
	"rentop/sync"
)

// TestMoveFromGone: the instance is gone in the middle of its move. What had come stays,
// the newer version of each file counts, a checkpoint that came half is passed over for
// the one in the bucket, and what is nowhere is named.
func TestMoveFromGone(t *testing.T) {
	t.Parallel()
	bucket := storetest.Start(t, "")
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "config.toml"), []byte(fmt.Sprintf("[bucket.runs]\nendpoint = %q\n", bucket.Endpoint)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, a, b := two(t, dir, func(in *config.Instance) {
		in.Artifacts = []config.Artifact{{Path: "~/ckpt/**", To: "s3://runs/7b"}, {Path: "~/out/**", To: filepath.Join(dir, "kept")}}
	})
	keys := &remote.MemorySecrets{}
	if err := keys.Set("s3:runs", storetest.KeyID+"\n"+storetest.Secret); err != nil {
		t.Fatal(err)
	}
	f.opt.Secrets = keys
	at := func(full string, ago time.Duration) {
		t.Helper()
		when := time.Now().Add(-ago).Truncate(time.Second)
		if err := os.Chtimes(full, when, when); err != nil {
			t.Fatal(err)
		}
	}
	train := put(t, a.Home, "p/train.sh", `echo "from ${RENTOP_CHECKPOINT:-nothing}" >>"$HOME/p/started"; exec sleep 300`)
	at(put(t, a.Home, "p/notes", "old notes"), 5*time.Hour)
	at(train, 5*time.Hour)
	job, err := session(t, f, "a").StartJob(t.Context(), JobSpec{Name: "train", Command: "sh train.sh", Dir: "~/p"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session(t, f, "a").KillJob(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	takeOf(t, f, "a", "p")
	at(put(t, a.Home, "p/notes", "new notes"), time.Hour)
	for _, rel := range []string{"ckpt/checkpoint-100/model.pt", "ckpt/checkpoint-100/trainer_state.json", "out/log.txt"} {
		at(put(t, a.Home, rel, string(torchFile())), 4*time.Hour)
	}
	lines, err := session(t, f, "a").PlanSave(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, failed, err := session(t, f, "a").SaveArtifacts(t.Context(), lines, func(SavedFile) {}); err != nil || failed > 0 {
		t.Fatal(failed, err)
	}
	at(put(t, a.Home, "ckpt/checkpoint-200/trainer_state.json", "{}"), time.Hour)
	at(put(t, a.Home, "ckpt/checkpoint-200/model.pt", string(torchFile())), time.Hour)

	// It is cut once all was set out to be brought; then a is gone, and with it one file
	// of the newest checkpoint.
	ctx, stop := context.WithCancel(t.Context())
	if _, err := f.Move(ctx, moveOf(t, f), nil, func(s MoveStage) {
		if s == MoveProves {
			stop()
		}
	}, nil); err == nil {
		t.Fatal("it was not cut")
	}
	stop()
	f.Close()
	a.Kill9()
	if err := os.Remove(filepath.Join(b.Home, "ckpt/checkpoint-200/model.pt")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.Home, "ckpt/checkpoint-100")); err != nil {
		t.Fatal(err)
	}
	f = reopen(t, dir, b)
	f.opt.Secrets = keys
	got, err := f.Move(t.Context(), moveOf(t, f), nil, quietly, func(sync.Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if text := reads(t, b.Home, "p/notes"); text != "new notes" {
		t.Errorf("what had come was replaced by an older one: %q", text)
	}
	if want := filepath.Join(b.Home, "ckpt/checkpoint-100"); got.Checkpoint != want || len(got.Passed) != 1 || !strings.Contains(got.Passed[0], "lost with a") {
		t.Errorf("checkpoint %q, passed %q", got.Checkpoint, got.Passed)
	}
	p := got.Plan
	if len(p.Lost) != 1 || p.LostBytes != int64(len(torchFile())) || !strings.HasSuffix(p.Lost[0], "checkpoint-200/model.pt") || len(p.Older) != 0 || len(p.Sources) != 3 || len(p.Missing) != 0 {
		t.Errorf("lost %q, older %q, sources %+v, missing %q", p.Lost, p.Older, p.Sources, p.Missing)
	}
	if got.Job == nil || !got.NoEnv || len(got.Trash) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestMoveWithoutSnapshot: of an instance that is gone and of which no snapshot was
// taken, the code comes from the folder of sync here, and artifacts from wherever they
// are, also from the very instance that it moves to. What differs there is refused.
func TestMoveWithoutSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := filepath.Join(dir, "code")
	f, a, b := two(t, dir)
	in, err := f.Instance("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(config.Instance{Name: "bb", SSH: sshLine(b, b.Addr)}); err != nil { // one letter is a drive
		t.Fatal(err)
	}
	in.Sync = []config.Pair{{Local: code, Remote: "~/p"}}
	in.Artifacts = []config.Artifact{{Path: "~/logs", To: "bb:kept/logs"}, {Path: "~/one.txt", To: filepath.Join(dir, "kept.txt")}}
	if err := f.Edit("a", in); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(code, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"code/train.sh": "exec sleep 300", "code/x.log": "left out", "code/.gitignore": "*.log\n", "kept.txt": "one"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, b.Home, "kept/logs/sub/l1", "log")
	put(t, b.Home, "one.txt", "mine")
	f.Close()
	a.Kill9()
	f = reopen(t, dir, b)
	spec := moveOf(t, f)
	spec.NoJob = true
	var taken *OccupiedError
	if _, err := f.Move(t.Context(), spec, nil, quietly, nil); !errors.As(err, &taken) || len(taken.Differ) != 1 || !taken.Skips || reads(t, b.Home, "p/train.sh") != "?" {
		t.Fatalf("what differs there is refused before anything is changed: %v", err)
	}
	spec.Skip = true
	got, err := f.Move(t.Context(), spec, nil, quietly, nil)
	if err != nil || got.Plan.Saved != nil || len(got.Plan.Sources) != 3 || got.Files != 3 {
		t.Fatalf("%v %+v", err, got)
	}
	for rel, want := range map[string]string{"p/train.sh": "exec sleep 300", "p/x.log": "?", "logs/sub/l1": "log", "one.txt": "mine"} {
		if is := reads(t, b.Home, rel); is != want {
			t.Errorf("%s: %q", rel, is)
		}
	}
}
