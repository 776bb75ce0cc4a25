package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	stdsync "sync"
	"syscall"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"

	"rentop/sync/tree"
)

// This file lists, hashes and changes a tree over SFTP, many requests at once.

func (t *sftpTransport) List(ctx context.Context, root string, emit func(Entry) error) error {
	l := &lister{}
	var mu stdsync.Mutex
	l.emit = func(e Entry) error { return emit(e) }
	err := t.with(ctx, func(c *sftp.Client) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(sftpWalkers)
		var walk func(rel string) error
		walk = func(rel string) error {
			infos, err := c.ReadDirContext(ctx, path.Join(root, rel))
			if err != nil {
				if rel == "" || t.ends(ctx, c, err) {
					return &fs.PathError{Op: "list", Path: root, Err: err}
				}
				mu.Lock()
				l.bad(rel, err)
				mu.Unlock()
			}
			for _, fi := range infos {
				p := path.Join(rel, fi.Name())
				if strings.Contains(fi.Name(), "/") || fi.Name() == ".." || fi.Name() == "." {
					p = fi.Name() // give refuses it
				}
				e := sftpEntry(p, fi)
				if e.Mode&fs.ModeSymlink != 0 {
					if e.Target, err = c.ReadLink(path.Join(root, p)); err != nil {
						continue // gone by now
					}
				}
				mu.Lock()
				before := len(l.problems)
				err := l.give(e)
				refused := len(l.problems) > before
				mu.Unlock()
				if err != nil {
					return err
				}
				if e.Mode.IsDir() && !refused && fi.Name() != tree.TrashDir {
					if !g.TryGo(func() error { return walk(p) }) {
						if err := walk(p); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}
		g.Go(func() error { return walk("") })
		return g.Wait()
	})
	if err == nil && len(l.problems) > 0 {
		err = &ListError{Problems: l.problems}
	}
	return err
}

// manyInDir is from how many wanted names on a folder is listed whole.
const manyInDir = 8

func (t *sftpTransport) Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error {
	byDir := map[string][]string{}
	for _, p := range paths {
		byDir[path.Dir(p)] = append(byDir[path.Dir(p)], p)
	}
	var mu stdsync.Mutex
	give := func(c *sftp.Client, p string, fi fs.FileInfo) error {
		e := sftpEntry(p, fi)
		if e.Mode&fs.ModeSymlink != 0 {
			var err error
			if e.Target, err = c.ReadLink(path.Join(root, p)); err != nil {
				return nil
			}
		}
		mu.Lock()
		defer mu.Unlock()
		return emit(e)
	}
	return t.with(ctx, func(c *sftp.Client) error {
		if _, err := c.Stat(root); err != nil {
			return &fs.PathError{Op: "stat", Path: root, Err: err}
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(2 * sftpWalkers)
		for dir, list := range byDir {
			if len(list) < manyInDir {
				for _, p := range list {
					g.Go(func() error {
						fi, err := c.Lstat(path.Join(root, p))
						if err != nil {
							return t.onlyEnd(ctx, c, err)
						}
						return give(c, p, fi)
					})
				}
				continue
			}
			g.Go(func() error {
				infos, err := c.ReadDirContext(ctx, path.Join(root, dir))
				if err != nil {
					return t.onlyEnd(ctx, c, err)
				}
				want := map[string]bool{}
				for _, p := range list {
					want[p] = true
				}
				for _, fi := range infos {
					if p := path.Join(dir, fi.Name()); want[p] && path.Base(p) == fi.Name() {
						if err := give(c, p, fi); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
		return g.Wait()
	})
}

// onlyEnd lets an error through that ends the call; a path that cannot be
// looked up is as if it were not there.
func (t *sftpTransport) onlyEnd(ctx context.Context, c *sftp.Client, err error) error {
	if t.ends(ctx, c, err) {
		return err
	}
	return nil
}

func (t *sftpTransport) Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error {
	if t.sh != nil {
		return t.sh.Hash(ctx, root, paths, done)
	}
	return t.with(ctx, func(c *sftp.Client) error {
		for batch := range slices.Chunk(paths, 4*sftpFiles) { // in order, some at once
			sums, errs := make([]string, len(batch)), make([]error, len(batch))
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(sftpFiles)
			for i, p := range batch {
				g.Go(func() error {
					sums[i], errs[i] = sftpHash(c, path.Join(root, p))
					return t.onlyEnd(ctx, c, errs[i])
				})
			}
			if err := g.Wait(); err != nil {
				return err
			}
			for i, p := range batch {
				done(p, sums[i], errs[i])
			}
		}
		return nil
	})
}

// sftpHash reads a file back.
func sftpHash(c *sftp.Client, name string) (string, error) {
	if fi, err := c.Lstat(name); err != nil {
		return "", err
	} else if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("is a %s", tree.TypeName(fi.Mode()))
	}
	f, err := c.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := f.WriteTo(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (t *sftpTransport) Apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error {
	return t.with(ctx, func(c *sftp.Client) error {
		for len(actions) > 0 {
			n := 1
			for n < len(actions) && actions[n].Op == actions[0].Op {
				n++
			}
			if err := t.applySame(ctx, c, root, slices.Clone(actions[:n]), done); err != nil {
				return err
			}
			actions = actions[n:]
		}
		return nil
	})
}

// applySame does actions of one kind, one depth after the other: folders from
// the top, deletes from the bottom.
func (t *sftpTransport) applySame(ctx context.Context, c *sftp.Client, root string, actions []Action, done func(Action, error)) error {
	depth := func(a Action) int { return strings.Count(a.Entry.Path, "/") }
	slices.SortStableFunc(actions, func(a, b Action) int {
		if a.Op == Delete {
			return depth(b) - depth(a)
		}
		return depth(a) - depth(b)
	})
	var mu stdsync.Mutex
	for len(actions) > 0 {
		n := 1
		for n < len(actions) && depth(actions[n]) == depth(actions[0]) {
			n++
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(2 * sftpWalkers)
		for _, a := range actions[:n] {
			g.Go(func() error {
				err := sftpApply(c, root, a)
				if t.ends(ctx, c, err) {
					return errOr(err, ctx.Err())
				}
				mu.Lock()
				defer mu.Unlock()
				done(a, sftpError(c, root, 4096, err))
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		actions = actions[n:]
	}
	return nil
}

func sftpApply(c *sftp.Client, root string, a Action) error {
	name := path.Join(root, a.Entry.Path)
	switch a.Op {
	case Delete:
		rm := removeFile
		if a.Entry.Mode.IsDir() {
			rm = (*sftp.Client).RemoveDirectory
		}
		if err := rm(c, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	case Mkdir:
		if err := c.MkdirAll(name); err != nil {
			return err
		}
		return c.Chmod(name, a.Entry.Mode.Perm()|0o700)
	case Link:
		tmp := path.Join(path.Dir(name), tree.TmpPrefix+tree.Token())
		if err := c.Symlink(a.Entry.Target, tmp); err != nil {
			return err
		}
		if err := sftpRename(c, tmp, name); err != nil {
			c.Remove(tmp)
			return err
		}
		return nil
	case Attr:
		if err := c.Chmod(name, a.Entry.Mode.Perm()); err != nil {
			return err
		}
		if a.Entry.Mode.IsRegular() {
			return c.Chtimes(name, a.Entry.ModTime, a.Entry.ModTime)
		}
		return nil
	}
	if a.Op == Move {
		return sftpMove(c, name, path.Join(root, a.To))
	}
	return fmt.Errorf("cannot %s over SFTP", a.Op)
}

// sftpMove renames to a free place, whose folders are made.
func sftpMove(c *sftp.Client, from, to string) error {
	if _, err := c.Lstat(from); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if _, err := c.Lstat(to); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.MkdirAll(path.Dir(to)); err != nil {
		return err
	}
	return c.Rename(from, to)
}

// removeFile is Remove for what must not be a folder.
func removeFile(c *sftp.Client, name string) error {
	fi, err := c.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return syscall.EISDIR
	}
	return c.Remove(name)
}

// sftpRename replaces name in one step where the server can. Elsewhere the old
// file steps aside first, so that a cut leaves it findable, never lost.
func sftpRename(c *sftp.Client, tmp, name string) error {
	if _, has := c.HasExtension("posix-rename@openssh.com"); has {
		return c.PosixRename(tmp, name)
	}
	if err := c.Rename(tmp, name); err == nil {
		return nil
	}
	aside := path.Join(path.Dir(name), tree.TmpPrefix+tree.Token())
	if err := c.Rename(name, aside); err != nil {
		return err
	}
	if err := c.Rename(tmp, name); err != nil {
		return errors.Join(err, c.Rename(aside, name))
	}
	return c.Remove(aside)
}
