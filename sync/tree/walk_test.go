//go:build unix

package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func walk(t testing.TB, root string, o Options) (paths []string, all map[string]Entry) {
	t.Helper()
	all = map[string]Entry{}
	if _, err := Walk(t.Context(), root, o, func(e Entry) error {
		paths = append(paths, e.Path)
		all[e.Path] = e
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return paths, all
}

// TestWalkAsWalkDir compares with the standard library on random trees.
func TestWalkAsWalkDir(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		root := t.TempDir()
		names := []string{"a", "a.b", "a b", "a-", "b", "\xff", "é", "z\n", "A", ".x", "a\x01"}
		var fill func(dir string, depth int)
		fill = func(dir string, depth int) {
			for _, n := range names {
				p := filepath.Join(dir, n)
				switch rnd.IntN(4) {
				case 0:
					write(t, p, n)
				case 1:
					os.Symlink("..", p)
				case 2:
					if depth < 3 {
						os.Mkdir(p, 0o755)
						fill(p, depth+1)
					}
				}
			}
		}
		fill(root, 0)
		var want []string
		filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if p != root {
				want = append(want, p[len(root)+1:])
			}
			return err
		})
		slices.SortFunc(want, Compare)
		got, all := walk(t, root, Options{})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %q\nwant %q", seed, got, want)
		}
		for p, e := range all {
			fi, err := os.Lstat(filepath.Join(root, p))
			if err != nil {
				t.Fatal(err)
			}
			size := int64(0)
			if fi.Mode().IsRegular() {
				size = fi.Size()
			}
			if e.Mode != fi.Mode()&(fs.ModeType|fs.ModePerm) || !e.ModTime.Equal(fi.ModTime()) || e.Size != size || (e.Target == "..") != (fi.Mode()&fs.ModeSymlink != 0) {
				t.Errorf("%q: %+v, the system says %v", p, e, fi)
			}
		}
	}
}

func TestWalkLargeFolder(t *testing.T) {
	root := t.TempDir()
	const files, folders = 2*statChunk + 200, foldersOut + 50
	for i := range files {
		if err := os.WriteFile(fmt.Sprintf("%s/f%05d", root, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range folders {
		os.MkdirAll(fmt.Sprintf("%s/d%05d/e", root, i), 0o755)
	}
	got, _ := walk(t, root, Options{})
	if len(got) != files+2*folders || !slices.IsSortedFunc(got, Compare) {
		t.Errorf("%d entries, sorted %v", len(got), slices.IsSortedFunc(got, Compare))
	}
}

func TestWalkLinksAndSpecials(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/b/first", "x")
	write(t, root+"/alone", "x")
	os.Link(root+"/b/first", root+"/b/second")
	os.Link(root+"/b/first", root+"/c")
	os.Link(root+"/alone", t.TempDir()+"/outside")
	write(t, root+"/"+TrashDir+"/1/files/x", "gone")
	write(t, root+"/"+TmpPrefix+"1/x", "half")
	if err := exec.Command("mkfifo", root+"/pipe").Run(); err != nil {
		t.Fatal(err)
	}
	got, all := walk(t, root, Options{GitIgnore: true, Exclude: []string{".rentop-*"}})
	want := []string{TmpPrefix + "1", TmpPrefix + "1/x", TrashDir, "alone", "b", "b/first", "b/second", "c", "pipe"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for p, want := range map[string]string{"b/first": "", "b/second": "b/first", "c": "b/first", "alone": ""} {
		if all[p].Link != want {
			t.Errorf("%s is linked to %q", p, all[p].Link)
		}
	}
	if all["pipe"].Mode.Type() != fs.ModeNamedPipe {
		t.Error(all["pipe"])
	}
	// a root behind a symlink is followed
	link := t.TempDir() + "/link"
	os.Symlink(root, link)
	if again, _ := walk(t, link, Options{}); len(again) != len(want) {
		t.Errorf("through a symlink: %q", again)
	}
	if _, err := Walk(t.Context(), root+"/c", Options{}, nil); err == nil {
		t.Error("walked a file")
	}
	if _, err := Walk(t.Context(), root+"/none", Options{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestWalkUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root reads everything: a folder that vanishes stands in")
	}
	root := t.TempDir()
	write(t, root+"/closed/x", "x")
	write(t, root+"/d/x", "x")
	write(t, root+"/z", "x")
	os.Chmod(root+"/closed", 0)
	defer os.Chmod(root+"/closed", 0o755)
	var bad, got []string
	_, err := Walk(t.Context(), root, Options{Problem: func(p string, m fs.FileMode, err error) {
		bad = append(bad, fmt.Sprint(len(got), p, m.IsDir(), errors.Is(err, fs.ErrPermission)))
	}}, func(e Entry) error {
		got = append(got, e.Path)
		return nil
	})
	if err != nil || len(got) < 4 {
		t.Fatal(err, got)
	}
	if os.Geteuid() != 0 && !slices.Equal(bad, []string{"1closedtruetrue"}) {
		t.Errorf("%q", bad)
	}
}

func TestWalkEnds(t *testing.T) {
	root := t.TempDir()
	for i := range 2000 {
		write(t, fmt.Sprintf("%s/d%d/f%d", root, i%50, i), "")
	}
	before := runtime.NumGoroutine()
	stop := errors.New("enough")
	n := 0
	_, err := Walk(t.Context(), root, Options{}, func(Entry) error {
		if n++; n == 100 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 100 {
		t.Error(err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Walk(ctx, root, Options{}, func(Entry) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
}

func TestWalkRules(t *testing.T) {
	root := t.TempDir()
	for _, p := range []string{"a.py", "out/best.pt", "out/deep/x.pt", "out/deep/y", "keep/out/z", "venv/lib/p.py", "data/1", "data/2"} {
		write(t, root+"/"+p, "x")
	}
	write(t, root+"/.gitignore", "out/\nvenv\n")
	write(t, root+"/keep/.gitignore", "!out/\n")
	write(t, root+"/.rentopignore", "data/1\n")
	os.MkdirAll(root+"/.git/info", 0o755)
	write(t, root+"/.git/info/exclude", "*\n") // not honoured
	for _, c := range []struct {
		name string
		o    Options
		want string
		out  int64
	}{
		{"all", Options{}, "a.py data/1 data/2 keep/out/z out/best.pt out/deep/x.pt out/deep/y venv/lib/p.py", 0},
		{"files", Options{GitIgnore: true, OwnIgnore: true}, "a.py data/2 keep/out/z", 3},
		{"own", Options{OwnIgnore: true}, "a.py data/2 keep/out/z out/best.pt out/deep/x.pt out/deep/y venv/lib/p.py", 1},
		{"exclude", Options{Exclude: []string{"*.py", "/keep"}}, "data/1 data/2 out/best.pt out/deep/x.pt out/deep/y", 3},
		{"include wins", Options{GitIgnore: true, Include: []string{"venv/"}, Exclude: []string{"lib", "data"}}, "a.py keep/out/z", 3},
		{"include reaches in", Options{GitIgnore: true, Include: []string{"out/best.pt"}}, "a.py data/1 data/2 keep/out/z out/best.pt", 2},
		{"include deep", Options{GitIgnore: true, Include: []string{"out/**/x.pt"}}, "a.py data/1 data/2 keep/out/z out/deep/x.pt", 3},
		{"include a folder", Options{GitIgnore: true, Include: []string{"/out/deep/"}}, "a.py data/1 data/2 keep/out/z out/deep/x.pt out/deep/y", 2},
		{"a bare name does not reach in", Options{GitIgnore: true, Include: []string{"best.pt"}}, "a.py data/1 data/2 keep/out/z", 2},
	} {
		rules := &Rules{}
		c.o.Rules = rules
		var got []string
		ignored, err := Walk(t.Context(), root, c.o, func(e Entry) error {
			if e.Mode.IsRegular() && !strings.Contains(e.Path, "ignore") && !strings.HasPrefix(e.Path, ".git/") {
				got = append(got, e.Path)
			}
			if rules.Excluded(e.Path, e.Mode.IsDir()) != (e.Path == "out" && len(c.o.Include) > 0 || e.Path == "out/deep" && len(c.o.Include) > 0 && c.name != "include a folder") {
				t.Errorf("%s: emitted %s, excluded %v", c.name, e.Path, rules.Excluded(e.Path, e.Mode.IsDir()))
			}
			return nil
		})
		if strings.Join(got, " ") != c.want || err != nil || ignored != c.out {
			t.Errorf("%s: %q, %d left out, %v", c.name, got, ignored, err)
		}
		kept := map[string]bool{}
		for _, p := range got {
			kept[p] = true
		}
		for _, p := range []string{"a.py", "out/best.pt", "out/deep/x.pt", "out/deep/y", "keep/out/z", "venv/lib/p.py", "data/1", "data/2"} {
			if rules.Excluded(p, false) == kept[p] {
				t.Errorf("%s: Excluded(%s) = %v", c.name, p, !kept[p])
			}
		}
	}
}

// BenchmarkWalk compares with find over 200 000 files; `go test -bench Walk -run xxx -benchtime 3x`.
// TestWalkBelow: a folder of a tree is walked as in the whole tree, and what it says
// takes the place of what it said before.
func TestWalkBelow(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "*.log\n", "sub/.gitignore": "!keep.log\n*.tmp\n", "sub/a.tmp": "", "sub/keep.log": "", "sub/x.log": "",
		"sub/deep/.gitignore": "y\n", "sub/deep/y": "", "sub/deep/z.tmp": "", "subway/s": "", "s": "",
	} {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	rules := &Rules{}
	o := Options{GitIgnore: true, Exclude: []string{"z*"}, Rules: rules}
	whole, _ := walk(t, root, o)
	o.Below = "sub"
	below, _ := walk(t, root, o)
	want := slices.DeleteFunc(whole, func(p string) bool { return p == "sub" || !Under(p, "sub") })
	if !slices.Equal(below, want) || len(want) != 4 {
		t.Errorf("below %q, in the whole %q", below, want)
	}
	write(t, filepath.Join(root, "sub/.gitignore"), "keep.log\n")
	os.Remove(filepath.Join(root, "sub/deep/.gitignore"))
	if below, _ = walk(t, root, o); !slices.Equal(below, []string{"sub/.gitignore", "sub/a.tmp", "sub/deep", "sub/deep/y"}) {
		t.Errorf("after a change: %q", below)
	}
	for p, out := range map[string]bool{"sub/keep.log": true, "sub/a.tmp": false, "sub/deep/y": false, "sub/deep/z.tmp": true, "x.log": true} {
		if rules.Excluded(p, false) != out {
			t.Errorf("%s is left out: %v", p, !out)
		}
	}
	o.Below = "gone/too"
	if below, _ = walk(t, root, o); len(below) > 0 {
		t.Errorf("below what is not there: %q", below)
	}
}

func BenchmarkWalk(b *testing.B) {
	root := b.TempDir()
	const files = 200_000
	for i := range files {
		p := fmt.Sprintf("%s/dir%02d/sub%02d/folder%d/some_file_name_%06d.py", root, i%20, i/20%20, i/400%25, i)
		if i < 20*20*25 {
			os.MkdirAll(filepath.Dir(p), 0o755)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if out, err := exec.Command("sh", "-c", `find "$1" -printf '%p %s %T@ %m\n' | wc -l`, "sh", root).CombinedOutput(); err != nil {
				b.Fatalf("%s %v", out, err)
			}
		}
	})
	b.Run("walk", func(b *testing.B) {
		var m runtime.MemStats
		peak := uint64(0)
		for b.Loop() {
			n := 0
			if _, err := Walk(b.Context(), root, Options{GitIgnore: true}, func(e Entry) error {
				if n++; n%20000 == 0 {
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapInuse+m.StackInuse)
				}
				return nil
			}); err != nil || n < files {
				b.Fatal(n, err)
			}
		}
		b.ReportMetric(float64(peak)/(1<<20), "MiB-peak")
	})
}
