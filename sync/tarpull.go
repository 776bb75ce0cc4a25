package sync

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	stdsync "sync"

	"golang.org/x/sync/errgroup"

	"rentop/remote"
)

// This file fetches many small files: tar on the instance writes a batch as one
// stream, then the instance hashes the same files, and only what is equal gets
// its name here.

// busyNames bounds a batch's paths where they go into one command line: BusyBox
// xargs fills 32 KiB, and tar must run once.
const busyNames = 20 << 10

func (t *tarTransport) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	out, err := openSink(dst)
	if err != nil {
		return err
	}
	defer out.Close()
	var mu stdsync.Mutex
	report := func(e Entry, err error) {
		mu.Lock()
		defer mu.Unlock()
		done(e, err)
	}
	names := batchNames
	if !t.gnuTar {
		names = busyNames
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(batchesUp)
	for _, files := range batches(files, names) {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return t.fetch(gctx, out, root, files, m, report) })
	}
	return errOr(g.Wait(), ctx.Err())
}

// fetch is one batch.
func (t *tarTransport) fetch(ctx context.Context, out *sink, root string, files []Entry, m Meter, done func(Entry, error)) error {
	in := &intake{ctx: ctx, out: out, meter: m, want: make(map[string]Entry, len(files)), done: done}
	paths := make([]string, len(files))
	for i, e := range files {
		in.want[e.Source()] = e
		paths[i] = e.Source()
	}
	pack := "xargs -0 -r tar -c -f -"
	if t.gnuTar {
		pack = "tar -c --no-recursion --hard-dereference --null -T - -f -"
	}
	stderr, err := t.shell.run(ctx, call{
		script: enter(root) + t.unpack() + " | " + pack + " | " + t.shell.pack(),
		in:     func(w io.Writer) error { return writePaths(w, paths) },
		out:    in.read,
		meter:  m,
	})
	if err != nil && !in.end {
		for _, w := range in.got {
			out.discard(w)
		}
		if c := exitCode(err); c == exitNoRoot || c == exitBadRoot {
			return rootError(root, err)
		}
		return fmt.Errorf("fetching from %s: %w", remote.Clean(root), err)
	}
	hash := func(paths []string, got func(string, string, error)) error { return t.Hash(ctx, root, paths, got) }
	if err := out.confirm(in.got, hash, done); err != nil {
		return err
	}
	for _, e := range files {
		if _, missing := in.want[e.Source()]; !missing {
			continue
		}
		if in.links[e.Source()] && len(files) > 1 { // a second name of a file of this batch
			if err := t.fetch(ctx, out, root, []Entry{e}, m, done); err != nil {
				return err
			}
			continue
		}
		done(e, tarReason(stderr, e.Source()))
	}
	return nil
}

// tarReason is why tar did not send a file.
func tarReason(stderr, p string) error {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "tar: "+remote.CleanLines("./"+p)+": ") {
			why := shortReason(line)
			if strings.Contains(why, "No such file") {
				return fmt.Errorf("gone by now: %w", ErrChanged)
			}
			return toolError(why)
		}
	}
	return errNoSum
}

// intake reads a tar stream from an instance: only files that were asked for,
// of the size that was listed.
type intake struct {
	ctx   context.Context
	out   *sink
	meter Meter
	want  map[string]Entry // by source path; removed when received or reported
	links map[string]bool
	got   []waiting
	done  func(Entry, error)
	end   bool
}

// maxSurplus is how much more than listed an instance may send of one file that
// is skipped, before that is taken for an attack.
const maxSurplus = 1 << 30

func (in *intake) read(r *bufio.Reader) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			in.end = true
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(h.Name, "./")
		e, ok := in.want[name]
		switch {
		case h.Size > e.Size+maxSurplus:
			return errors.New("the instance sends more than it listed")
		case !ok:
			continue
		case h.Typeflag == tar.TypeLink:
			if in.links == nil {
				in.links = map[string]bool{}
			}
			in.links[name] = true
			continue
		case h.Typeflag != tar.TypeReg || h.Size != e.Size:
			delete(in.want, name)
			in.done(e, ErrChanged)
			continue
		}
		in.meter.Current(e.Path)
		w, err := in.out.write(in.ctx, e, tr, in.meter)
		switch {
		case in.ctx.Err() != nil:
			if err == nil {
				in.out.discard(w)
			}
			return in.ctx.Err()
		case errors.Is(err, io.ErrUnexpectedEOF):
			return err
		}
		delete(in.want, name)
		if err != nil {
			in.done(e, plainError(err))
			continue
		}
		in.got = append(in.got, w)
	}
}
