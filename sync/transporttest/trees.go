package transporttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/sync"
	"rentop/sync/tree"
)

// This file holds what a transport does when all goes well.

func resolve(t *testing.T, s *suite) {
	s.file(s.root, "a file", []byte("x"))
	if err := os.Symlink("root/a file", filepath.Join(s.Home, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, abs string
		typ       fs.FileMode
		missing   bool
	}{
		{"~", s.Home, fs.ModeDir, false},
		{"", s.Home, fs.ModeDir, false},
		{"root", s.root, fs.ModeDir, false},
		{"~/root/", s.root, fs.ModeDir, false},
		{s.root + "/a file", s.root + "/a file", 0, false},
		{"~/link", s.Home + "/link", 0, false},
		{"root/$(touch pwned)'\"", s.root + "/$(touch pwned)'\"", 0, true},
	} {
		abs, e, err := s.Transport.Resolve(t.Context(), c.path)
		if abs != c.abs || e.Mode.Type() != c.typ || errors.Is(err, fs.ErrNotExist) != c.missing || err != nil && !c.missing {
			t.Errorf("%q: %q %v %v", c.path, abs, e.Mode, err)
		}
		if c.path == "~/link" && e.Target != s.root+"/a file" {
			t.Errorf("a linked file is at %q", e.Target)
		}
	}
}

var strange = []string{"plain", "-n", "--help", " lead", "trail ", "new\nline", "new\n", "tab\t", "q'uo\"te", "back\\slash", "\\n", "$(x)", "*", "?", "[a]", "é", "e\u0301",
	"\xff\xfe", "~", "#x", "!x", ".hidden", "..two", "...", "a\rb", "日本", "%s", "emoji😀", "x;rm -rf y", strings.Repeat("n", 255), "d/-r", "d\n/x", "d/ d/y", ".g/.h"}

func names(t *testing.T, s *suite) {
	var files []sync.Entry
	for i, n := range strange {
		files = append(files, s.file(s.src, n, []byte(fmt.Sprint("content ", i))))
		s.dirs(s.root, filepath.Dir(n))
	}
	got, err := s.send(t.Context(), files, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i, n := range strange {
		if err, told := got[n]; err != nil || !told {
			t.Errorf("%q: %v (reported %v)", n, err, told)
			continue
		}
		s.want(filepath.Join(s.root, n), []byte(fmt.Sprint("content ", i)))
		paths = append(paths, n)
	}
	// listed, looked up, hashed and fetched back
	list := map[string]sync.Entry{}
	if err := s.Transport.List(t.Context(), s.root, func(e sync.Entry) error { list[e.Path] = e; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, n := range strange {
		if e, ok := list[n]; !ok || e.Size != files[i].Size || !tree.SameTime(e.ModTime, files[i].ModTime) || e.Mode.Perm() != 0o644 {
			t.Errorf("listed %q: %+v", n, e)
		}
	}
	found := map[string]bool{}
	if err := s.Transport.Stat(t.Context(), s.root, append([]string{"not there", "d"}, paths...), func(e sync.Entry) error { found[e.Path] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(found) != len(paths)+1 || found["not there"] {
		t.Errorf("looked up %d of %d", len(found), len(paths))
	}
	i := 0
	ask := slices.Insert(slices.Clone(paths), 3, "not there")
	if err := s.Transport.Hash(t.Context(), s.root, ask, func(p, h string, err error) {
		if p != ask[i] {
			t.Errorf("hashes out of order: %q", p)
		}
		if p == "not there" {
			if err == nil {
				t.Error("hashed what is not there")
			}
		} else if want := sum([]byte(fmt.Sprint("content ", slices.Index(strange, p)))); h != want || err != nil {
			t.Errorf("hash of %q: %s %v", p, h, err)
		}
		i++
	}); err != nil || i != len(ask) {
		t.Fatal(err, i)
	}
	dst := t.TempDir()
	for _, n := range paths {
		s.dirs(dst, filepath.Dir(n))
	}
	got, err = s.fetch(t.Context(), dst, files, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range strange {
		if err, told := got[n]; err != nil || !told {
			t.Errorf("fetch %q: %v (reported %v)", n, err, told)
			continue
		}
		s.want(filepath.Join(dst, n), []byte(fmt.Sprint("content ", i)))
	}
}

func attributes(t *testing.T, s *suite) {
	at := time.Date(2021, 3, 4, 5, 6, 7, 123456789, time.UTC)
	e := s.file(s.src, "run.sh", []byte("x"))
	e.Mode, e.ModTime = 0o750, at
	os.Chtimes(filepath.Join(s.src, "run.sh"), at, at)
	os.Chmod(filepath.Join(s.src, "run.sh"), 0o750)
	big := s.file(s.src, "big", random(1, 5<<20))
	big.ModTime = at
	os.Chtimes(filepath.Join(s.src, "big"), at, at)
	if got, err := s.send(t.Context(), []sync.Entry{e, big}, &meter{}); err != nil || got["run.sh"] != nil || got["big"] != nil {
		t.Fatal(err, got)
	}
	for _, n := range []string{"run.sh", "big"} {
		fi, err := os.Stat(filepath.Join(s.root, n))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]fs.FileMode{"run.sh": 0o750, "big": 0o644}[n]; fi.Mode().Perm() != want {
			t.Errorf("%s: mode %v", n, fi.Mode())
		}
		if !tree.SameTime(fi.ModTime(), at) || s.Exact && !fi.ModTime().Equal(at) {
			t.Errorf("%s: time %v", n, fi.ModTime())
		}
	}
	s.want(filepath.Join(s.root, "big"), random(1, 5<<20))
}

func missingRoot(t *testing.T, s *suite) {
	no := filepath.Join(s.Home, "no such")
	never := func(sync.Entry) error { t.Error("emitted"); return nil }
	if err := s.Transport.List(t.Context(), no, never); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("List: %v", err)
	}
	if err := s.Transport.Stat(t.Context(), no, []string{"x"}, never); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat: %v", err)
	}
}

func apply(t *testing.T, s *suite) {
	s.file(s.root, "old", nil)
	s.file(s.root, "full/x", nil)
	s.dirs(s.root, "empty", "linked")
	os.Symlink("linked", filepath.Join(s.root, "to dir"))
	at := time.Unix(1600000000, 0)
	dir := fs.ModeDir | 0o755
	acts := []sync.Action{
		{Op: sync.Delete, Entry: sync.Entry{Path: "old"}},
		{Op: sync.Delete, Entry: sync.Entry{Path: "never was"}},
		{Op: sync.Delete, Entry: sync.Entry{Path: "full", Mode: dir}}, // not empty: fails
		{Op: sync.Delete, Entry: sync.Entry{Path: "empty", Mode: dir}},
		{Op: sync.Mkdir, Entry: sync.Entry{Path: "a", Mode: dir}},
		{Op: sync.Mkdir, Entry: sync.Entry{Path: "a/-b\n'c", Mode: fs.ModeDir | 0o700}},
		{Op: sync.Link, Entry: sync.Entry{Path: "l", Mode: fs.ModeSymlink, Target: "-x\ny"}},
		{Op: sync.Link, Entry: sync.Entry{Path: "to dir", Mode: fs.ModeSymlink, Target: "a"}},
		{Op: sync.Link, Entry: sync.Entry{Path: "linked", Mode: fs.ModeSymlink, Target: "a"}}, // a folder is there: fails
		{Op: sync.Attr, Entry: sync.Entry{Path: "full/x", Mode: 0o640, ModTime: at}},
		{Op: sync.Attr, Entry: sync.Entry{Path: "not there", Mode: 0o640, ModTime: at}}, // fails
	}
	s.file(s.root, "m1/a", []byte("a"))
	s.file(s.root, "m1/-b'\n", []byte("b"))
	s.file(s.root, "m1/d/c", []byte("c"))
	s.file(s.root, "taken", []byte("taken"))
	os.Symlink("nowhere", filepath.Join(s.root, "m1/l"))
	move := func(from, to string) sync.Action {
		return sync.Action{Op: sync.Move, Entry: sync.Entry{Path: from}, To: to}
	}
	bin := tree.TrashDir + "/1/m1/"
	acts = append(acts, move("m1/a", bin+"a"), move("m1/-b'\n", bin+"-b'\n"), move("m1/gone", bin+"gone"), move("m1/l", bin+"l"),
		move("m1/d", "to/there/d"), move("to/there/d/c", "taken"))
	bad := map[string]bool{"full": true, "linked": true, "not there": true, "to/there/d/c": true}
	n := 0
	if err := s.Transport.Apply(t.Context(), s.root, acts, func(a sync.Action, err error) {
		n++
		if (err != nil) != bad[a.Entry.Path] {
			t.Errorf("%s %q: %v", a.Op, a.Entry.Path, err)
		}
	}); err != nil || n != len(acts) {
		t.Fatal(err, n)
	}
	for p, want := range map[string]string{"l": "-x\ny", "to dir": "a"} {
		if got, err := os.Readlink(filepath.Join(s.root, p)); got != want {
			t.Errorf("%s -> %q %v", p, got, err)
		}
	}
	if fi, err := os.Stat(filepath.Join(s.root, "a/-b\n'c")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Error(fi, err)
	}
	if fi, err := os.Stat(filepath.Join(s.root, "full/x")); err != nil || fi.Mode().Perm() != 0o640 || !fi.ModTime().Equal(at) {
		t.Error(fi, err)
	}
	if ents, _ := os.ReadDir(filepath.Join(s.root, "linked")); len(ents) > 0 {
		t.Error("a link was made inside a folder")
	}
	for p, text := range map[string]string{bin + "a": "a", bin + "-b'\n": "b", "to/there/d/c": "c", "taken": "taken"} {
		s.want(filepath.Join(s.root, p), []byte(text))
	}
	if to, err := os.Readlink(filepath.Join(s.root, bin, "l")); to != "nowhere" {
		t.Errorf("a symlink was moved as %q %v", to, err)
	}
	if ents, _ := os.ReadDir(filepath.Join(s.root, "m1")); len(ents) > 0 {
		t.Errorf("not moved: %v", ents)
	}
	// the trash is named, and not gone into
	var seen []string
	if err := s.Transport.List(t.Context(), s.root, func(e sync.Entry) error {
		if strings.HasPrefix(e.Path, tree.TrashDir) {
			seen = append(seen, e.Path)
		}
		return nil
	}); err != nil || !slices.Equal(seen, []string{tree.TrashDir}) {
		t.Errorf("listed %q, %v", seen, err)
	}
	seen = nil
	if err := s.Transport.List(t.Context(), filepath.Join(s.root, tree.TrashDir), func(e sync.Entry) error { seen = append(seen, e.Path); return nil }); err != nil || len(seen) != 5 {
		t.Errorf("in the trash: %q, %v", seen, err)
	}
	os.RemoveAll(filepath.Join(s.root, tree.TrashDir))
}
