// Package transporttest is what every sync.Transport must pass. The instance of
// a test is this machine, so that its side can be looked at directly.
package transporttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/sync"
)

// Env is one transport under test.
type Env struct {
	Transport sync.Transport
	Home      string            // the login's home folder, as this process sees it; empty
	Exact     bool              // keeps times finer than a second
	Small     string            // a folder on the instance with about 1 MB of space; "" skips
	Own       func(path string) // gives a file made by the test to the login; nil: it is
	Unsafe    bool              // the transport lives on this machine: no interruption between the sides
}

// Run runs the suite; open makes a fresh instance for each test.
func Run(t *testing.T, open func(t *testing.T) Env) {
	for _, c := range []struct {
		name string
		fn   func(*testing.T, *suite)
	}{
		{"resolve", resolve}, {"names", names}, {"attributes", attributes}, {"missing root", missingRoot},
		{"apply", apply}, {"failures", failures}, {"replace", replace}, {"interrupt", interrupt}, {"resume", resume},
		{"disk full", diskFull}, {"escape", escape}, {"changed", changed}, {"many", many}, {"again", again},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t)
			s := &suite{T: t, Env: e, src: t.TempDir(), root: filepath.Join(e.Home, "root")}
			if err := os.Mkdir(s.root, 0o777); err != nil {
				t.Fatal(err)
			}
			os.Chmod(s.root, 0o777)
			c.fn(t, s)
			s.noLitter()
		})
	}
}

type suite struct {
	*testing.T
	Env
	src, root string
}

// meter counts.
type meter struct {
	mu            stdsync.Mutex
	content, wire int64
	hook          func(content int64)
}

func (m *meter) Content(n int64) {
	m.mu.Lock()
	m.content += n
	c, hook := m.content, m.hook
	m.mu.Unlock()
	if hook != nil {
		hook(c)
	}
}

func (m *meter) Wire(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wire += n
}
func (m *meter) Current(string) {}

func (s *suite) file(dir, name string, data []byte) sync.Entry {
	s.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		s.Fatal(err)
	}
	os.Chmod(filepath.Dir(p), 0o777)
	defer s.own(p)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		s.Fatal(err)
	}
	fi, err := os.Stat(p)
	if err != nil {
		s.Fatal(err)
	}
	return sync.Entry{Path: name, Size: fi.Size(), Mode: 0o644, ModTime: fi.ModTime()}
}

func (s *suite) send(ctx context.Context, files []sync.Entry, m *meter) (map[string]error, error) {
	got := map[string]error{}
	err := s.Transport.Send(ctx, s.src, s.root, files, m, s.collect(got))
	return got, err
}

func (s *suite) fetch(ctx context.Context, dst string, files []sync.Entry, m *meter) (map[string]error, error) {
	got := map[string]error{}
	err := s.Transport.Fetch(ctx, s.root, dst, files, m, s.collect(got))
	return got, err
}

func (s *suite) collect(got map[string]error) func(sync.Entry, error) {
	return func(e sync.Entry, err error) {
		if _, twice := got[e.Path]; twice {
			s.Errorf("%q was reported twice", e.Path)
		}
		if err == nil && len(e.SHA256) != 64 {
			s.Errorf("%q was reported without a sum", e.Path)
		}
		got[e.Path] = err
	}
}

func (s *suite) own(p string) {
	if s.Own != nil && strings.HasPrefix(p, s.Home+"/") {
		s.Own(filepath.Dir(p))
		s.Own(p)
	}
}

func (s *suite) dirs(dir string, names ...string) {
	for _, n := range names {
		if err := os.MkdirAll(filepath.Join(dir, n), 0o777); err != nil {
			s.Fatal(err)
		}
		os.Chmod(filepath.Join(dir, n), 0o777)
		s.own(filepath.Join(dir, n))
	}
}

// noLitter looks for temporary files. What a cut left is swept by the next run,
// which each test has made; parts of large files are gone once they are whole.
func (s *suite) noLitter() {
	s.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		var found []string
		filepath.WalkDir(s.Home, func(p string, d fs.DirEntry, err error) error {
			if err == nil && strings.Contains(d.Name(), ".rentop-") {
				found = append(found, p)
			}
			return nil
		})
		if len(found) == 0 {
			return
		}
		if time.Now().After(deadline) { // the instance may still be cleaning after a cut
			s.Errorf("left behind: %q", found)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *suite) want(file string, data []byte) {
	s.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		s.Error(err)
	} else if !bytes.Equal(got, data) {
		s.Errorf("%s: %d bytes, want %d, or with other content", file, len(got), len(data))
	}
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	r.Read(b)
	return b
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

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
		if e, ok := list[n]; !ok || e.Size != files[i].Size || !sync.SameTime(e.ModTime, files[i].ModTime) || e.Mode.Perm() != 0o644 {
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
		if !sync.SameTime(fi.ModTime(), at) || s.Exact && !fi.ModTime().Equal(at) {
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
	bad := map[string]bool{"full": true, "linked": true, "not there": true}
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
}

// failures: each has its reason, and the rest goes on.
func failures(t *testing.T, s *suite) {
	var files []sync.Entry
	for i := range 20 {
		files = append(files, s.file(s.src, fmt.Sprint("ok", i), []byte("fine")))
	}
	long := s.file(s.src, "short", []byte("x"))
	long.From, long.Path = "short", strings.Repeat("x", 300)
	gone := sync.Entry{Path: "gone", Size: 3, Mode: 0o644}
	inPlace := s.file(s.src, "in place", []byte("x"))
	s.file(s.root, "in place/kept", []byte("kept"))
	bigInPlace := s.file(s.src, "big in place", random(2, 5<<20))
	s.dirs(s.root, "big in place")
	files = append(files, long, gone, inPlace, bigInPlace)
	got, err := s.send(t.Context(), files, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range files {
		err, told := got[e.Path]
		if ok := strings.HasPrefix(e.Path, "ok"); !told || (err == nil) != ok {
			t.Errorf("%.20q: %v (reported %v)", e.Path, err, told)
		} else if ok {
			s.want(filepath.Join(s.root, e.Path), []byte("fine"))
		} else if len(err.Error()) < 4 || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%.20q: reason %q", e.Path, err)
		}
	}
	s.want(filepath.Join(s.root, "in place/kept"), []byte("kept"))
	back, err := s.fetch(t.Context(), t.TempDir(), []sync.Entry{files[0], gone}, &meter{})
	if err != nil || back["ok0"] != nil || back["gone"] == nil {
		t.Error(err, back)
	}
}

// replace: a reader sees the old content or the new one, never another.
func replace(t *testing.T, s *suite) {
	const rounds = 6
	var versions [][]byte
	for i := range rounds {
		versions = append(versions, bytes.Repeat([]byte{byte('a' + i)}, 300<<10))
	}
	p := filepath.Join(s.root, "f")
	s.file(s.root, "f", versions[0])
	os.Chmod(p, 0o666)
	stop := make(chan struct{})
	var wg stdsync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(p)
			if err != nil {
				t.Error(err)
				return
			}
			if len(b) != len(versions[0]) || bytes.Count(b, b[:1]) != len(b) {
				t.Errorf("a reader saw %d bytes, or two versions in one", len(b))
				return
			}
		}
	})
	for _, v := range versions[1:] {
		if got, err := s.send(t.Context(), []sync.Entry{s.file(s.src, "f", v)}, &meter{}); err != nil || got["f"] != nil {
			t.Error(err, got)
		}
	}
	close(stop)
	wg.Wait()
	s.want(p, versions[rounds-1])
}

// interrupt: cut at random points, each file is the old or the new one; the
// next run completes and cleans.
func interrupt(t *testing.T, s *suite) {
	var files []sync.Entry
	oldData, newData := map[string][]byte{}, map[string][]byte{}
	for i := range 60 {
		n := fmt.Sprintf("d%d/f%d", i%3, i)
		size := 10000
		if i == 0 {
			size = 6 << 20
		}
		oldData[n], newData[n] = random(uint64(i), size/2), random(uint64(i)+1000, size)
		s.file(s.root, n, oldData[n])
		os.Chmod(filepath.Join(s.root, n), 0o666)
		files = append(files, s.file(s.src, n, newData[n]))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		ctx, cancel := context.WithCancel(t.Context())
		at := rnd.Int64N(6 << 20)
		got, err := s.send(ctx, files, &meter{hook: func(c int64) {
			if c >= at {
				cancel()
			}
		}})
		cancel()
		if err == nil && len(got) < len(files) {
			t.Error("cut, and not said so")
		}
		for n := range newData {
			b, err := os.ReadFile(filepath.Join(s.root, n))
			if err != nil || !bytes.Equal(b, oldData[n]) && !bytes.Equal(b, newData[n]) {
				t.Fatalf("%s is neither the old nor the new one (%d bytes, %v)", n, len(b), err)
			}
		}
		for n, err := range got {
			if b, _ := os.ReadFile(filepath.Join(s.root, n)); err == nil && !bytes.Equal(b, newData[n]) {
				t.Errorf("%s was reported and is not there", n)
			}
		}
	}
	got, err := s.send(t.Context(), files, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range newData {
		if got[n] != nil {
			t.Error(n, got[n])
		}
		s.want(filepath.Join(s.root, n), newData[n])
	}
	// the same for the way back
	dst := s.TempDir()
	s.dirs(dst, "d0", "d1", "d2")
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		at := rnd.Int64N(6 << 20)
		s.fetch(ctx, dst, files, &meter{hook: func(c int64) {
			if c >= at {
				cancel()
			}
		}})
		cancel()
		for n := range newData {
			b, err := os.ReadFile(filepath.Join(dst, n))
			if err == nil && !bytes.Equal(b, newData[n]) {
				t.Fatalf("%s is half fetched", n)
			}
		}
	}
	if _, err = s.fetch(t.Context(), dst, files, &meter{}); err != nil {
		t.Fatal(err)
	}
	for n := range newData {
		s.want(filepath.Join(dst, n), newData[n])
	}
	filepath.WalkDir(dst, func(p string, d fs.DirEntry, err error) error {
		if strings.Contains(p, ".rentop-") {
			t.Errorf("left behind: %s", p)
		}
		return err
	})
}

// resume: what was acknowledged before a cut does not travel again.
func resume(t *testing.T, s *suite) {
	if s.Unsafe {
		t.Skip("a copy on one machine is not resumed")
	}
	data := random(9, 40<<20)
	e := s.file(s.src, "big", data)
	cut := func(run func(context.Context, *meter) error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := run(ctx, &meter{hook: func(c int64) {
			if c > 30<<20 {
				cancel()
			}
		}}); err == nil {
			t.Error("cut, and not said so")
		}
	}
	cut(func(ctx context.Context, m *meter) error { _, err := s.send(ctx, []sync.Entry{e}, m); return err })
	if _, err := os.Stat(filepath.Join(s.root, "big")); err == nil {
		t.Error("half a file has its final name")
	}
	m := &meter{}
	if got, err := s.send(t.Context(), []sync.Entry{e}, m); err != nil || got["big"] != nil {
		t.Fatal(err, got)
	}
	s.want(filepath.Join(s.root, "big"), data)
	if m.wire > 28<<20 {
		t.Errorf("%d bytes travelled again", m.wire)
	}
	if m.content != int64(len(data)) {
		t.Errorf("counted %d of %d bytes", m.content, len(data))
	}
	dst := t.TempDir()
	cut(func(ctx context.Context, m *meter) error {
		_, err := s.fetch(ctx, dst, []sync.Entry{e}, m)
		return err
	})
	m = &meter{}
	if got, err := s.fetch(t.Context(), dst, []sync.Entry{e}, m); err != nil || got["big"] != nil {
		t.Fatal(err, got)
	}
	s.want(filepath.Join(dst, "big"), data)
	if m.wire > 28<<20 {
		t.Errorf("%d bytes travelled back again", m.wire)
	}
}

func diskFull(t *testing.T, s *suite) {
	if s.Small == "" {
		t.Skip("no small file system")
	}
	var files []sync.Entry
	for i := range 30 {
		files = append(files, s.file(s.src, fmt.Sprint("f", i), random(uint64(i), 100<<10)))
	}
	files = append(files, s.file(s.src, "big", random(99, 6<<20)))
	s.root = s.Small
	old := s.file(s.Small, "f0", []byte("old"))
	os.Chmod(filepath.Join(s.Small, old.Path), 0o666)
	got, err := s.send(t.Context(), files, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for i, e := range files {
		b, rerr := os.ReadFile(filepath.Join(s.Small, e.Path))
		switch err := got[e.Path]; {
		case err == nil && !bytes.Equal(b, random(map[bool]uint64{true: 99, false: uint64(i)}[e.Path == "big"], int(e.Size))):
			t.Errorf("%s was reported and is not there", e.Path)
		case err != nil && e.Path == "f0" && string(b) != "old":
			t.Error("f0 is neither old nor new")
		case err != nil && e.Path != "f0" && rerr == nil:
			t.Errorf("%s failed and has its final name", e.Path)
		}
		if errors.Is(got[e.Path], sync.ErrFull) {
			full++
		}
	}
	if full == 0 {
		t.Errorf("nobody said that the disk is full: %v", got)
	}
	// the part of the big file is kept for a later run; nothing else is
	filepath.WalkDir(s.Small, func(p string, d fs.DirEntry, err error) error {
		if strings.Contains(d.Name(), ".rentop-tmp") {
			t.Errorf("left behind: %s", p)
		}
		return nil
	})
	for _, e := range files {
		os.RemoveAll(filepath.Join(s.Small, e.Path))
	}
	parts, _ := filepath.Glob(filepath.Join(s.Small, ".*rentop*"))
	for _, p := range parts {
		os.RemoveAll(p)
	}
}

// escape: a symlink in the destination leads nowhere.
func escape(t *testing.T, s *suite) {
	outside := t.TempDir()
	dst := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dst, "sub")); err != nil {
		t.Skip(err)
	}
	small, big := s.file(s.root, "sub/x", []byte("evil")), s.file(s.root, "sub/big", random(1, 5<<20))
	up := s.file(s.root, "up", []byte("evil"))
	up.From, up.Path = "up", "../x"
	got, err := s.fetch(t.Context(), dst, []sync.Entry{small, big, up}, &meter{})
	if err == nil && (got["sub/x"] == nil || got["sub/big"] == nil || got["../x"] == nil) {
		t.Error("written through a symlink", got)
	}
	if ents, _ := os.ReadDir(outside); len(ents) > 0 {
		t.Errorf("written outside: %v", ents)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dst), "x")); err == nil {
		t.Error("written above")
	}
	// a symlink in the place of a file is replaced, not followed
	victim := filepath.Join(outside, "victim")
	os.WriteFile(victim, []byte("mine"), 0o600)
	os.Symlink(victim, filepath.Join(dst, "l"))
	l := s.file(s.root, "l", []byte("new"))
	if got, err := s.fetch(t.Context(), dst, []sync.Entry{l}, &meter{}); err != nil || got["l"] != nil {
		t.Error(err, got)
	}
	s.want(victim, []byte("mine"))
	s.want(filepath.Join(dst, "l"), []byte("new"))
	os.Symlink(victim, filepath.Join(s.root, "m"))
	if got, err := s.send(t.Context(), []sync.Entry{s.file(s.src, "m", []byte("new"))}, &meter{}); err != nil || got["m"] != nil {
		t.Error(err, got)
	}
	s.want(victim, []byte("mine"))
	s.want(filepath.Join(s.root, "m"), []byte("new"))
}

// changed: a source that grows while it is read is not taken for whole.
func changed(t *testing.T, s *suite) {
	for _, size := range []int{200 << 10, 6 << 20} {
		n := fmt.Sprint("log", size)
		e := s.file(s.src, n, random(1, size))
		var once stdsync.Once
		m := &meter{hook: func(int64) {
			once.Do(func() {
				f, _ := os.OpenFile(filepath.Join(s.src, n), os.O_APPEND|os.O_WRONLY, 0)
				f.WriteString("more")
				f.Close()
			})
		}}
		got, err := s.send(t.Context(), []sync.Entry{e}, m)
		if err != nil || !errors.Is(got[n], sync.ErrChanged) {
			t.Errorf("%d bytes: %v %v", size, err, got)
		}
		if _, err := os.Stat(filepath.Join(s.root, n)); err == nil {
			t.Error("a file that changed has its final name")
		}
	}
}

func many(t *testing.T, s *suite) {
	if testing.Short() {
		t.Skip("short")
	}
	var files []sync.Entry
	for i := range 2500 {
		n := fmt.Sprintf("d%d/f%d", i%20, i)
		files = append(files, s.file(s.src, n, []byte(n)))
		s.dirs(s.root, filepath.Dir(n))
	}
	got, err := s.send(t.Context(), files, &meter{})
	if err != nil || len(got) != len(files) {
		t.Fatal(err, len(got))
	}
	for _, e := range files {
		if got[e.Path] != nil {
			t.Fatal(e.Path, got[e.Path])
		}
		s.want(filepath.Join(s.root, e.Path), []byte(e.Path))
	}
}

// again: every method works after an error.
func again(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := s.file(s.src, "f", []byte("x"))
	if _, err := s.send(ctx, []sync.Entry{e}, &meter{}); err == nil {
		t.Error("sent without a context")
	}
	if got, err := s.send(t.Context(), []sync.Entry{e}, &meter{}); err != nil || got["f"] != nil {
		t.Fatal(err, got)
	}
	s.want(filepath.Join(s.root, "f"), []byte("x"))
	if got, err := s.send(t.Context(), nil, &meter{}); err != nil || len(got) > 0 {
		t.Error(err, got)
	}
}
