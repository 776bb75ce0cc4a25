//go:build !unix

package far

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"rentop/sync/tree"
)

// This file works inside one folder by os.Root, where there are no calls
// relative to an open folder.

// handle is a folder.
type handle struct {
	root *os.Root
	own  *os.Root
	at   string // own's path in root
}

func openHandle(root *os.Root, dir string) (handle, error) {
	at := filepath.FromSlash(dir)
	own, err := root.OpenRoot(at)
	return handle{root: root, own: own, at: at}, err
}

func (h handle) close() error { return h.own.Close() }

// settle does nothing: there is no way to ask for it.
func (h handle) settle() {}

func settleAt(string) {}

func (h handle) create(name string) (*os.File, error) {
	return h.own.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (h handle) read(name string) (*os.File, error) {
	fi, err := h.own.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := regular(fi.Mode()); err != nil {
		return nil, err
	}
	return h.own.Open(name)
}

// part opens a file to go on with, or makes it.
func (h handle) part(name string) (f *os.File, held bool, err error) {
	f, err = h.own.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	return f, false, err
}

func (h handle) rename(from, to string) error { return h.own.Rename(from, to) }

func (h handle) remove(name string) error { return h.own.Remove(name) }

func (h handle) mkdir(name string, perm fs.FileMode) error { return h.own.Mkdir(name, perm) }

func (h handle) chmodSelf(perm fs.FileMode) error { return h.own.Chmod(".", perm) }

func (h handle) times(name string, t time.Time) error { return h.own.Chtimes(name, t, t) }

// lstat is only the type of what is at name.
func (h handle) lstat(name string) (fs.FileMode, error) {
	fi, err := h.own.Lstat(name)
	if err != nil {
		return 0, err
	}
	return fi.Mode().Type(), nil
}

// entry is what lies at name; p is its path in the tree.
func (h handle) entry(name, p string) (tree.Entry, error) {
	fi, err := h.own.Lstat(name)
	if err != nil {
		return tree.Entry{}, err
	}
	e := tree.Entry{Path: p, Mode: fi.Mode() & (fs.ModeType | fs.ModePerm), ModTime: fi.ModTime()}
	switch {
	case e.Mode.IsRegular():
		e.Size = fi.Size()
	case e.Mode&fs.ModeSymlink != 0:
		e.Target, err = h.own.Readlink(name)
		e.Target = filepath.ToSlash(e.Target)
	}
	return e, err
}

func isQuota(error) bool { return false }
