package release

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
)

func takePortable(paths ...string) func(View) Decision {
	return func(View) Decision {
		return Decision{Kind: DecideSnapshot, Snapshot: PortableSnapshot, Paths: paths}
	}
}

// A portable snapshot saves what it holds, and only while it is whole and the
// files are as it holds them.
func TestPortableSnapshot(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("data/labels.csv", "labels")
	for _, n := range hostileNames {
		w.there("data/odd/"+n, "x"+n)
	}
	must(t, os.Link(filepath.Join(w.home, "data/labels.csv"), filepath.Join(w.home, "data/linked.csv")))
	v, p, err := w.release(Destroy, takePortable(), typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 2 {
		t.Fatalf("%v, %d pictures\n%s", err, len(p.seen), text(v))
	}
	if n := len(p.seen[0].Lost); n != len(hostileNames)+2 {
		t.Errorf("%d lost at first", n)
	}
	after := p.seen[1]
	if c := line(after, CheckSnapshot); c.State != Passed || len(c.Evidence) != 1 || !strings.Contains(c.Evidence[0].Detail.String(), "read back") {
		t.Errorf("%+v", c)
	}
	if len(after.Lost) != 0 {
		t.Errorf("the archive holds them all, yet lost: %+v", after.Lost)
	}
	list, _ := filepath.Glob(filepath.Join(w.deps.SnapshotDir, "a100-*.tar.zst"))
	if _, err := exec.LookPath("zstd"); err == nil && len(list) != 1 {
		t.Fatalf("archives: %v", list)
	}
	if left, _ := filepath.Glob(filepath.Join(w.deps.SnapshotDir, ".rentop-*")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if _, err := os.Stat(strings.TrimSuffix(list[0], ".tar.zst") + ".env/system.txt"); err != nil {
		t.Error("the environment is not beside it:", err)
	}
	// The ordinary tools agree: unpack it, and sha256sum -c its manifest.
	dir := t.TempDir()
	for _, cmd := range [][]string{{"tar", "-xf", list[0], "-C", dir}, {"sh", "-c", "cd " + remote.Quote(dir) + " && sha256sum --quiet -c " + remote.Quote(list[0]+".sha256")}} {
		if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", cmd, err, out)
		}
	}
}

func TestSnapshotThatNoLongerFits(t *testing.T) {
	for name, spoil := range map[string]func(w *world, archive string){
		"the file changed there": func(w *world, _ string) { w.there("data/labels.csv", "LABELS") },
		"the archive was cut":    func(_ *world, a string) { must(t, os.Truncate(a, 40)) },
		"the manifest was edited": func(_ *world, a string) {
			must(t, os.WriteFile(a+".sha256", []byte(sum("LABELS")+"  data/labels.csv\n"), 0o600))
		},
		"the archive is gone": func(_ *world, a string) { must(t, os.Remove(a)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			w.there("data/labels.csv", "labels")
			again := func(View) Decision {
				list, _ := filepath.Glob(filepath.Join(w.deps.SnapshotDir, "*.tar.[gz]*[tz]"))
				spoil(w, list[0])
				return Decision{Kind: DecideAgain}
			}
			v, p, err := w.release(Destroy, takePortable("~/data"), again, cancel)
			if err != nil || len(p.seen) != 3 {
				t.Fatalf("%v\n%s", err, text(v))
			}
			if len(p.seen[1].Lost) != 0 || len(p.seen[2].Lost) == 0 {
				t.Errorf("lost before %v, after %v", p.seen[1].Lost, p.seen[2].Lost)
			}
		})
	}
}

// What goes wrong while it is taken leaves no archive and no claim.
func TestSnapshotFails(t *testing.T) {
	for name, c := range map[string]struct {
		paths []string
		wrap  func(remote.Runner) remote.Runner
		says  string
	}{
		"a missing path": {[]string{"~/nowhere"}, nil, "could not be read"},
		"nothing":        {nil, nil, "nothing to keep"},
		"cut at the end": {[]string{"~/out"}, func(r remote.Runner) remote.Runner { return tamper{r, func(b []byte) []byte { return b[:len(b)-1] }} }, "differs from the one sent"},
		"a flipped byte": {[]string{"~/out"}, func(r remote.Runner) remote.Runner {
			return tamper{r, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }}
		}, "differs from the one sent"},
		"connection lost": {[]string{"~/out"}, func(r remote.Runner) remote.Runner { return lose{r} }, "connection lost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fastEnv()
			if c.wrap != nil {
				w.deps.Runner = c.wrap(w.deps.Runner)
			}
			v, p, err := w.release(Destroy, takePortable(c.paths...), cancel)
			if err != nil || len(p.seen) != 2 {
				t.Fatalf("%v\n%s", err, text(v))
			}
			got := line(p.seen[1], CheckSnapshot)
			if got.State != Offered || !strings.Contains(got.Summary.String(), c.says) {
				t.Errorf("%+v", got)
			}
			if list, _ := filepath.Glob(filepath.Join(w.deps.SnapshotDir, "*.tar.[gz]*[tz]")); len(list) != 0 {
				t.Errorf("an archive stands there: %v", list)
			}
		})
	}
}

// tamper changes the archive on its way.
type tamper struct {
	remote.Runner
	change func([]byte) []byte
}

func (w tamper) Run(ctx context.Context, c remote.Cmd) error {
	if !strings.Contains(c.Script, "rentop-snap") {
		return w.Runner.Run(ctx, c)
	}
	var b strings.Builder
	out := c.Stdout
	c.Stdout = &b
	if err := w.Runner.Run(ctx, c); err != nil {
		return err
	}
	_, err := out.Write(w.change([]byte(b.String())))
	return err
}

type lose struct{ remote.Runner }

func (w lose) Run(ctx context.Context, c remote.Cmd) error {
	if !strings.Contains(c.Script, "rentop-snap") {
		return w.Runner.Run(ctx, c)
	}
	_, _ = io.WriteString(c.Stdout, "half of")
	return errors.New("connection lost")
}

func TestProviderSnapshot(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("scratch.bin", "x")
	take := func(View) Decision { return Decision{Kind: DecideSnapshot, Snapshot: ProviderSnapshot} }
	v, p, err := w.release(Destroy, take, cancel)
	if err != nil || line(v, CheckSnapshot).State != Passed || line(v, CheckSnapshot).Evidence[0].What != "snap-i-1" {
		t.Fatalf("%v\n%s", err, text(v))
	}
	if len(p.seen[1].Lost) != 1 {
		t.Error("an image that nobody proved saves nothing")
	}

	w = newWorld(t)
	w.fastEnv()
	w.prov.snapshot = errors.New("quota")
	v, _, err = w.release(Destroy, take, cancel)
	if c := line(v, CheckSnapshot); err != nil || c.State != Offered || !strings.Contains(c.Summary.String(), "quota") {
		t.Fatalf("%v %+v", err, c)
	}
	decline := func(View) Decision { return Decision{Kind: DecideSnapshot, Snapshot: NoSnapshot} }
	if v, _, err = w.release(Destroy, decline, cancel); err != nil || line(v, CheckSnapshot).Summary.String() != "declined" {
		t.Fatalf("%v %+v", err, line(v, CheckSnapshot))
	}
}

// A snapshot that was taken before a crash counts after it, once it was proven
// whole again; one that was only begun is told as not known.
func TestSnapshotsAfterACrash(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("data/labels.csv", "labels")
	die := func(kind SnapshotKind, step string) {
		j := &killJournal{}
		j.entries, _ = w.deps.Journal.Load(t.Context())
		w.deps.Journal = j
		var m *Machine
		w.deps.Changed = func(v View) {
			if v.Phase == Waiting {
				if v.Checks[5].State == Passed && step == "" {
					j.dead = true
				}
				m.Decide(Decision{Kind: DecideSnapshot, Snapshot: kind})
			}
			if v.Phase == Saving && step == "before the end" {
				j.dead = true
			}
		}
		m, err := New(w.deps, Destroy)
		must(t, err)
		if err := m.Run(t.Context()); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		j.dead = false
	}
	resumed := func() View {
		var m *Machine
		w.deps.Changed = func(v View) {
			if v.Phase == Waiting {
				w.lastView = v
				m.Decide(Decision{Kind: DecideCancel})
			}
		}
		m, err := Resume(t.Context(), w.deps)
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		must(t, m.Run(t.Context()))
		return w.lastView
	}
	die(PortableSnapshot, "")
	if v := resumed(); len(v.Lost) != 0 || line(v, CheckSnapshot).State != Passed {
		t.Errorf("%s", text(v))
	}
	die(ProviderSnapshot, "before the end")
	if v := resumed(); !strings.Contains(line(v, CheckSnapshot).Summary.String(), "not known") {
		t.Errorf("%s", text(v))
	}
}

func TestPull(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	w.there("out/new/epoch2.pt", "two")
	w.local("out/model.pt", "older")
	for _, n := range hostileNames {
		w.there("data/"+n, "x"+n)
	}
	pull := func(View) Decision { return Decision{Kind: DecidePull} }
	v, p, err := w.release(Destroy, pull, typeName)
	if err != nil || v.Phase != Review || len(p.seen) != 2 {
		t.Fatalf("%v, %d pictures\n%s", err, len(p.seen), text(v))
	}
	if len(p.seen[0].Lost) == 0 || len(p.seen[1].Fails()) != 0 {
		t.Errorf("before: %+v\nafter: %s", p.seen[0].Lost, text(p.seen[1]))
	}
}

// TestPullKeepsOlder: what was pulled from an instance that had the name before is
// not written over, also where both have a file of one name.
func TestPullKeepsOlder(t *testing.T) {
	w := newWorld(t)
	w.fastEnv()
	there := w.there("data/log.txt", "of this rental")
	here := filepath.Join(w.deps.PullDir, filepath.FromSlash(there))
	must(t, os.MkdirAll(filepath.Dir(here), 0o700))
	must(t, os.WriteFile(here, []byte("of the rental before"), 0o600))
	v, _, err := w.release(Destroy, func(View) Decision { return Decision{Kind: DecidePull} }, typeName)
	if err != nil || v.Phase != Review {
		t.Fatalf("%v\n%s", err, text(v))
	}
	found := map[string]bool{}
	files, err := filepath.Glob(here + "*")
	must(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		found[string(b)] = true
	}
	if !found["of this rental"] || !found["of the rental before"] {
		t.Errorf("kept: %v in %v", found, files)
	}
}
