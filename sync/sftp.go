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

	"rentop/remote"
)

// This file is an instance's tree seen through SFTP: the whole transport where
// nothing can be executed, and the way of large files elsewhere. sftpsend.go and
// sftpfetch.go move the contents. SFTP keeps times by the second.

// Requests in flight: over a long round trip one at a time moves 0.3 MB/s, 256
// fill SSH's 2 MiB window.
const (
	sftpRequests = 256
	sftpChunk    = 32 << 10 // what every server takes; larger ones corrupt files on some (rclone#6404)
	sftpFiles    = 24       // small files at once
	sftpWalkers  = 16
)

// sftpTransport opens its channel at the first use, and again after an error.
type sftpTransport struct {
	open func(ctx context.Context) (*sftp.Client, error)
	sh   *shell // to hash and to set exact times; nil where nothing can be executed
	why  string

	mu stdsync.Mutex // protects c
	c  *sftp.Client
}

func (t *sftpTransport) Name() (string, string) { return "sftp", t.why }

func (t *sftpTransport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.c == nil {
		return nil
	}
	err := t.c.Close()
	t.c = nil
	return err
}

// with runs fn over the channel. pkg/sftp knows no contexts: when ctx ends the
// channel is closed, which ends fn, and the next use opens another.
func (t *sftpTransport) with(ctx context.Context, fn func(c *sftp.Client) error) error {
	c, err := t.client(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { t.drop(c) })
	defer stop()
	err = fn(c)
	if errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, sftp.ErrSSHFxNoConnection) {
		t.drop(c)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (t *sftpTransport) client(ctx context.Context) (*sftp.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.c != nil {
		return t.c, nil
	}
	c, err := t.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening SFTP on the instance: %w", err)
	}
	t.c = c
	return c, nil
}

func (t *sftpTransport) drop(c *sftp.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.c == c {
		t.c = nil
	}
	c.Close()
}

// ends says whether err ended the channel, and so the whole call. What is no
// error of a file is put to the test.
func (t *sftpTransport) ends(ctx context.Context, c *sftp.Client, err error) bool {
	var status *sftp.StatusError
	var local *fs.PathError
	switch {
	case ctx.Err() != nil || errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, sftp.ErrSSHFxNoConnection):
		return true
	case err == nil, errors.As(err, &status), errors.As(err, &local), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission),
		errors.Is(err, ErrChanged), errors.Is(err, ErrDiffers), errors.Is(err, ErrFull):
		return false
	}
	if _, perr := c.Getwd(); perr != nil {
		t.drop(c)
		return true
	}
	return false
}

// sftpError gives a status its meaning; a bare failure is most often a full
// disk (restic#3336), which statvfs tells where the server has it.
func sftpError(c *sftp.Client, dir string, err error) error {
	var st *sftp.StatusError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w on the instance", fs.ErrPermission)
	case errors.As(err, &st) && st.FxCode() == sftp.ErrSSHFxFailure:
		if _, has := c.HasExtension("statvfs@openssh.com"); has {
			if v, verr := c.StatVFS(dir); verr == nil && (v.Bavail == 0 || v.Favail == 0 && v.Files > 0) {
				return fmt.Errorf("%w on the instance", ErrFull)
			}
		}
		return errors.New("the instance's SFTP server refused it without a reason")
	}
	return err
}

func (t *sftpTransport) Resolve(ctx context.Context, p string) (abs string, e Entry, err error) {
	err = t.with(ctx, func(c *sftp.Client) error {
		home, err := c.Getwd()
		if err != nil {
			return fmt.Errorf("looking up the home folder on the instance: %w", err)
		}
		switch {
		case p == "~" || p == "":
			abs = home
		case strings.HasPrefix(p, "~/"):
			abs = path.Join(home, p[2:])
		case path.IsAbs(p):
			abs = path.Clean(p)
		default:
			abs = path.Join(home, p)
		}
		if !path.IsAbs(abs) || len(abs) > maxPath {
			return errors.New("looking up the home folder on the instance: unexpected answer")
		}
		fi, err := c.Stat(abs)
		if err != nil {
			return &fs.PathError{Op: "stat", Path: abs, Err: err}
		}
		e = sftpEntry(path.Base(abs), fi)
		if fi.Mode().IsRegular() {
			e.Target, err = followLinks(c, abs)
		}
		return err
	})
	return abs, e, err
}

// followLinks is the path that a symlink leads to in the end, "" where name is
// none. Not every server's realpath follows the last name.
func followLinks(c *sftp.Client, name string) (string, error) {
	for hops := range 40 { // as many as Linux follows
		fi, err := c.Lstat(name)
		switch {
		case err != nil:
			return "", err
		case fi.Mode()&fs.ModeSymlink == 0 && hops == 0:
			return "", nil
		case fi.Mode()&fs.ModeSymlink == 0:
			return name, nil
		}
		target, err := c.ReadLink(name)
		if err != nil {
			return "", err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		name = target
	}
	return "", errors.New("too many symlinks")
}

func sftpEntry(p string, fi fs.FileInfo) Entry {
	e := Entry{Path: p, Mode: fi.Mode() & (fs.ModeType | fs.ModePerm), ModTime: fi.ModTime()}
	if e.Mode.IsRegular() {
		e.Size = max(fi.Size(), 0)
	}
	return e
}

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
				if e.Mode.IsDir() && !refused {
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
		return "", fmt.Errorf("is a %s", typeName(fi.Mode()))
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
				done(a, sftpError(c, root, err))
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
		tmp := path.Join(path.Dir(name), tmpPrefix+token())
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
	return fmt.Errorf("cannot %s over SFTP", a.Op)
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
	aside := path.Join(path.Dir(name), tmpPrefix+token())
	if err := c.Rename(name, aside); err != nil {
		return err
	}
	if err := c.Rename(tmp, name); err != nil {
		return errors.Join(err, c.Rename(aside, name))
	}
	return c.Remove(aside)
}

var _ Transport = (*sftpTransport)(nil)

// cleanErr is an error from an instance made safe to show.
func cleanErr(err error) error {
	if err == nil || remote.Clean(err.Error()) == err.Error() {
		return err
	}
	return errors.New(remote.Clean(err.Error()))
}
