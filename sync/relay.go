package sync

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	stdsync "sync"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"

	"rentop/remote"
)

// This file moves contents from one instance to another in fixed-size buffers:
// small files as one's tar stream that becomes the other's, large ones and those
// of instances without tar as a stream each. A large one goes on where an earlier
// run stood, once the two ends agree on what is there.

// relayEnd is what an instance must be able to do for a relay. e names the file by
// e.Source on the end that is read, and by e.Path on the one that is written.
type relayEnd interface {
	// readFrom writes the content from byte at on to w.
	readFrom(ctx context.Context, root string, e Entry, at int64, w io.Writer, m Meter) error
	// prefix is the SHA-256 of the first n bytes, "" where this end cannot tell.
	prefix(ctx context.Context, root string, e Entry, n int64) (string, error)
	// kept is how much of e waits from an earlier run, and its SHA-256.
	kept(ctx context.Context, root string, e Entry) (n int64, sum string, err error)
	// writeTo takes what feed writes, from byte at on.
	writeTo(ctx context.Context, root string, e Entry, at int64, m Meter, feed func(io.Writer) error) error
	// finish compares what was written with e.SHA256 and gives it its name.
	finish(ctx context.Context, root string, e Entry) error
	// forget removes what was written.
	forget(ctx context.Context, root string, e Entry) error
	// alone says whether err is of one file and leaves the end usable.
	alone(ctx context.Context, err error) bool
	// sum is the SHA-256 of the whole file that is read.
	sum(ctx context.Context, root string, e Entry) (string, error)
}

// ends finds the ways into a transport that a relay uses; t is nil where it has no tar.
func ends(t Transport) (tarT *tarTransport, end relayEnd, err error) {
	switch t := t.(type) {
	case *autoTransport:
		return t.tar, execEnd{execTransport{&t.tar.shell}}, nil
	case *tarTransport:
		return t, execEnd{execTransport{&t.shell}}, nil
	case *sftpTransport:
		return nil, sftpEnd{t}, nil
	case interface{ Unwrap() Transport }:
		return ends(t.Unwrap())
	}
	name, _ := t.Name()
	return nil, nil, fmt.Errorf("files cannot be relayed by %s", name)
}

const (
	relaySmall = 8 // streams at once of small files, where tar is missing on an end
	relayLarge = 2 // of large ones
)

// relay moves files from srcRoot on one instance to dstRoot on the other, whose
// folders exist. done is called as by Transport.Send.
func relay(ctx context.Context, from, to Transport, srcRoot, dstRoot string, files []Entry, m Meter, done func(Entry, error)) error {
	tarA, a, err := ends(from)
	if err != nil {
		return err
	}
	tarB, b, err := ends(to)
	if err != nil {
		return err
	}
	var mu stdsync.Mutex
	one := func(e Entry, err error) {
		mu.Lock()
		defer mu.Unlock()
		done(e, err)
	}
	small, large := splitLarge(files)
	g, gctx := errgroup.WithContext(ctx)
	single := func(files []Entry, atOnce int) func() error {
		return func() error {
			each, ectx := errgroup.WithContext(gctx)
			each.SetLimit(atOnce)
			for _, e := range files {
				each.Go(func() error {
					m.Current(e.Path)
					sent, err := relayOne(ectx, a, b, srcRoot, dstRoot, e, m)
					if err != nil && (ectx.Err() != nil || !a.alone(ectx, err) || !b.alone(ectx, err)) {
						return errOr(ectx.Err(), err)
					}
					one(sent, cleanErr(err))
					return nil
				})
			}
			return each.Wait()
		}
	}
	if len(small) > 0 && tarA != nil && tarB != nil {
		g.Go(func() error {
			return tarB.sendFrom(gctx, func(ctx context.Context, b *batch, tw *tar.Writer) error { return tarA.pour(ctx, srcRoot, b, tw) }, dstRoot, small, m, one)
		})
	} else if len(small) > 0 {
		g.Go(single(small, relaySmall))
	}
	if len(large) > 0 {
		g.Go(single(large, relayLarge))
	}
	return errOr(g.Wait(), ctx.Err())
}

// pour puts the files of b into its stream as this instance's tar sends them, and
// drops those whose SHA-256 is another there afterwards.
func (t *tarTransport) pour(ctx context.Context, root string, b *batch, tw *tar.Writer) error {
	for _, files := range chunks(b.files, busyNames, t.gnuTar) {
		if err := t.pourSome(ctx, root, b, tw, files); err != nil {
			return err
		}
	}
	paths := make([]string, len(b.sent))
	for i, e := range b.sent {
		paths[i] = e.Source()
	}
	sent := b.sent
	b.sent = nil
	n := 0
	err := t.Hash(ctx, root, paths, func(_, sum string, err error) {
		e := sent[n]
		n++
		if err == nil && sum == e.SHA256 {
			b.sent = append(b.sent, e)
			return
		}
		b.drop = append(b.drop, e)
		b.tell(e, errOr(err, fmt.Errorf("%w (or %w)", ErrChanged, ErrDiffers)))
	})
	return err
}

// chunks cuts files by the bytes of their names, where a command line must hold them.
func chunks(files []Entry, names int, whole bool) [][]Entry {
	if whole {
		return [][]Entry{files}
	}
	var out [][]Entry
	start, text := 0, 0
	for i, e := range files {
		if i > start && text+len(e.Source()) > names {
			out = append(out, files[start:i])
			start, text = i, 0
		}
		text += len(e.Source()) + 40
	}
	return append(out, files[start:])
}

func (t *tarTransport) pourSome(ctx context.Context, root string, b *batch, tw *tar.Writer, files []Entry) error {
	want := make(map[string]Entry, len(files))
	paths := make([]string, len(files))
	for i, e := range files {
		want[e.Source()] = e
		paths[i] = e.Source()
	}
	pack := "xargs -0 -r tar -c -f -"
	if t.gnuTar {
		pack = "tar -c --no-recursion --hard-dereference --null -T - -f -"
	}
	end := false
	stderr, err := t.shell.run(ctx, call{
		script: enter(root) + t.unpack() + " | " + pack + " | " + t.shell.pack(),
		in:     func(w io.Writer) error { return writePaths(w, paths) },
		out: func(r *bufio.Reader) error {
			tr := tar.NewReader(r)
			for {
				h, err := tr.Next()
				if err == io.EOF {
					end = true
					return nil
				}
				if err != nil {
					return err
				}
				name := strings.TrimPrefix(h.Name, "./")
				e, ok := want[name]
				switch {
				case h.Size > e.Size+maxSurplus:
					return errors.New("the instance sends more than it listed")
				case !ok || h.Typeflag == tar.TypeLink:
					continue
				}
				delete(want, name)
				if h.Typeflag != tar.TypeReg || h.Size != e.Size {
					b.tell(e, ErrChanged)
					continue
				}
				b.meter.Current(e.Path)
				broken := error(nil)
				if err := b.add(tw, e, noting{tr, &broken}, func() error { return nil }); err != nil {
					return err
				}
				if broken != nil {
					return broken
				}
			}
		},
		meter: b.meter,
	})
	if err != nil && !end {
		if c := exitCode(err); c == exitNoRoot || c == exitBadRoot {
			return rootError(root, err)
		}
		return fmt.Errorf("reading from %s: %w", remote.Clean(root), err)
	}
	if len(want) > 0 && len(files) > 1 { // second names of one file, or what tar could not read
		for _, e := range files {
			if _, missing := want[e.Source()]; missing {
				if err := t.pourSome(ctx, root, b, tw, []Entry{e}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, e := range want {
		b.tell(e, tarReason(stderr, e.Source()))
	}
	return nil
}

// noting remembers that a stream broke, which is not the file's own fault.
type noting struct {
	r   io.Reader
	err *error
}

func (n noting) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	if err != nil && err != io.EOF {
		*n.err = err
	}
	return k, err
}

// relayOne moves one file in a stream of its own.
func relayOne(ctx context.Context, a, b relayEnd, srcRoot, dstRoot string, e Entry, m Meter) (Entry, error) {
	at := int64(0)
	if e.Size >= largeFile {
		n, sum, err := b.kept(ctx, dstRoot, e)
		if err != nil {
			return e, err
		}
		if n > 0 && n <= e.Size {
			here, err := a.prefix(ctx, srcRoot, e, n)
			if err != nil {
				return e, err
			}
			if here == sum && sum != "" {
				at = n
			}
		}
	}
	m.Content(at)
	reuse(m, at)
	moved := &counted{m: m, left: e.Size - at}
	if at < e.Size || at == 0 {
		err := b.writeTo(ctx, dstRoot, e, at, m, func(w io.Writer) error {
			moved.w = w
			return a.readFrom(ctx, srcRoot, e, at, moved, m)
		})
		if err == nil && moved.left > 0 || errors.Is(err, errSurplus) {
			return e, errOr(b.forget(ctx, dstRoot, e), errAlone{ErrChanged})
		}
		if err != nil {
			return e, err
		}
	}
	var err error
	if e.SHA256, err = a.sum(ctx, srcRoot, e); err != nil {
		return e, errOr(b.forget(ctx, dstRoot, e), err)
	}
	return e, b.finish(ctx, dstRoot, e)
}

// errSurplus ends a file that is longer than it was listed.
var errSurplus = errors.New("longer than it was")

// counted passes on no more than left.
type counted struct {
	w    io.Writer
	m    Meter
	left int64
}

func (c *counted) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, errSurplus
	}
	n, err := c.w.Write(p)
	c.left -= int64(n)
	c.m.Content(int64(n))
	return n, err
}

// execEnd is an end with a shell.
type execEnd struct{ execTransport }

func (t execEnd) alone(_ context.Context, err error) bool { return t.execTransport.alone(err) }

func (t execEnd) readFrom(ctx context.Context, root string, e Entry, at int64, w io.Writer, m Meter) error {
	_, err := t.run(ctx, call{
		script: enter(root) + "exec <" + remote.Quote("./"+e.Source()) + " || exit 1\n" + fmt.Sprintf("tail -c +%d | ", at+1) + t.pack(),
		meter:  m,
		out:    func(r *bufio.Reader) error { return copyMetered(ctx, w, r, nil) },
	})
	if err != nil && errors.Is(err, errSurplus) {
		return errSurplus
	}
	return t.fileError(rootError(root, err))
}

func (t execEnd) prefix(ctx context.Context, root string, e Entry, n int64) (string, error) {
	return t.prefixSum(ctx, path.Join(root, e.Source()), n)
}

func (t execEnd) kept(ctx context.Context, root string, e Entry) (int64, string, error) {
	q := remote.Quote("./" + partName(e))
	out, err := remote.Output(ctx, t.r, enter(root)+"[ -f "+q+" ] && [ ! -L "+q+" ] || { rm -f -- "+q+"; exit 0; }\n"+
		fmt.Sprintf("n=$(wc -c <%s); n=$((n / %d * %d)); echo $n; head -c $n %s | sha256sum", q, ddBlock, ddBlock, q))
	if err != nil {
		return 0, "", t.fileError(rootError(root, err))
	}
	f := strings.Fields(string(out))
	if len(f) < 2 {
		return 0, "", nil
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || n < 0 {
		return 0, "", nil
	}
	return n, f[1], nil
}

func (t execEnd) writeTo(ctx context.Context, root string, e Entry, at int64, m Meter, feed func(io.Writer) error) error {
	q := remote.Quote("./" + partName(e))
	inner := error(nil)
	_, err := t.run(ctx, call{
		script: enter(root) + fmt.Sprintf(`umask 077
[ %d != 0 ] || rm -f -- %s
e=$(%s | dd of=%s bs=%d seek=%d conv=notrunc 2>&1) || { printf '%%s\n' "$e" | grep '^dd' >&2; exit 1; }`, at, q, t.unpack(), q, ddBlock, at/ddBlock),
		meter: m,
		in:    func(w io.Writer) error { inner = feed(w); return inner },
	})
	if inner != nil && !errors.Is(inner, errEnded) {
		return inner // the other end's, which also ended this one
	}
	if err = t.fileError(rootError(root, err)); errors.Is(err, ErrFull) {
		return errOr(t.forget(ctx, root, e), err)
	}
	return err
}

func (t execEnd) finish(ctx context.Context, root string, e Entry) error {
	return t.execTransport.finish(ctx, root, "./"+partName(e), e)
}

func (t execEnd) forget(ctx context.Context, root string, e Entry) error {
	return t.execTransport.forget(ctx, root, "./"+partName(e))
}

func (t execEnd) sum(ctx context.Context, root string, e Entry) (sum string, err error) {
	herr := t.Hash(ctx, root, []string{e.Source()}, func(_, s string, e error) { sum, err = s, e })
	if herr != nil {
		return "", herr
	}
	if err != nil {
		return "", errAlone{err}
	}
	return sum, nil
}

// sftpEnd is an end that runs no commands: it reads back what it has written.
type sftpEnd struct{ *sftpTransport }

func (t sftpEnd) alone(ctx context.Context, err error) bool {
	var a errAlone
	return errors.As(err, &a)
}

// on runs fn over the channel and tells a file's error from the channel's.
func (t sftpEnd) on(ctx context.Context, root string, need int64, fn func(c *sftp.Client) error) error {
	return t.with(ctx, func(c *sftp.Client) error {
		err := fn(c)
		if err == nil || t.ends(ctx, c, err) {
			return err
		}
		return errAlone{sftpError(c, root, need, err)}
	})
}

func (t sftpEnd) readFrom(ctx context.Context, root string, e Entry, at int64, w io.Writer, m Meter) error {
	return t.on(ctx, root, 0, func(c *sftp.Client) error {
		f, err := c.Open(path.Join(root, e.Source()))
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return err
		}
		_, err = f.WriteTo(&countWriter{w, m}) // many requests at once
		return err
	})
}

func (t sftpEnd) prefix(context.Context, string, Entry, int64) (string, error) { return "", nil }

func (t sftpEnd) kept(context.Context, string, Entry) (int64, string, error) { return 0, "", nil }

func (t sftpEnd) writeTo(ctx context.Context, root string, e Entry, _ int64, m Meter, feed func(io.Writer) error) error {
	return t.on(ctx, root, max(e.Size, 4096), func(c *sftp.Client) error {
		f, err := c.OpenFile(path.Join(root, partName(e)), os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
		if err != nil {
			return err
		}
		defer f.Close()
		r, w := io.Pipe()
		fed := make(chan error, 1)
		go func() { // ends with what it feeds, or with the file
			err := feed(w)
			w.CloseWithError(err)
			fed <- err
		}()
		_, err = f.ReadFromWithConcurrency(&countReader{r, m}, 64)
		r.CloseWithError(errEnded)
		if inner := <-fed; inner != nil && !errors.Is(inner, errEnded) {
			return inner
		}
		if err != nil {
			return err
		}
		return f.Close()
	})
}

func (t sftpEnd) finish(ctx context.Context, root string, e Entry) error {
	part := path.Join(root, partName(e))
	return t.on(ctx, root, max(e.Size, 4096), func(c *sftp.Client) error {
		sum, err := sftpHash(c, part)
		if err == nil && sum != e.SHA256 {
			err = ErrDiffers
		}
		if err == nil {
			err = (&upload{t: t.sftpTransport, c: c, root: root, e: e}).name(ctx, part)
		}
		if err != nil && !t.ends(ctx, c, err) {
			c.Remove(part)
		}
		return err
	})
}

func (t sftpEnd) forget(ctx context.Context, root string, e Entry) error {
	err := t.on(ctx, root, 0, func(c *sftp.Client) error { return c.Remove(path.Join(root, partName(e))) })
	if err != nil && t.alone(ctx, err) {
		return nil
	}
	return err
}

func (t sftpEnd) sum(ctx context.Context, root string, e Entry) (sum string, err error) {
	err = t.on(ctx, root, 0, func(c *sftp.Client) (err error) {
		sum, err = sftpHash(c, path.Join(root, e.Source()))
		return err
	})
	return sum, err
}

var (
	_ relayEnd = execEnd{}
	_ relayEnd = sftpEnd{}
)
