package sync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	stdsync "sync"

	"rentop/sync/tree"
)

// This file is a Transport to a folder of this machine, for artifacts that are
// kept in one and for tests.

// Local moves files within this machine. Home is where "~" and relative paths
// start, "" for the person's home folder.
type Local struct{ Home string }

var _ Transport = Local{}

// Name is "local".
func (Local) Name() (string, string) { return "local", "" }

// Close does nothing.
func (Local) Close() error { return nil }

// Resolve looks a path up.
func (l Local) Resolve(_ context.Context, p string) (string, Entry, error) {
	home := l.Home
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", Entry{}, err
		}
	}
	switch {
	case p == "~":
		p = ""
	case len(p) > 1 && p[:2] == "~/":
		p = p[2:]
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(home, p)
	}
	abs := filepath.Clean(p)
	e := Entry{Path: filepath.Base(abs)}
	fi, err := os.Stat(abs)
	if err != nil {
		return filepath.ToSlash(abs), e, err
	}
	e.Mode, e.ModTime = fi.Mode()&(fs.ModeType|fs.ModePerm), fi.ModTime()
	if e.Mode.IsRegular() {
		e.Size = fi.Size()
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			e.Target = filepath.ToSlash(real)
		}
	}
	return filepath.ToSlash(abs), e, nil
}

// List walks the folder.
func (Local) List(ctx context.Context, root string, emit func(Entry) error) error {
	var bad []Failure
	o := tree.Options{Problem: func(p string, _ fs.FileMode, err error) {
		bad = append(bad, Failure{Path: p, Err: errors.New(reason(err))})
	}}
	if _, err := tree.Walk(ctx, filepath.FromSlash(root), o, emit); err != nil {
		return err
	}
	if len(bad) > 0 {
		return &ListError{Problems: bad}
	}
	return nil
}

// Stat looks single paths up.
func (Local) Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error {
	if _, err := os.Stat(filepath.FromSlash(root)); err != nil {
		return err
	}
	for _, p := range paths {
		e, err := lookAt(filepath.FromSlash(root), p)
		if err != nil {
			continue
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Send copies from src to root.
func (Local) Send(ctx context.Context, src, root string, files []Entry, m Meter, done func(Entry, error)) error {
	return copyFiles(ctx, src, filepath.FromSlash(root), files, m, done)
}

// Fetch copies from root to dst.
func (Local) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	return copyFiles(ctx, filepath.FromSlash(root), dst, files, m, done)
}

func copyFiles(ctx context.Context, src, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	out, err := openSink(dst)
	if err != nil {
		return err
	}
	defer out.Close()
	var mu stdsync.Mutex // one done at a time
	return each(ctx, files, func(ctx context.Context, e Entry) error {
		m.Current(e.Path)
		sent, err := copyFile(ctx, src, out, e, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		done(sent, plainError(err))
		return nil
	})
}

func copyFile(ctx context.Context, src string, out *sink, e Entry, m Meter) (Entry, error) {
	f, fi, err := openSource(src, e)
	if err != nil {
		return e, err
	}
	defer f.Close()
	e.Size, e.ModTime = fi.Size(), fi.ModTime()
	w, err := out.write(ctx, e, f, m)
	if err != nil {
		return e, err
	}
	if err = unchanged(f, e); err == nil {
		var sum string
		if sum, err = hashFile(ctx, filepath.Join(out.root.Name(), w.tmp), nil); err == nil && sum != w.e.SHA256 {
			err = ErrDiffers
		}
	}
	if err != nil {
		out.discard(w)
		return e, err
	}
	return w.e, out.commit(w)
}

// Hash reads files.
func (Local) Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error {
	for _, p := range paths {
		name := filepath.Join(filepath.FromSlash(root), filepath.FromSlash(p))
		sum, err := "", error(nil)
		if fi, lerr := os.Lstat(name); lerr != nil {
			err = plainError(lerr)
		} else if !fi.Mode().IsRegular() {
			err = errors.New("is a " + tree.TypeName(fi.Mode()))
		} else {
			sum, err = hashFile(ctx, name, nil)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done(p, sum, err)
	}
	return nil
}

// Apply changes the tree under root, inside it only.
func (Local) Apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error {
	r, err := os.OpenRoot(filepath.FromSlash(root))
	if err != nil {
		return err
	}
	defer r.Close()
	return applyLocal(ctx, r, actions, done)
}
