package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file finds the two ends of a transfer: which folders, or which one file.

// sides is where a transfer runs between.
type sides struct {
	local  string // absolute
	remote string // absolute, on the instance
	one    *Entry // the file that was named itself, with the folders above as roots
	fresh  bool   // the destination's root is not there yet
}

// find looks the Spec's paths up.
func (j *job) find(ctx context.Context) error {
	switch j.s.Direction {
	case Push:
		return j.findPush(ctx)
	case Pull:
		return j.findPull(ctx)
	}
	return fmt.Errorf("%w: direction %q", ErrUsage, j.s.Direction)
}

func (j *job) findPush(ctx context.Context) error {
	local, err := filepath.Abs(j.s.Local)
	if err != nil {
		return err
	}
	fi, err := os.Stat(local)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	root, what, err := j.t.Resolve(ctx, j.s.Remote)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	j.sides = sides{local: local, remote: root, fresh: missing}
	switch {
	case fi.Mode().IsRegular():
		e, dir, err := oneFile(local)
		if err != nil {
			return err
		}
		j.local, j.one = dir, e
		if missing && !strings.HasSuffix(j.s.Remote, "/") || !missing && !what.Mode.IsDir() {
			e.Path, j.remote = path.Base(root), path.Dir(root)
			if j.fresh = false; missing {
				_, _, err := j.t.Resolve(ctx, j.remote)
				if j.fresh = errors.Is(err, fs.ErrNotExist); err != nil && !j.fresh {
					return err
				}
			}
		}
	case !fi.IsDir():
		return fmt.Errorf("%w: %s is a %s", ErrUsage, local, tree.TypeName(fi.Mode()))
	case !missing && !what.Mode.IsDir():
		return fmt.Errorf("%w: %s is a folder, but %s on the instance is a %s", ErrUsage, local, remote.Clean(root), tree.TypeName(what.Mode))
	}
	return nil
}

// oneFile is a file that was named itself, and its folder; it is sent whatever
// the rules say, and a symlink is what it points to.
func oneFile(name string) (*Entry, string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, "", err
	}
	fi, err := os.Stat(real)
	if err != nil {
		return nil, "", err
	}
	return &Entry{Path: filepath.Base(name), From: filepath.Base(real), Size: fi.Size(), Mode: fi.Mode().Perm(), ModTime: fi.ModTime()}, filepath.Dir(real), nil
}

func (j *job) findPull(ctx context.Context) error {
	root, what, err := j.t.Resolve(ctx, j.s.Remote)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is not there on the instance", ErrUsage, remote.Clean(root))
	}
	if err != nil {
		return err
	}
	local, err := filepath.Abs(j.s.Local)
	if err != nil {
		return err
	}
	fi, err := os.Stat(local)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	j.sides = sides{local: local, remote: root, fresh: missing}
	switch {
	case what.Mode.IsRegular():
		name := path.Base(root)
		real := root
		if what.Target != "" {
			real = what.Target
		}
		if missing && !strings.HasSuffix(j.s.Local, "/") && !strings.HasSuffix(j.s.Local, string(filepath.Separator)) || !missing && !fi.IsDir() {
			name, j.local = filepath.Base(local), filepath.Dir(local)
		}
		j.remote = path.Dir(real)
		if err := j.t.Stat(ctx, j.remote, []string{path.Base(real)}, func(e Entry) error { j.one = &e; return nil }); err != nil {
			return err
		}
		if j.one == nil {
			return fmt.Errorf("%w: %s is gone from the instance", ErrUsage, remote.Clean(real))
		}
		j.one.Path, j.one.From = name, path.Base(real)
	case !what.Mode.IsDir():
		return fmt.Errorf("%w: %s on the instance is a %s", ErrUsage, remote.Clean(root), tree.TypeName(what.Mode))
	case !missing && !fi.IsDir():
		return fmt.Errorf("%w: %s on the instance is a folder, but %s is a file", ErrUsage, remote.Clean(root), local)
	}
	return nil
}

// options are the comparison's.
func (j *job) options() Options {
	o := Options{Delete: j.s.Delete && j.one == nil, // one file has nothing beside it
		Force: j.s.Force, Checksum: j.s.Checksum, IgnoreModes: runtime.GOOS == "windows"}
	if j.s.Direction == Pull {
		o.KeepIn, o.Windows = true, runtime.GOOS == "windows"
		if o.FoldCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin"; o.FoldCase && !j.fresh {
			o.Lookup = j.lookHere
		}
	}
	return o
}

// lookHere asks the file system of a pull's destination, which may have p under
// another spelling.
func (j *job) lookHere(p string) (Entry, bool) {
	e, err := lookAt(j.local, p)
	return e, err == nil
}
