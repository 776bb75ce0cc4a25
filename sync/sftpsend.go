package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"
	stdsync "sync"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file writes files over SFTP: beside the destination, many requests in
// flight, large ones resumed from their journal, verified on the instance (or by
// reading back) before the rename.

func (t *sftpTransport) Send(ctx context.Context, src, root string, files []Entry, m Meter, done func(Entry, error)) error {
	var mu stdsync.Mutex
	return t.with(ctx, func(c *sftp.Client) error {
		one := func(ctx context.Context, e Entry) error {
			u := &upload{t: t, c: c, root: root, e: e, m: m}
			err := u.run(ctx, src)
			if t.ends(ctx, c, err) {
				return errOr(ctx.Err(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			done(u.e, cleanErr(err))
			return nil
		}
		return each(ctx, files, one)
	})
}

// each does small files many at once, then the large ones, each of which fills the
// connection alone.
func each(ctx context.Context, files []Entry, one func(context.Context, Entry) error) error {
	small, large := splitLarge(files)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sftpFiles)
	for _, e := range small {
		g.Go(func() error { return one(gctx, e) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, e := range large {
		if err := one(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func splitLarge(files []Entry) (small, large []Entry) {
	for _, e := range files {
		if e.Size >= largeFile {
			large = append(large, e)
		} else {
			small = append(small, e)
		}
	}
	return small, large
}

// upload is one file on its way.
type upload struct {
	t    *sftpTransport
	c    *sftp.Client
	root string
	e    Entry
	m    Meter
	sum  hash.Hash
	kept int64 // of the part, as its journal says
}

func (u *upload) run(ctx context.Context, src string) error {
	f, fi, err := openSource(src, u.e)
	if err != nil {
		return err
	}
	defer f.Close()
	u.e.Size, u.e.ModTime = fi.Size(), fi.ModTime()
	u.sum = sha256.New()
	u.m.Current(u.e.Path)
	part := path.Join(u.root, partName(u.e))
	dir := path.Dir(part)
	if err := u.fill(ctx, f, part); err != nil {
		why := sftpError(u.c, dir, max(u.e.Size, 4096), err)
		// On a full disk a part stands in everybody's way, the next run's too.
		if (u.e.Size < largeFile || errors.Is(why, ErrFull)) && !u.t.ends(ctx, u.c, err) {
			u.c.Remove(part)
			u.c.Remove(part + journalSuffix)
		} else {
			keep(u.m, u.kept)
		}
		return why
	}
	u.e.SHA256 = hex.EncodeToString(u.sum.Sum(nil))
	err = unchanged(f, u.e)
	if err == nil {
		err = u.prove(ctx, part)
	}
	if err == nil {
		err = u.name(ctx, part)
	}
	if err != nil && !u.t.ends(ctx, u.c, err) {
		u.c.Remove(part)
	}
	if u.e.Size >= largeFile && !u.t.ends(ctx, u.c, err) {
		u.c.Remove(part + journalSuffix)
		if err == nil {
			err = u.sweep(ctx)
		}
	}
	return sftpError(u.c, dir, max(u.e.Size, 4096), err)
}

// sweep removes what killed runs left of other versions of the file: nobody goes
// on with those. Its error is the connection's.
func (u *upload) sweep(ctx context.Context) error {
	dir, name := path.Split(path.Join(u.root, partName(u.e)))
	name = name[:strings.LastIndex(name, tree.PartInfix)+len(tree.PartInfix)]
	if u.t.sh != nil {
		err := u.t.sh.r.Run(ctx, remote.Cmd{Script: "rm -f -- " + remote.Quote(dir+name) + "*"})
		if exitCode(err) < 0 {
			return err
		}
		return nil
	}
	list, err := u.c.ReadDir(dir)
	for _, fi := range list {
		if strings.HasPrefix(fi.Name(), name) {
			u.c.Remove(dir + fi.Name())
		}
	}
	return u.t.onlyEnd(ctx, u.c, err)
}

// fill writes the part from where the journal stands.
func (u *upload) fill(ctx context.Context, f *os.File, part string) error {
	start, err := u.resume(ctx, f, part)
	if err != nil {
		return err
	}
	u.kept = start
	flags := os.O_CREATE | os.O_WRONLY
	if start == 0 {
		flags |= os.O_TRUNC
	}
	w, err := u.c.OpenFile(part, flags)
	if err != nil {
		return err
	}
	defer w.Close()
	j, err := u.journal(part)
	if err != nil {
		return err
	}
	if j != nil {
		defer j.Close()
	}
	if err := u.pour(ctx, f, w, j, start); err != nil {
		return err
	}
	if err := w.Truncate(u.e.Size); err != nil {
		return err
	}
	if _, has := u.c.HasExtension("fsync@openssh.com"); has && j != nil {
		if err := w.Sync(); err != nil {
			return err
		}
	}
	return w.Close()
}

func (u *upload) journal(part string) (*sftp.File, error) {
	if u.e.Size < largeFile {
		return nil, nil
	}
	return u.c.OpenFile(part+journalSuffix, os.O_CREATE|os.O_WRONLY)
}

// resume finds how much of the part is right, and has that much of the source
// read into the sum.
func (u *upload) resume(ctx context.Context, f *os.File, part string) (int64, error) {
	if u.e.Size < largeFile {
		return 0, nil
	}
	j, err := u.c.Open(part + journalSuffix)
	if err != nil {
		return 0, u.t.onlyEnd(ctx, u.c, err)
	}
	text, err := io.ReadAll(io.LimitReader(j, 64))
	j.Close()
	if err != nil {
		return 0, u.t.onlyEnd(ctx, u.c, err)
	}
	at := parseJournal(string(text), u.e.Size)
	fi, err := u.c.Lstat(part)
	if err != nil || at == 0 || !fi.Mode().IsRegular() || fi.Size() < at {
		return 0, u.t.onlyEnd(ctx, u.c, err)
	}
	if err := copyMetered(ctx, u.sum, io.NewSectionReader(f, 0, at), nil); err != nil {
		return 0, err
	}
	if u.t.sh != nil { // without a shell the reading back at the end proves it
		sum, err := u.t.sh.prefixSum(ctx, part, at)
		if err != nil {
			return 0, err
		}
		if sum != hex.EncodeToString(u.sum.Sum(nil)) {
			u.sum.Reset()
			return 0, nil
		}
	}
	u.m.Content(at)
	reuse(u.m, at)
	return at, nil
}

// prefixSum is the SHA-256 of a file's first n bytes, "" where it has none.
func (s *shell) prefixSum(ctx context.Context, name string, n int64) (string, error) {
	out, err := remote.Output(ctx, s.r, fmt.Sprintf("head -c %d -- %s | sha256sum", n, remote.Quote(name)))
	if exitCode(err) > 0 || err == nil && len(out) < 64 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(out[:64]), nil
}

// journalEvery is how many bytes go by between two states of the journal.
const journalEvery = 4 << 20

// pour sends f from start on, sftpRequests at a time.
func (u *upload) pour(ctx context.Context, f *os.File, w, j *sftp.File, start int64) error {
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return err
	}
	done := acked{at: start}
	journaled := start
	var mu stdsync.Mutex // protects journaled, u.kept
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sftpRequests)
	pool := stdsync.Pool{New: func() any { return new([sftpChunk]byte) }}
	for at := start; at < u.e.Size && gctx.Err() == nil; {
		buf := pool.Get().(*[sftpChunk]byte)
		n, err := io.ReadFull(f, buf[:min(sftpChunk, u.e.Size-at)])
		if err != nil {
			g.Wait()
			return ErrChanged // it ended before its size
		}
		u.sum.Write(buf[:n])
		off := at
		at += int64(n)
		g.Go(func() error {
			defer pool.Put(buf)
			if gctx.Err() != nil {
				return gctx.Err()
			}
			if _, err := w.WriteAt(buf[:n], off); err != nil {
				return err
			}
			u.m.Content(int64(n))
			u.m.Wire(int64(n))
			end, moved := done.add(off, off+int64(n))
			if j == nil || !moved {
				return nil
			}
			mu.Lock()
			due := end-journaled >= journalEvery
			if due {
				journaled = end
			}
			mu.Unlock()
			if !due {
				return nil
			}
			if _, err := j.WriteAt([]byte(journalText(end)), 0); err != nil {
				return err
			}
			mu.Lock()
			u.kept = max(u.kept, end)
			mu.Unlock()
			return nil
		})
	}
	return errOr(g.Wait(), ctx.Err())
}

// prove compares what lies on the instance with what was read here.
func (u *upload) prove(ctx context.Context, part string) (err error) {
	var sum string
	if u.t.sh != nil {
		sum, err = u.t.sh.prefixSum(ctx, part, u.e.Size)
	} else {
		sum, err = sftpHash(u.c, part)
	}
	if err == nil && sum != u.e.SHA256 {
		err = ErrDiffers
	}
	return err
}

// name gives the part its mode, time and name.
func (u *upload) name(ctx context.Context, part string) error {
	name := path.Join(u.root, u.e.Path)
	if err := u.c.Chmod(part, u.e.Mode.Perm()); err != nil {
		return err
	}
	if err := u.c.Chtimes(part, u.e.ModTime, u.e.ModTime); err != nil {
		return err
	}
	if u.t.sh != nil && u.t.sh.gnuFind && u.e.ModTime.Nanosecond() != 0 {
		// the fraction that SFTP cannot say; without it the second still agrees
		script := fmt.Sprintf("touch -m -d @%s -- %s", u.t.sh.stamp(u.e), remote.Quote(part))
		if err := u.t.sh.r.Run(ctx, remote.Cmd{Script: script}); err != nil && exitCode(err) < 0 {
			return err
		}
	}
	err := sftpRename(u.c, part, name)
	if err != nil && !u.t.ends(ctx, u.c, err) {
		if fi, lerr := u.c.Lstat(name); lerr == nil && fi.IsDir() {
			return errors.New("a folder is in its place")
		}
	}
	return err
}
