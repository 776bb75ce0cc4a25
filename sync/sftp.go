package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	stdsync "sync"

	"github.com/pkg/sftp"

	"rentop/remote"
	"rentop/sync/tree"
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
	err = fn(c)
	// Where ctx has ended the channel is being closed: the next use must not get it.
	if !stop() || errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, sftp.ErrSSHFxNoConnection) {
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
// disk (restic#3336), which it is taken for where statvfs says that less than
// need bytes are free.
func sftpError(c *sftp.Client, dir string, need int64, err error) error {
	var st *sftp.StatusError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w on the instance", fs.ErrPermission)
	case errors.As(err, &st) && st.FxCode() == sftp.ErrSSHFxFailure:
		if _, has := c.HasExtension("statvfs@openssh.com"); has {
			if v, verr := c.StatVFS(dir); verr == nil && (v.Bavail*v.Frsize < uint64(need) || v.Favail == 0 && v.Files > 0) {
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
		if !path.IsAbs(abs) || len(abs) > tree.MaxPath {
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

var _ Transport = (*sftpTransport)(nil)

// cleanErr is an error from an instance made safe to show.
func cleanErr(err error) error {
	if err == nil || remote.Clean(err.Error()) == err.Error() {
		return err
	}
	return errors.New(remote.Clean(err.Error()))
}
