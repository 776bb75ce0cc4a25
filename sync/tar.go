package sync

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	stdsync "sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file sends many small files: a batch of them is one tar stream, unpacked
// on the instance into a temporary folder beside each destination, hashed there,
// compared with what was hashed while sending, and renamed into place. One
// command does all that, so a file costs no round trip. tarpull.go is the way back.
//
// A batch's stream begins with the list of its temporary folders and ends with
// the names and sums, in a control folder under the root. If the stream is cut,
// the script removes what it made; if it is killed, the next run does.

// A batch is an eighth of the whole, within these bounds; three are on their way
// at once, so that the next stream flows while the last one is being hashed and
// renamed.
const (
	batchFiles = 2000
	leastFiles = 200
	batchBytes = 8 << 20
	leastBytes = 1 << 20
	batchNames = 384 << 10 // of paths; keeps command lines on the instance under MAX_ARG
	batchesUp  = 3
)

// tarTransport needs sh, find, xargs, sha256sum and tar on the instance.
type tarTransport struct {
	shell
	why   string
	run   string // this process's temporary names
	n     atomic.Int64
	calls atomic.Int64

	splits atomic.Int64 // how often a batch may still be halved
}

func newTar(r remote.Runner, t tools) *tarTransport {
	var b [6]byte
	rand.Read(b[:])
	return &tarTransport{shell: shell{r: r, comp: t.comp, gnuFind: t.gnuFind, gnuTar: t.gnuTar}, run: hex.EncodeToString(b[:])}
}

func (t *tarTransport) Name() (string, string) {
	switch t.comp {
	case "zstd":
		return "tar+zstd", t.why
	case "gzip":
		return "tar+gzip", join(t.why, "no zstd on the instance: gzip compresses less")
	}
	return "tar", join(t.why, "neither zstd nor gzip on the instance: nothing is compressed")
}

func (t *tarTransport) Close() error { return nil }

func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "; ")
}

// batches cuts files so that each stream stays small.
func batches(files []Entry, names int) [][]Entry {
	var all int64
	for _, e := range files {
		all += e.Size
	}
	bytes := min(max(all/8, leastBytes), batchBytes)
	count := min(max(len(files)/8, leastFiles), batchFiles)
	var out [][]Entry
	start, size, text := 0, int64(0), 0
	for i, e := range files {
		if i > start && (size+e.Size > bytes || text+len(e.Path) > names || i-start >= count) {
			out = append(out, files[start:i])
			start, size, text = i, 0, 0
		}
		size += e.Size
		text += len(e.Path) + 40
	}
	if start < len(files) {
		out = append(out, files[start:])
	}
	return out
}

// splitOdd takes out the names that sha256sum may print escaped: a batch with
// one of them is compared here, file by file, which takes longer.
func splitOdd(files []Entry) (plain, odd []Entry) {
	for _, e := range files {
		if strings.ContainsAny(e.Path, "\\\n\r") {
			odd = append(odd, e)
		} else {
			plain = append(plain, e)
		}
	}
	return plain, odd
}

func (t *tarTransport) Send(ctx context.Context, src, root string, files []Entry, m Meter, done func(Entry, error)) error {
	return t.sendFrom(ctx, func(_ context.Context, b *batch, tw *tar.Writer) error { return b.local(tw, src) }, root, files, m, done)
}

// sendFrom is Send of files that from puts into each batch.
func (t *tarTransport) sendFrom(ctx context.Context, from batchSource, root string, files []Entry, m Meter, done func(Entry, error)) error {
	var mu stdsync.Mutex // one done at a time
	var full atomic.Bool
	t.splits.Store(maxSplits)
	run := fmt.Sprintf("%s%s-%d", tree.TmpPrefix, t.run, t.calls.Add(1))
	report := func(e Entry, err error) {
		if errors.Is(err, ErrFull) {
			full.Store(true)
		}
		mu.Lock()
		defer mu.Unlock()
		done(e, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(batchesUp + 1)
	g.Go(func() error { return t.sweep(gctx, root, run) })
	plain, odd := splitOdd(files)
	for _, files := range append(batches(plain, batchNames), batches(odd, batchNames)...) {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if full.Load() {
				for _, e := range files {
					report(e, fmt.Errorf("not tried: %w on the instance", ErrFull))
				}
				return nil
			}
			return t.batch(run, from, root, files, m, report).send(gctx)
		})
	}
	return errOr(g.Wait(), ctx.Err())
}

func (t *tarTransport) batch(run string, from batchSource, root string, files []Entry, m Meter, done func(Entry, error)) *batch {
	return &batch{t: t, run: run, from: from, root: root, files: files, meter: m, done: done, told: map[string]bool{},
		tmp: fmt.Sprintf("%s-%d", run, t.n.Add(1))}
}

// sweep removes what killed runs left in root: the temporary folders with the
// name of a control folder whose script is gone.
func (t *tarTransport) sweep(ctx context.Context, root, run string) error {
	script := enter(root) + `for c in ./` + tree.TmpPrefix + `*.ctl; do
[ -d "$c" ] && [ ! -L "$c" ] || continue
case $c in ./` + run + `-*) continue;; esac
p=$(cat "$c/pid" 2>/dev/null)
if [ -n "$p" ]; then kill -0 "$p" 2>/dev/null && continue; else [ -n "$(find "$c" -maxdepth 0 -mmin +1)" ] || continue; fi
t=${c#./}; t=${t%.ctl}
find . -type d -name "$t" -prune -exec rm -rf -- {} + 2>/dev/null
rm -rf -- "$c"
done
exit 0`
	err := t.r.Run(ctx, remote.Cmd{Script: script})
	if exitCode(err) >= 0 {
		return nil // what cannot be swept harms nothing; a missing root is reported by the batches
	}
	return err
}
