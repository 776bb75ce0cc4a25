package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"rentop/sync/tree"
)

// This file writes pulled files: beside the destination, then renamed, always
// inside one folder.

// sink is the destination of a pull.
type sink struct{ root *os.Root }

func openSink(dst string) (*sink, error) {
	r, err := os.OpenRoot(dst)
	if err != nil {
		return nil, err
	}
	return &sink{root: r}, nil
}

func (s *sink) Close() error { return s.root.Close() }

// waiting is a file that is whole and not yet under its name.
type waiting struct {
	e    Entry
	tmp  string
	safe bool // on disk, and not only in memory
}

// syncers is how many files are brought to disk at once: the file system makes few
// commits of many that wait together.
const syncers = 16

// keep brings a file's content to disk. Without it a power cut after the rename may
// leave a name with nothing behind it.
func (s *sink) keep(w *waiting) error {
	if w.safe {
		return nil
	}
	f, err := s.root.OpenFile(w.tmp, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	w.safe = err == nil
	return err
}

// keepAll is keep for many. What could not be kept is tried again by commit, which
// says why.
func (s *sink) keepAll(files []waiting) {
	var g errgroup.Group
	g.SetLimit(syncers)
	for i := range files {
		g.Go(func() error { _ = s.keep(&files[i]); return nil })
	}
	_ = g.Wait()
}

// write takes exactly e.Size bytes of r.
func (s *sink) write(ctx context.Context, e Entry, r io.Reader, m Meter) (waiting, error) {
	w := waiting{e: e, tmp: filepath.Join(pathIn(e.Path), tree.TmpPrefix+tree.Token())}
	f, err := s.root.OpenFile(w.tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return w, err
	}
	sum := sha256.New()
	n := &countContent{m: m}
	err = copyMetered(ctx, io.MultiWriter(f, sum, n), io.LimitReader(r, e.Size), nil)
	if err == nil && n.n != e.Size {
		err = ErrChanged
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.discard(w)
		return w, err
	}
	w.e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return w, nil
}

type countContent struct {
	m Meter
	n int64
}

func (c *countContent) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	c.m.Content(int64(len(p)))
	return len(p), nil
}

// commit gives a file its mode, time and name.
func (s *sink) commit(w waiting) error {
	name := filepath.FromSlash(w.e.Path)
	err := s.keep(&w)
	if err == nil {
		err = s.root.Chmod(w.tmp, w.e.Mode.Perm())
	}
	if err == nil {
		err = s.root.Chtimes(w.tmp, w.e.ModTime, w.e.ModTime)
	}
	if err == nil {
		err = s.root.Rename(w.tmp, name)
	}
	if err != nil {
		if fi, lerr := s.root.Lstat(name); lerr == nil && fi.IsDir() {
			err = errors.New("a folder is in its place")
		}
		s.discard(w)
	}
	return plainError(err)
}

func (s *sink) discard(w waiting) { s.root.Remove(w.tmp) }

// confirm commits those files whose sum the other side confirms.
func (s *sink) confirm(files []waiting, hash func([]string, func(string, string, error)) error, done func(Entry, error)) error {
	paths := make([]string, len(files))
	for i, w := range files {
		paths[i] = w.e.Source()
	}
	s.keepAll(files)
	next := 0
	err := hash(paths, func(_, sum string, err error) {
		w := files[next]
		next++
		switch {
		case err != nil:
			s.discard(w)
		case sum != w.e.SHA256:
			s.discard(w)
			err = fmt.Errorf("%w (or %w)", ErrDiffers, ErrChanged)
		default:
			err = s.commit(w)
		}
		done(w.e, err)
	})
	for _, w := range files[next:] {
		s.discard(w)
	}
	return err
}
