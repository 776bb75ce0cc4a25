package gpu

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"rentop/remote"
)

//go:embed collector.sh
var collector string

// Options tune a Stream. The zero value is right.
type Options struct {
	Clock    func() time.Time // nil: time.Now
	Interval time.Duration    // between samples, whole seconds; 0: 1 s
}

func (o Options) clock() func() time.Time {
	if o.Clock == nil {
		return time.Now
	}
	return o.Clock
}

func (o Options) pace() time.Duration {
	return max(time.Second, o.Interval)
}

const (
	beatEvery = 5 * time.Second  // how often the collector's lease is renewed
	lease     = 20 * time.Second // how long it lives without
	tickTail  = 400 * time.Millisecond
)

// errNothing is why Once failed on an instance that answered but sent no sample.
var errNothing = errors.New("the collector ended without a sample")

// Stream runs one collector on the instance (one channel, one nvidia-smi) and calls
// emit, from the calling goroutine, with a Sample each interval. It blocks until ctx
// or the connection ends and returns why; a driver that fails is no end but a Sample
// with a Problem. After a connection that broke without a word, the collector ends
// within 20 s, when its lease runs out.
//
// f may be nil. Samples stop coming where nvidia-smi hangs: their age says so, and
// after 30 s one with a Problem does.
func Stream(ctx context.Context, r remote.Runner, f *remote.Facts, o Options, emit func(Sample)) error {
	ctx, cancel := context.WithCancel(ctx)
	records := make(chan record, 64)
	ended := make(chan error, 1)
	stdin, beats := io.Pipe()
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		renew(ctx, beats)
	}()
	go func() {
		err := r.Run(ctx, remote.Cmd{Script: script("stream", f, o.Interval), Stdin: stdin, Stdout: &demux{ctx: ctx, out: records}})
		stdin.CloseWithError(io.ErrClosedPipe)
		ended <- err
	}()

	now, a := o.clock(), newAssembly(f)
	tail := time.NewTimer(tickTail)
	defer tail.Stop()
	var err error
	for err == nil {
		var s *Sample
		select {
		case rec := <-records:
			if s = a.feed(rec, now()); a.pending() {
				tail.Reset(tickTail)
			}
		case <-tail.C:
			s = a.flush(now())
		case err = <-ended:
			if err == nil {
				err = errors.New("the collector on the instance ended")
			}
		}
		if s != nil {
			emit(*s)
		}
	}
	cause := context.Cause(ctx)
	cancel()
	beats.Close()
	<-renewed
	if cause != nil {
		return cause
	}
	return fmt.Errorf("reading the GPUs: %w", err)
}

// renew writes an empty line to the collector every few seconds. A write that the
// connection does not take ends with the pipe.
func renew(ctx context.Context, w *io.PipeWriter) {
	stop := context.AfterFunc(ctx, func() { w.Close() })
	defer stop()
	t := time.NewTicker(beatEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if _, err := w.Write([]byte("\n")); err != nil {
				return
			}
		}
	}
}

// Once takes one Sample; it takes a little over a second, which the rates need.
func Once(ctx context.Context, r remote.Runner, f *remote.Facts, o Options) (*Sample, error) {
	limit, cancel := context.WithTimeout(ctx, firstAnswer+10*time.Second)
	defer cancel()
	records := make(chan record, 64)
	ended := make(chan error, 1)
	go func() {
		err := r.Run(limit, remote.Cmd{Script: script("once", f, 0), Stdout: &demux{ctx: limit, out: records}})
		close(records)
		ended <- err
	}()
	now, a := o.clock(), newAssembly(f)
	for rec := range records {
		a.feed(rec, now())
	}
	err := <-ended
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limit.Err() != nil && a.last != nil: // the host answered, nvidia-smi did not
		a.fault, a.gpus = hung(rough(firstAnswer)), nil
		return a.sample(now()), nil
	case err != nil:
		return nil, fmt.Errorf("reading the GPUs: %w", err)
	case !a.done:
		return nil, fmt.Errorf("reading the GPUs: %w", errNothing)
	}
	return a.sample(now()), nil
}

func newAssembly(f *remote.Facts) *assembly {
	a := &assembly{}
	if f != nil {
		a.others, a.vouch = f.OtherSMI, f.Container != ""
	}
	return a
}

// spoken is the collector without its comments, and with the line ends of a POSIX
// shell whatever the checkout made of them.
func spoken() string {
	var b strings.Builder
	for line := range strings.Lines(collector) {
		line = strings.TrimRight(line, "\r\n")
		if t := strings.TrimSpace(line); t != "" && t[0] != '#' {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// script is the collector with its settings before it.
func script(mode string, f *remote.Facts, every time.Duration) string {
	smi, vouch := "", 0
	if f != nil {
		smi = f.NvidiaSMI
		if f.Container != "" {
			vouch = 1
		}
	}
	seconds := max(1, int(every.Round(time.Second)/time.Second))
	return fmt.Sprintf("mode=%s every=%d lease=%d vouch=%d fields=%s smi=%s\n%s",
		mode, seconds, int(lease/time.Second), vouch, strings.Join(queryFields, ","), remote.Quote(smi), spoken())
}
