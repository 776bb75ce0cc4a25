package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"rentop/sync/far"
	"rentop/sync/tree"
)

// This file changes a folder on this machine, always through os.Root: whatever
// an instance named, nothing outside it is touched.

// applyLocal is Transport.Apply for a folder on this machine.
func applyLocal(ctx context.Context, root *os.Root, actions []Action, done func(Action, error)) error {
	left := far.NewSweeper(root)
	defer left.Close()
	for _, a := range actions {
		if err := ctx.Err(); err != nil {
			return err
		}
		if a.Op == Delete && far.Temporary(a.Entry.Path) {
			done(a, left.Remove(a.Entry.Path))
			continue
		}
		done(a, plainError(applyOne(root, a)))
	}
	return nil
}

func applyOne(root *os.Root, a Action) error {
	name := filepath.FromSlash(a.Entry.Path)
	switch a.Op {
	case Delete:
		err := root.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	case Mkdir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return err
		}
		return root.Chmod(name, a.Entry.Mode.Perm()|0o700)
	case Link:
		return linkLocal(root, name, filepath.FromSlash(a.Entry.Target))
	case Attr:
		if err := root.Chmod(name, a.Entry.Mode.Perm()); err != nil {
			return err
		}
		if a.Entry.Mode.IsRegular() {
			return root.Chtimes(name, a.Entry.ModTime, a.Entry.ModTime)
		}
		return nil
	}
	if a.Op == Move {
		return moveLocal(root, name, filepath.FromSlash(a.To))
	}
	return fmt.Errorf("cannot %s here", a.Op)
}

// moveLocal renames to a free place, whose folders are made.
func moveLocal(root *os.Root, from, to string) error {
	if _, err := root.Lstat(from); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if _, err := root.Lstat(to); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir := filepath.Dir(to); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return root.Rename(from, to)
}

// linkLocal replaces a file or symlink by a symlink in one step.
func linkLocal(root *os.Root, name, target string) error {
	tmp := filepath.Join(filepath.Dir(name), tree.TmpPrefix+tree.Token())
	if err := root.Symlink(target, tmp); err != nil {
		return err
	}
	if err := root.Rename(tmp, name); err != nil {
		root.Remove(tmp)
		return err
	}
	return nil
}

// plainError drops the path, which is shown beside it, and marks a full disk.
func plainError(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w on this machine: %s", ErrFull, reason(err))
	case !errors.As(err, &pe) && !errors.As(err, &le), errors.Is(err, fs.ErrNotExist):
		return err
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w on this machine", fs.ErrPermission)
	}
	return errors.New(reason(err))
}

// pathIn is path.Dir as os.Root takes it.
func pathIn(p string) string { return filepath.FromSlash(path.Dir(p)) }
