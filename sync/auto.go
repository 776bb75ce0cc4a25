package sync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	stdsync "sync"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"

	"rentop/remote"
	"rentop/remote/agent"
)

// This file chooses how to move files: by the helper; else small ones by tar and
// large ones by SFTP; and whatever is there where one of them is missing.

// Remote is what a transport needs of an instance; *remote.Conn is one.
type Remote interface {
	remote.Runner
	SFTP(ctx context.Context) (*sftp.Client, error)
}

// OpenOptions change how an instance's transport is chosen. The zero value
// prefers the helper.
type OpenOptions struct {
	NoAgent bool          // no helper is put there
	WhyNot  string        // who said so, for the screen; "" with NoAgent is "switched off"
	Agent   agent.Options // of the helper
}

// Open looks at what the instance can do and returns the best transport; its
// Name says what a better one lacked. facts may be nil; facts.SFTP false saves
// the attempt to open a channel where the probe has found none. An error means
// that neither commands nor SFTP work there.
func Open(ctx context.Context, r Remote, facts *remote.Facts) (Transport, error) {
	return OpenWith(ctx, r, facts, OpenOptions{})
}

// OpenWith is Open with options.
func OpenWith(ctx context.Context, r Remote, facts *remote.Facts, o OpenOptions) (Transport, error) {
	why := ""
	switch h, can := r.(agent.Host); {
	case o.NoAgent:
		if why = o.WhyNot; why == "" {
			why = "rentop's helper is switched off"
		}
	case can:
		t, err := openAgent(ctx, h, facts, o.Agent)
		if err == nil {
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		why = remote.Clean(err.Error())
	}
	return openPlain(ctx, r, facts, why)
}

// openPlain is the best transport without the helper; why says why there is none.
func openPlain(ctx context.Context, r Remote, facts *remote.Facts, why string) (Transport, error) {
	t, execErr := probe(ctx, r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if execErr == nil && t.base != "" {
		execErr = fmt.Errorf("the instance lacks %s", t.base)
	}
	if execErr == nil && !t.tar {
		execErr = errors.New("the instance lacks tar")
	}
	s := &sftpTransport{open: r.SFTP}
	sftpErr := error(nil)
	if facts != nil && !facts.SFTP {
		sftpErr = errors.New("the instance has no SFTP")
	} else if _, err := s.client(ctx); err != nil {
		sftpErr = err
	}
	switch {
	case execErr == nil && sftpErr == nil:
		a := &autoTransport{tar: newTar(r, t), sftp: s}
		a.tar.why = why
		s.sh = &a.tar.shell
		return a, nil
	case execErr == nil:
		a := &autoTransport{tar: newTar(r, t)}
		a.tar.why = join(why, "no SFTP on the instance: large files travel through one stream")
		return a, nil
	case sftpErr == nil:
		s.why = join(why, "commands cannot run as needed ("+remote.Clean(execErr.Error())+"): nothing is compressed, and each file is read back to verify it")
		return s, nil
	}
	return nil, fmt.Errorf("no way to move files: %w; and %w", execErr, sftpErr)
}

// autoTransport is tar for small files and SFTP, or a stream each, for large ones.
type autoTransport struct {
	tar  *tarTransport
	sftp *sftpTransport // nil: not there
}

func (a *autoTransport) Name() (string, string) {
	name, why := a.tar.Name()
	if a.sftp != nil {
		name += ", sftp"
	}
	return name, why
}

func (a *autoTransport) Close() error {
	if a.sftp != nil {
		return a.sftp.Close()
	}
	return nil
}

func (a *autoTransport) Resolve(ctx context.Context, p string) (string, Entry, error) {
	return a.tar.Resolve(ctx, p)
}

func (a *autoTransport) List(ctx context.Context, root string, emit func(Entry) error) error {
	return a.tar.List(ctx, root, emit)
}

func (a *autoTransport) Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error {
	return a.tar.Stat(ctx, root, paths, emit)
}

func (a *autoTransport) Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error {
	return a.tar.Hash(ctx, root, paths, done)
}

func (a *autoTransport) Apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error {
	return a.tar.Apply(ctx, root, actions, done)
}

func (a *autoTransport) Send(ctx context.Context, src, root string, files []Entry, m Meter, done func(Entry, error)) error {
	files = slices.Clone(files)
	for i, e := range files { // a small file may have grown since it was listed
		if e.Size < largeFile {
			if fi, err := os.Lstat(filepath.Join(src, filepath.FromSlash(e.Source()))); err == nil {
				files[i].Size = fi.Size()
			}
		}
	}
	return a.both(ctx, files, done,
		func(ctx context.Context, files []Entry, done func(Entry, error)) error {
			return a.tar.Send(ctx, src, root, files, m, done)
		},
		func(ctx context.Context, files []Entry, done func(Entry, error)) error {
			if a.sftp == nil {
				return execTransport{&a.tar.shell}.Send(ctx, src, root, files, m, done)
			}
			return a.sftp.Send(ctx, src, root, files, m, done)
		})
}

func (a *autoTransport) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	return a.both(ctx, files, done,
		func(ctx context.Context, files []Entry, done func(Entry, error)) error {
			return a.tar.Fetch(ctx, root, dst, files, m, done)
		},
		func(ctx context.Context, files []Entry, done func(Entry, error)) error {
			if a.sftp == nil {
				return execTransport{&a.tar.shell}.Fetch(ctx, root, dst, files, m, done)
			}
			return a.sftp.Fetch(ctx, root, dst, files, m, done)
		})
}

type mover func(ctx context.Context, files []Entry, done func(Entry, error)) error

// both moves small and large files at once.
func (a *autoTransport) both(ctx context.Context, files []Entry, done func(Entry, error), small, large mover) error {
	var mu stdsync.Mutex
	one := func(e Entry, err error) {
		mu.Lock()
		defer mu.Unlock()
		done(e, err)
	}
	s, l := splitLarge(files)
	g, gctx := errgroup.WithContext(ctx)
	if len(s) > 0 {
		g.Go(func() error { return small(gctx, s, one) })
	}
	if len(l) > 0 {
		g.Go(func() error { return large(gctx, l, one) })
	}
	return errOr(g.Wait(), ctx.Err())
}
