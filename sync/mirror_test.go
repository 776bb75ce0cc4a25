package sync

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/sync/tree"
)

// watched is a mirror over a folder of this machine, with its watcher.
type watched struct {
	t        *testing.T
	src, dst string
	m        *Mirror
	w        *Watcher
}

func newWatched(t *testing.T, s Spec) *watched {
	t.Helper()
	x := &watched{t: t, src: t.TempDir(), dst: filepath.Join(t.TempDir(), "there")}
	s.Local, s.Remote = x.src, x.dst
	x.start(s)
	return x
}

func (x *watched) start(s Spec) {
	x.t.Helper()
	var err error
	if x.m, err = NewMirror(s); err != nil {
		x.t.Fatal(err)
	}
	if x.w, err = Watch(x.src, x.m.Ignored); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { x.w.Close() })
	if _, err := x.m.All(x.t.Context(), Local{}, nil, nil); err != nil {
		x.t.Fatal(err)
	}
	x.w.Refresh()
}

// follow carries over what is heard until it is quiet.
func (x *watched) follow() (all Change) {
	x.t.Helper()
	all.Result = &Result{}
	for {
		ctx, cancel := context.WithTimeout(x.t.Context(), 700*time.Millisecond)
		ch, err := x.w.Next(ctx)
		cancel()
		if err != nil && !x.m.Pending() {
			return all
		}
		c, err := x.m.Some(x.t.Context(), ch, nil)
		if err != nil {
			x.t.Fatal(err)
		}
		x.w.Refresh()
		all.Sent = append(all.Sent, c.Sent...)
		all.Failed = append(all.Failed, c.Failed...)
		all.Deleted = append(all.Deleted, c.Deleted...)
		all.Held = append(all.Held, c.Held...)
	}
}

func (x *watched) write(name, text string) {
	x.t.Helper()
	full := filepath.Join(x.src, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		x.t.Fatal(err)
	}
}

// treeOf is a folder as text; the trash and what skip says are left out.
func treeOf(t *testing.T, root string, skip func(p string, dir bool) bool) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, full)
		rel = filepath.ToSlash(rel)
		if rel == "." {
			return nil
		}
		if rel == tree.TrashDir || skip != nil && skip(rel, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %v", rel, fi.Mode())
		switch {
		case fi.Mode().IsRegular():
			text, _ := os.ReadFile(full)
			line += fmt.Sprintf(" %d %q", fi.ModTime().UnixNano(), text)
		case fi.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(full)
			line += " -> " + to
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

func (x *watched) same() {
	x.t.Helper()
	if here, there := treeOf(x.t, x.src, x.m.Ignored), treeOf(x.t, x.dst, nil); here != there {
		x.t.Errorf("the two sides differ\nhere:\n%s\nthere:\n%s", here, there)
	}
}

func paths(list []Entry) string {
	var out []string
	for _, e := range list {
		out = append(out, e.Path)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestMirrorSaves: what editors and people do to files arrives, and nothing else is
// sent.
func TestMirrorSaves(t *testing.T) {
	x := newWatched(t, Spec{Delete: true})
	for i := range 12 {
		x.write(fmt.Sprintf("keep/%d", i), "k")
	}
	x.write(".gitignore", "*.log\nout/\n")
	x.write("train.py", "one")
	x.follow()
	x.same()
	for _, c := range []struct {
		name, sent, deleted string
		do                  func()
	}{
		{"a plain save", "train.py", "", func() { x.write("train.py", "two!") }},
		{"a save by rename", "train.py", "", func() {
			x.write(".train.py.swp", "x")
			x.write("4913", "")
			os.Remove(filepath.Join(x.src, "4913"))
			os.Rename(filepath.Join(x.src, "train.py"), filepath.Join(x.src, "train.py~"))
			x.write("train.py", "three")
			os.Remove(filepath.Join(x.src, "train.py~"))
			os.Remove(filepath.Join(x.src, ".train.py.swp"))
		}},
		{"new folders", "a/b/c/d.py a/b/e.py", "", func() { x.write("a/b/c/d.py", "d"); x.write("a/b/e.py", "e") }},
		{"a folder renamed", "z/b/c/d.py z/b/e.py", "a a/b a/b/c a/b/c/d.py a/b/e.py", func() {
			os.Rename(filepath.Join(x.src, "a"), filepath.Join(x.src, "z"))
		}},
		{"in the renamed folder", "z/b/c/d.py z/b/new.py", "", func() { x.write("z/b/c/d.py", "dd"); x.write("z/b/new.py", "n") }},
		{"what is ignored", "", "", func() { x.write("out/big.bin", "b"); x.write("z/x.log", "l") }},
		{"a file becomes a folder", "train.py/x", "", func() { os.Remove(filepath.Join(x.src, "train.py")); x.write("train.py/x", "x") }},
		{"and back", "train.py", "", func() { os.RemoveAll(filepath.Join(x.src, "train.py")); x.write("train.py", "back") }},
		{"removed", "", "z z/b z/b/c z/b/c/d.py z/b/e.py z/b/new.py", func() { os.RemoveAll(filepath.Join(x.src, "z")) }},
		{"a mode", "", "", func() { os.Chmod(filepath.Join(x.src, "train.py"), 0o755) }},
		{"not ignored any more", ".gitignore out/big.bin", "", func() { x.write(".gitignore", "*.log\n") }},
		{"and watched now", "out/big.bin out/sub/y", "", func() { x.write("out/big.bin", "bb"); x.write("out/sub/y", "y") }},
		{"a symlink", "", "", func() { os.Symlink("train.py", filepath.Join(x.src, "link")) }},
	} {
		c.do()
		all := x.follow()
		os.RemoveAll(filepath.Join(x.src, "z", "x.log")) // ignored, it would keep its folder
		if len(all.Failed) > 0 {
			t.Errorf("%s: failed %v", c.name, all.Failed)
		}
		slices.Sort(all.Deleted)
		if got := paths(all.Sent); got != c.sent || c.deleted != "" && strings.Join(all.Deleted, " ") != c.deleted {
			t.Errorf("%s: sent %q and deleted %q, want %q and %q", c.name, got, all.Deleted, c.sent, c.deleted)
		}
		x.same()
		if t.Failed() {
			return
		}
	}
}

// TestMirrorHolds: an emptied folder here empties nothing there, and without
// --delete nothing is removed at all.
func TestMirrorHolds(t *testing.T) {
	x := newWatched(t, Spec{Delete: true})
	for i := range 10 {
		x.write(fmt.Sprintf("d/%d", i), "k")
	}
	x.follow()
	os.RemoveAll(filepath.Join(x.src, "d"))
	if all := x.follow(); len(all.Held) != 11 || len(all.Deleted) != 0 {
		t.Errorf("held %d, deleted %d", len(all.Held), len(all.Deleted))
	}
	if _, err := os.Stat(filepath.Join(x.dst, "d/9")); err != nil {
		t.Error(err)
	}
	os.Rename(x.src, x.src+"-away")
	defer os.Rename(x.src+"-away", x.src)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ch, err := x.w.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := x.m.Some(t.Context(), ch, nil); err == nil || len(c.Held) > 0 {
		t.Errorf("a folder that is gone: %+v, %v", c, err)
	}

	y := newWatched(t, Spec{})
	y.write("a", "a")
	y.write("b", "b")
	y.follow()
	os.Remove(filepath.Join(y.src, "a"))
	y.write("c", "c")
	y.follow()
	if _, err := os.Stat(filepath.Join(y.dst, "a")); err != nil {
		t.Error("removed though nobody asked for it")
	}
	y.write("a", "a again")
	if all := y.follow(); paths(all.Sent) != "a" {
		t.Errorf("sent %s", paths(all.Sent))
	}
}

// TestMirrorRules: what the person leaves out stays here, and a folder that comes
// instead of another of its name brings its own rules.
func TestMirrorRules(t *testing.T) {
	x := newWatched(t, Spec{Delete: true, Exclude: []string{"*.tmp"}})
	x.write("lib/"+tree.GitIgnoreFile, "data\n")
	x.write("lib/data", "left out")
	x.write("a.tmp", "left out")
	x.write("a", "sent")
	x.follow()
	x.same()
	if err := os.Rename(filepath.Join(x.src, "lib"), filepath.Join(t.TempDir(), "lib")); err != nil {
		t.Fatal(err)
	}
	x.follow()
	x.write("new/data", "not left out any more")
	x.write("new/b.tmp", "left out")
	if err := os.Rename(filepath.Join(x.src, "new"), filepath.Join(x.src, "lib")); err != nil {
		t.Fatal(err)
	}
	x.follow()
	x.same()
	for p, there := range map[string]bool{"a": true, "a.tmp": false, "lib/data": true, "lib/b.tmp": false} {
		if _, err := os.Stat(filepath.Join(x.dst, p)); (err == nil) != there {
			t.Errorf("%s is there: %v", p, err == nil)
		}
	}
}

// TestMirrorNewFolder: whatever of a new folder is heard, and in whatever order, its
// rules hold for it from the first look.
func TestMirrorNewFolder(t *testing.T) {
	for _, ch := range []Changes{
		{Paths: []string{"new/lib/data", "new/lib/kept"}},
		{Paths: []string{"new/lib/data"}, Trees: []string{"new"}},
		{Paths: []string{"new/lib/data", "new/lib"}, Trees: []string{"new/lib", "new"}},
		{Trees: []string{"new/lib"}},
	} {
		x := newWatched(t, Spec{})
		x.write("new/lib/"+tree.GitIgnoreFile, "data\n")
		x.write("new/lib/data", "left out")
		x.write("new/lib/kept", "sent")
		if _, err := x.m.Some(t.Context(), ch, nil); err != nil {
			t.Fatal(err)
		}
		x.same()
		if _, err := os.Stat(filepath.Join(x.dst, "new/lib/kept")); err != nil {
			t.Error(ch, err)
		}
	}
}

// TestMirrorBranch: a switch to another branch of thousands of files arrives, also
// when events are lost on the way.
func TestMirrorBranch(t *testing.T) {
	for _, lost := range []bool{false, true} {
		x := newWatched(t, Spec{Delete: true})
		for i := range 2000 {
			x.write(fmt.Sprintf("pkg%d/f%d.py", i%97, i), "main")
		}
		x.follow()
		x.same()
		for i := range 2000 {
			name := filepath.Join(x.src, fmt.Sprintf("pkg%d/f%d.py", i%97, i))
			switch i % 4 {
			case 0:
				os.Remove(name)
				x.write(fmt.Sprintf("pkg%d/f%d.py", i%97, i), "branch")
			case 1:
				os.Remove(name)
			case 2:
				x.write(fmt.Sprintf("new%d/f%d.py", i%31, i), "new")
			}
		}
		if lost {
			x.w.mu.Lock()
			clear(x.w.paths)
			clear(x.w.trees)
			x.w.all = true
			x.w.note()
			x.w.mu.Unlock()
		}
		if all := x.follow(); len(all.Failed)+len(all.Held) > 0 {
			t.Errorf("failed %v, held %d", all.Failed, len(all.Held))
		}
		x.same()
	}
}

// TestMirrorPolls: where no folder can be watched, all is read again and again.
func TestMirrorPolls(t *testing.T) {
	x := newWatched(t, Spec{})
	x.w.mu.Lock()
	x.w.poll(fs.ErrInvalid)
	x.w.mu.Unlock()
	x.w.fs.Close()
	x.write("a/b", "c")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ch, err := x.w.Next(ctx)
	if err != nil || !ch.All || x.w.Polling() == "" {
		t.Fatalf("%+v, %v, %q", ch, err, x.w.Polling())
	}
	if _, err := x.m.Some(t.Context(), ch, nil); err != nil {
		t.Fatal(err)
	}
	x.same()
}

// TestMirrorRandom edits at random while changes are carried over, and compares
// when it is quiet.
func TestMirrorRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	x := newWatched(t, Spec{Delete: true, Force: true})
	name := func() string {
		parts := []string{"a", "b", "c", "d.py", "e.log", "f"}
		p := parts[r.IntN(len(parts))]
		for range r.IntN(3) {
			p = filepath.Join(parts[r.IntN(3)], p)
		}
		return filepath.Join(x.src, p)
	}
	for range 8 {
		for range 1 + r.IntN(40) {
			switch p := name(); r.IntN(9) {
			case 0, 1, 2:
				os.MkdirAll(filepath.Dir(p), 0o755)
				os.WriteFile(p, []byte(fmt.Sprint(r.IntN(1000))), 0o644)
			case 3:
				os.RemoveAll(p)
			case 4:
				os.Rename(p, name())
			case 5:
				os.MkdirAll(p, 0o755)
			case 6:
				os.Symlink("a", p)
			case 7:
				if fi, err := os.Lstat(p); err == nil && fi.Mode().IsRegular() {
					os.Chmod(p, 0o600|fs.FileMode(r.IntN(2))*0o100)
				}
			case 8:
				os.WriteFile(filepath.Join(x.src, ".gitignore"), []byte([]string{"", "*.log\n", "b/\n"}[r.IntN(3)]), 0o644)
			}
			if r.IntN(4) == 0 {
				time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond)
			}
		}
		x.follow()
	}
	// What was sent before it was ignored stays there: that is what ignoring means.
	os.Remove(filepath.Join(x.src, ".gitignore"))
	os.WriteFile(filepath.Join(x.src, "last"), nil, 0o644)
	x.follow()
	x.same()
}

// TestMirrorRemembersWhatFailed: what is in the way of a file is not forgotten, and
// goes once it may.
func TestMirrorRemembersWhatFailed(t *testing.T) {
	x := newWatched(t, Spec{Delete: true, Force: true})
	x.write("a/k/x", "1")
	x.follow()
	x.write(".gitignore", "k/\n")
	x.follow()
	os.RemoveAll(filepath.Join(x.src, "a"))
	x.write("a", "a file now")
	if c := x.follow(); len(c.Failed) == 0 {
		t.Fatal("an ignored file was removed")
	}
	os.Remove(filepath.Join(x.src, ".gitignore"))
	x.write("last", "")
	x.follow()
	x.same()
}
