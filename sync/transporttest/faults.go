package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	stdsync "sync"
	"testing"

	"rentop/remote/needtest"
	"rentop/sync"
)

// This file holds what a transport does when something is in its way.

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
	s.Interrupted = true
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
	rounds := 8
	if s.Brief {
		rounds = 2
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range rounds {
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
	s.Interrupted = true
	if s.Unsafe || s.Brief {
		return // does not apply: a copy on one machine is not resumed
	}
	data := random(9, 32<<20)
	e := s.file(s.src, "big", data)
	cut := func(run func(context.Context, *meter) error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := run(ctx, &meter{hook: func(c int64) {
			if c > 20<<20 {
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
	if m.wire > 28<<20 { // 8 MiB may be on their way, and more not in a journal yet
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
	if m.wire > 28<<20 { // 8 MiB may be on their way, and more not in a journal yet
		t.Errorf("%d bytes travelled back again", m.wire)
	}
}

func diskFull(t *testing.T, s *suite) {
	if s.NoSmall {
		return
	}
	needtest.That(t, s.Small != "", "a small file system (root may mount one)")
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
		needtest.Done(t, err, "symlinks")
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
	if s.Brief {
		return
	}
	needtest.Time(t, "makes many files")
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
