package sync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"rentop/sync/tree"
)

// This file looks at what is on this machine.

// walkHere walks the source of a push, or the folder below in it alone, in tree
// order and without what is ours. rules learns what is left out, blind what could
// not be read.
func (s *Spec) walkHere(ctx context.Context, root, below string, rules *tree.Rules, b *blind, emit func(Entry) error) (ignored int64, err error) {
	o := tree.Options{GitIgnore: !s.NoIgnore, OwnIgnore: !s.NoIgnore, Include: s.Include, Exclude: s.Exclude, Below: below, Rules: rules, Problem: b.add}
	return tree.Walk(ctx, root, o, func(e Entry) error {
		if tree.OursIn(e.Path) {
			return nil
		}
		return emit(e)
	})
}

// lookAt is the entry of p under root; a symlink is not followed.
func lookAt(root, p string) (Entry, error) {
	name := filepath.Join(root, filepath.FromSlash(p))
	fi, err := os.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Path: p, Mode: fi.Mode() & (fs.ModeType | fs.ModePerm), ModTime: fi.ModTime()}
	switch {
	case e.Mode.IsRegular():
		e.Size = fi.Size()
	case e.Mode&fs.ModeSymlink != 0:
		to, err := os.Readlink(name)
		if err != nil {
			return Entry{}, err
		}
		e.Target = filepath.ToSlash(to)
	}
	return e, nil
}

// reason is an error without the path that is shown beside it.
func reason(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err.Error()
	case errors.As(err, &le):
		return le.Err.Error()
	}
	return err.Error()
}
