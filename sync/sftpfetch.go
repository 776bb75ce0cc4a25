package sync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	stdsync "sync"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"
)

// This file reads files over SFTP: large ones by many requests at once into a
// part that can be resumed, small ones many at a time.

func (t *sftpTransport) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	out, err := openSink(dst)
	if err != nil {
		return err
	}
	defer out.Close()
	var mu stdsync.Mutex
	return t.with(ctx, func(c *sftp.Client) error {
		one := func(ctx context.Context, e Entry) error {
			m.Current(e.Path)
			d := &download{t: t, c: c, root: root, e: e, m: m, out: out}
			e, err := d.run(ctx)
			if t.ends(ctx, c, err) {
				return errOr(ctx.Err(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			done(e, cleanErr(err))
			return nil
		}
		return each(ctx, files, one)
	})
}

// download is one file on its way.
type download struct {
	t    *sftpTransport
	c    *sftp.Client
	root string
	e    Entry
	m    Meter
	out  *sink
}

func (d *download) run(ctx context.Context) (Entry, error) {
	name := path.Join(d.root, d.e.Source())
	fi, err := d.c.Lstat(name)
	if d.t.ends(ctx, d.c, err) {
		return d.e, err
	}
	if err != nil {
		return d.e, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	if !fi.Mode().IsRegular() || fi.Size() != d.e.Size {
		return d.e, ErrChanged
	}
	f, err := d.c.Open(name)
	if err != nil {
		return d.e, sftpError(d.c, d.root, 0, err)
	}
	defer f.Close()
	if d.e.Size < largeFile {
		w, err := d.out.write(ctx, d.e, &meteredReader{io.NewSectionReader(f, 0, d.e.Size), d.m}, d.m)
		if err != nil {
			return d.e, plainError(err)
		}
		if err := d.confirm(ctx, w.e.SHA256); err != nil {
			d.out.discard(w)
			return w.e, err
		}
		return w.e, d.out.commit(w)
	}
	p, err := d.out.part(d.e)
	if err != nil {
		return d.e, plainError(err)
	}
	d.m.Content(p.start)
	reuse(d.m, p.start)
	if err := d.pour(ctx, f, p); err != nil {
		p.failed(err, d.m)
		return d.e, err
	}
	return p.finish(ctx, func(sum string) error { return d.confirm(ctx, sum) })
}

type meteredReader struct {
	r io.Reader
	m Meter
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.m.Wire(int64(n))
	return n, err
}

func (d *download) pour(ctx context.Context, f *sftp.File, p *partFile) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sftpRequests)
	pool := stdsync.Pool{New: func() any { return new([sftpChunk]byte) }}
	for at := p.start; at < d.e.Size && gctx.Err() == nil; at += sftpChunk {
		g.Go(func() error {
			if gctx.Err() != nil {
				return gctx.Err()
			}
			buf := pool.Get().(*[sftpChunk]byte)
			defer pool.Put(buf)
			b := buf[:min(sftpChunk, d.e.Size-at)]
			n, err := f.ReadAt(b, at)
			if n < len(b) {
				// A file that ends early is another by now; pkg/sftp says the same word
				// for a channel that was closed, where the part must be kept.
				if (err == nil || errors.Is(err, io.EOF)) && !d.t.ends(ctx, d.c, err) {
					return ErrChanged
				}
				return errOr(err, io.ErrUnexpectedEOF)
			}
			d.m.Content(int64(n))
			d.m.Wire(int64(n))
			return plainError(p.writeAt(b, at))
		})
	}
	return errOr(g.Wait(), ctx.Err())
}

// confirm asks the instance for the file's sum. Where it can compute none, the
// file must at least be what was listed; --verify reads it again.
func (d *download) confirm(ctx context.Context, sum string) error {
	if d.t.sh == nil {
		fi, err := d.c.Lstat(path.Join(d.root, d.e.Source()))
		if err != nil {
			return err
		}
		if fi.Size() != d.e.Size || fi.ModTime().Unix() != d.e.ModTime.Unix() {
			return ErrChanged
		}
		return nil
	}
	var far string
	err := d.t.sh.Hash(ctx, d.root, []string{d.e.Source()}, func(_, s string, err error) {
		if far = s; err != nil {
			far = "unreadable"
		}
	})
	if err == nil && far != sum {
		err = fmt.Errorf("%w (or %w)", ErrDiffers, ErrChanged)
	}
	return err
}
