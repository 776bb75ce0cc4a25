package release

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote/tmux"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden holds the words of a whole picture: what a person reads before
// they type the name.
func TestGolden(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	cloned(t, w, "project")
	w.there("project/train.py", "edited")
	w.there("data/labels.csv", strings.Repeat("l", 3_400_000))
	w.there("hf/hub/models--m/blob", "x")
	w.there("out/epoch2.pt", "two")
	w.there("evil\x1b[2J\n.bin", "x")
	w.jobs = []tmux.Job{{ID: "j1", Name: "train", Command: "python train.py", State: tmux.Running}}
	w.deps.Artifacts = append(w.deps.Artifacts, Artifact{Path: "~/ckpt", To: "s3://bucket/run7"})
	_, p, err := w.release(Destroy, cancel)
	must(t, err)
	got := strings.NewReplacer(w.home, "HOME", w.here, "HERE").Replace(text(p.seen[0]))
	name := filepath.Join("testdata", "picture.golden")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	must(t, err)
	if got != string(want) {
		t.Errorf("the picture changed (-update rewrites it):\n%s", got)
	}
}
