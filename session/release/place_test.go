package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/session/phrase"
)

// folderPlace is a place over a folder, with faults.
type folderPlace struct {
	dir   string
	down  error
	looks int
	look  func(n int) // before the nth look
}

func (p *folderPlace) Close() error { return nil }

func (p *folderPlace) name(f Found) string { return filepath.Join(p.dir, filepath.FromSlash(f.Rel)) }

func (p *folderPlace) Prove(ctx context.Context, _ remote.Runner, files []Found, _ func(int)) ([]PlaceProof, error) {
	out := make([]PlaceProof, len(files))
	for i, f := range files {
		there, _ := os.ReadFile(f.Path)
		here, err := os.ReadFile(p.name(f))
		if out[i].SHA256 = fmt.Sprintf("%x", there); err != nil || string(here) != string(there) {
			out[i].Problem = phrase.Say("artifacts.notthere")
		}
	}
	versions, err := p.versions(files)
	for i, v := range versions {
		out[i].Version = v
	}
	return out, err
}

func (p *folderPlace) versions(files []Found) ([]string, error) {
	out := make([]string, len(files))
	for i, f := range files {
		if st, err := os.Stat(p.name(f)); err == nil {
			out[i] = fmt.Sprint(st.Size(), " ", st.ModTime())
		}
	}
	return out, p.down
}

func (p *folderPlace) Look(_ context.Context, files []Found) ([]string, error) {
	if p.looks++; p.look != nil {
		p.look(p.looks)
	}
	return p.versions(files)
}

func (p *folderPlace) Save(_ context.Context, _ remote.Runner, files []Found, done func(Found, error)) error {
	for _, f := range files {
		text, err := os.ReadFile(f.Path)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(p.name(f)), 0o755), os.WriteFile(p.name(f), text, 0o644))
		}
		done(f, err)
	}
	return p.down
}

// inBucket is a world whose artifacts go to a place alone.
func inBucket(t *testing.T) (*world, *folderPlace) {
	w := newWorld(t)
	w.fastEnv()
	p := &folderPlace{dir: t.TempDir()}
	w.deps.Artifacts = []Artifact{{Path: "~/out", To: "s3://runs/7b"}}
	w.deps.Place = func(to string) (Place, error) {
		if to != "s3://runs/7b" {
			return nil, fmt.Errorf("no place %s", to)
		}
		return p, nil
	}
	return w, p
}

func pullIt(View) Decision { return Decision{Kind: DecidePull} }

func TestPlaceIsFilledAndProven(t *testing.T) {
	t.Parallel()
	w, p := inBucket(t)
	v, person, err := w.release(Destroy, pullIt, typeName)
	if err != nil || v.Phase != Review || len(person.seen) != 2 {
		t.Fatalf("%v\n%s", err, text(v))
	}
	if got := line(person.seen[0], CheckArtifacts); got.State != Failed || !strings.Contains(got.Evidence[0].Detail.String(), "not at the destination") {
		t.Errorf("before: %+v", got)
	}
	if got, err := os.ReadFile(filepath.Join(p.dir, "logs/a.txt")); err != nil || string(got) != "log" {
		t.Errorf("%q %v", got, err)
	}
	if p.looks == 0 {
		t.Error("nothing looked once more before the teardown")
	}
}

// TestPlaceLosesAFile: what is gone at the last look stops the teardown.
func TestPlaceLosesAFile(t *testing.T) {
	t.Parallel()
	w, p := inBucket(t)
	w.prov.before = func(string, string) {
		if _, err := os.Stat(filepath.Join(p.dir, "model.pt")); err != nil {
			t.Error("torn down while a file was nowhere else")
		}
	}
	p.look = func(n int) {
		if n == 1 {
			os.Remove(filepath.Join(p.dir, "model.pt"))
		}
	}
	v, person, err := w.release(Destroy, pullIt, typeName, pullIt, typeName)
	if err != nil || v.Phase != Review || len(person.seen) != 4 || !strings.Contains(person.seen[2].Why.String(), "model.pt") {
		t.Fatalf("%v, asked %d times\n%s", err, len(person.seen), text(v))
	}
}

// TestPlaceIsAway: not known is failing, and a typed name waives it.
func TestPlaceIsAway(t *testing.T) {
	t.Parallel()
	w, p := inBucket(t)
	p.down = errors.New("there is no key for the bucket runs")
	v, person, err := w.release(Destroy, typeName)
	if err != nil || v.Phase != Review || len(person.seen) != 1 {
		t.Fatalf("%v, asked %d times\n%s", err, len(person.seen), text(v))
	}
	if got := line(person.seen[0], CheckArtifacts); got.State != Unknown || !strings.Contains(got.Evidence[0].Detail.String(), "no key") {
		t.Errorf("%+v", got)
	}
}

func TestKeepLeavesOut(t *testing.T) {
	t.Parallel()
	w, p := inBucket(t)
	w.deps.Artifacts[0].Keep = 1
	w.deps.Newest = func(files []Found, keep int) []Found {
		var out []Found
		for _, f := range files {
			if f.Rel != "logs/a.txt" {
				out = append(out, f)
			}
		}
		return out
	}
	os.WriteFile(filepath.Join(p.dir, "model.pt"), []byte("weights"), 0o644)
	v := w.inspect()
	if got := line(v, CheckArtifacts); got.State != Passed || !strings.HasPrefix(got.Summary.String(), "1 file,") {
		t.Errorf("%+v", got)
	}
	if got := line(v, CheckUnsaved); got.State != Failed || !strings.Contains(got.Evidence[0].What, "logs/a.txt") {
		t.Errorf("what keep gives up is lost, and said to be: %+v", got)
	}
}
