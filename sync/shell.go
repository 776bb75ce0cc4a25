package sync

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	stdsync "sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rentop/remote"
)

// This file runs scripts on an instance with a compressed stream in and one
// out. What the scripts do with files is in shelltree.go, tar.go and execfile.go.

// shell is an instance that can run scripts, and what is there to run them.
type shell struct {
	r       remote.Runner
	comp    string // "zstd", "gzip" or ""
	gnuFind bool   // find -printf
	gnuTar  bool   // PAX headers with fractions of a second, --null -T
}

// tools is what a probe of the instance found.
type tools struct {
	base    string // what is missing of sh, find, xargs, sha256sum; "" where all is there
	tar     bool
	gnuTar  bool
	gnuFind bool
	comp    string
}

const probeScript = `LC_ALL=C; export LC_ALL
have() { command -v "$1" >/dev/null 2>&1; }
for c in find xargs sha256sum mv rm mkdir rmdir chmod ln touch cat head dd; do have $c || echo "missing $c"; done
printf 'x\0' | xargs -0 -r true 2>/dev/null || echo "missing xargs -0"
have tar && echo tar
tar --version 2>/dev/null | head -n 1 | grep -q 'GNU tar' && echo gnutar
find / -maxdepth 0 -printf 'gnufind\n' 2>/dev/null
have zstd && printf x | zstd -cq 2>/dev/null | zstd -dcq >/dev/null 2>&1 && echo zstd
have gzip && echo gzip
echo end`

// probe asks what the instance can do; an error means that nothing can run there.
func probe(ctx context.Context, r remote.Runner) (tools, error) {
	out, err := remote.Output(ctx, r, probeScript)
	if err != nil {
		return tools{}, fmt.Errorf("running commands on the instance: %w", err)
	}
	var t tools
	ended := false
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSpace(line); line {
		case "tar":
			t.tar = true
		case "gnutar":
			t.gnuTar = true
		case "gnufind":
			t.gnuFind = true
		case "zstd":
			t.comp = "zstd"
		case "gzip":
			if t.comp == "" {
				t.comp = "gzip"
			}
		case "end":
			ended = true
		default:
			if what, ok := strings.CutPrefix(line, "missing "); ok {
				t.base = strings.TrimSpace(t.base + " " + remote.Clean(what))
			}
		}
	}
	if !ended {
		return t, errors.New("the instance's shell did not answer a probe")
	}
	return t, nil
}

// unpack and pack are the instance's ends of the two streams.
func (s *shell) unpack() string {
	switch s.comp {
	case "zstd":
		return "zstd -dcq"
	case "gzip":
		return "gzip -dc"
	}
	return "cat"
}

func (s *shell) pack() string {
	switch s.comp {
	case "zstd":
		return "zstd -cq -3"
	case "gzip":
		return "gzip -c -3"
	}
	return "cat"
}

// call is one script with its streams. What in writes reaches the script through
// unpack(); out reads what the script sent through pack(), or as it is if plain.
type call struct {
	script string
	in     func(io.Writer) error
	out    func(*bufio.Reader) error
	plain  bool
	raw    bool // in's bytes are not packed either
	meter  Meter
}

// run runs c and returns the script's stderr, cleaned and bounded.
func (s *shell) run(ctx context.Context, c call) (stderr string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errBuf := &tail{max: 8 << 10}
	cmd := remote.Cmd{Script: "LC_ALL=C; export LC_ALL\n" + c.script, Stderr: errBuf}
	var wg stdsync.WaitGroup
	var inErr, outErr error
	var inR *io.PipeReader
	var outW *io.PipeWriter
	if c.in != nil {
		r, w := io.Pipe()
		inR, cmd.Stdin = r, r
		wg.Go(func() {
			if inErr = s.feed(w, c); inErr != nil && !errors.Is(inErr, errEnded) {
				cancel(inErr) // the script must not take half a stream for a whole one
			}
			w.CloseWithError(inErr)
		})
	}
	if c.out != nil {
		r, w := io.Pipe()
		outW, cmd.Stdout = w, w
		wg.Go(func() {
			if outErr = s.drain(r, c); outErr != nil {
				cancel(outErr)
			}
			r.CloseWithError(outErr)
		})
	}
	err = s.r.Run(ctx, cmd)
	stderr = errBuf.String()
	if x := (*remote.ExitError)(nil); errors.As(err, &x) && x.Stderr == "" && stderr != "" {
		err = &remote.ExitError{Code: x.Code, Signal: x.Signal, Stderr: lastLine(stderr)}
	}
	if outW != nil { // what reads fails with the script's own words
		outW.CloseWithError(errOr(err, io.EOF))
	}
	if inR != nil {
		inR.CloseWithError(errEnded)
	}
	wg.Wait()
	switch {
	case ctx.Err() != nil && context.Cause(ctx) != nil && (errors.Is(context.Cause(ctx), inErr) || errors.Is(context.Cause(ctx), outErr)):
		return stderr, context.Cause(ctx)
	case err != nil:
		return stderr, err
	}
	return stderr, outErr
}

// errEnded is what writing gets once the script is gone.
var errEnded = errors.New("the command on the instance ended early")

func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (s *shell) feed(w io.Writer, c call) error {
	var sink io.WriteCloser = nopCloser{&countWriter{w, c.meter}}
	if !c.raw {
		var err error
		if sink, err = s.packer(sink); err != nil {
			return err
		}
	}
	b := bufio.NewWriterSize(sink, 64<<10)
	if err := c.in(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return sink.Close()
}

func (s *shell) packer(w io.Writer) (io.WriteCloser, error) {
	switch s.comp {
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
	case "gzip":
		return gzip.NewWriterLevel(w, gzip.BestSpeed+1)
	}
	return nopCloser{w}, nil
}

func (s *shell) drain(r io.Reader, c call) error {
	r = &countReader{r, c.meter}
	comp := s.comp
	if c.plain {
		comp = ""
	}
	switch comp {
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(32<<20), zstd.WithDecoderLowmem(true))
		if err != nil {
			return err
		}
		defer d.Close()
		r = d
	case "gzip":
		d, err := gzip.NewReader(r)
		if err != nil {
			return endedEarly(err)
		}
		r = d
	}
	if err := c.out(bufio.NewReaderSize(r, 64<<10)); err != nil {
		return endedEarly(err)
	}
	_, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)) // the end of the stream; the script must not block on it
	return endedEarly(err)
}

// endedEarly gives the bare end of a stream its meaning.
func endedEarly(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnded
	}
	return err
}

// exitCode is the script's, or -1.
func exitCode(err error) int {
	var x *remote.ExitError
	if errors.As(err, &x) {
		return x.Code
	}
	return -1
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

type countWriter struct {
	w io.Writer
	m Meter
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if c.m != nil {
		c.m.Wire(int64(n))
	}
	return n, err
}

type countReader struct {
	r io.Reader
	m Meter
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.m != nil {
		c.m.Wire(int64(n))
	}
	return n, err
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  stdsync.Mutex // Run may write from a goroutine of its own
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = bytes.Clone(t.buf[over:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return remote.CleanLines(string(bytes.TrimSpace(t.buf)))
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
