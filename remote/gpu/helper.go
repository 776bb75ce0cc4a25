package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/agent/link"
	"rentop/remote/gpu/sample"
)

// fromHelper reads samples from the helper's "gpu" service and calls emit with
// each until the link ends; it returns why. A *refusedError says that the helper
// is well but has nothing to read.
//
// The helper's clock is the instance's. TakenAt becomes ours; the times within a
// sample are moved by how far the clocks are apart, where that is more than the
// way takes.
func fromHelper(l link.Link, now func() time.Time, emit func(Sample)) error {
	var d sample.Decoder
	var apart time.Duration
	first := true
	for {
		m, err := l.Recv()
		if err != nil {
			return fmt.Errorf("the helper on the instance ended: %w", err)
		}
		switch m.Kind {
		case sample.MessageSample:
		case sample.MessageRefused:
			p, err := sample.ReadProblem(m.Payload)
			if err != nil {
				return err
			}
			return &refusedError{p}
		default:
			continue // of a newer helper
		}
		s, err := d.Decode(m.Payload)
		if err != nil {
			return err
		}
		at := now()
		if first || at.Sub(s.TakenAt)-apart > time.Minute || apart-at.Sub(s.TakenAt) > time.Minute { // once: it must not jitter
			apart, first = at.Sub(s.TakenAt), false
		}
		s.TakenAt = at
		if apart > 5*time.Second || apart < -5*time.Second {
			shift(&s, apart)
		}
		emit(s)
	}
}

func shift(s *Sample, by time.Duration) {
	for i := range s.Processes {
		if p := &s.Processes[i]; !p.StartedAt.IsZero() {
			p.StartedAt = p.StartedAt.Add(by).Round(time.Second)
		}
	}
	for i := range s.GPUs {
		for j := range s.GPUs[i].XIDs {
			x := &s.GPUs[i].XIDs[j]
			x.At = x.At.Add(by)
		}
	}
}

// refusedError is a helper without anything to read.
type refusedError struct{ Problem }

func (e *refusedError) Error() string { return e.What }

// Opener opens a link to the helper's "gpu" service. It may take as long as
// installing the helper does.
type Opener func(context.Context) (link.Link, error)

const (
	silence    = 2 * time.Second // without a sample of the helper's, nvidia-smi is read
	retryFirst = 10 * time.Second
	retryMost  = 5 * time.Minute
)

// heard is what the helper's goroutine tells.
type heard struct {
	s   *Sample
	err error // the helper is gone, or was never there
}

// Follow is Stream over the best source there is: the helper on the instance, and
// nvidia-smi until it answers, where it cannot, and within two seconds of its
// silence. Samples say their source, and in Lesser why it is not the helper. open
// may be nil: then it is Stream.
func Follow(ctx context.Context, r remote.Runner, f *remote.Facts, o Options, open Opener, emit func(Sample)) error {
	if open == nil {
		return Stream(ctx, r, f, o, emit)
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &tap{ctx: ctx, run: func(ctx context.Context, emit func(Sample)) error { return Stream(ctx, r, f, o, emit) }}
	news := make(chan heard)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		helper(ctx, o, open, news)
	}()
	defer func() {
		cancel()
		t.stop()
		<-ended
	}()
	t.start()
	why := "the helper on the instance is starting"
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case h := <-news:
			if h.err != nil {
				why = h.err.Error()
				t.start()
				continue
			}
			emit(*h.s) // before stopping: that takes a round trip or two
			t.stop()
			quiet.Reset(silence + o.pace())
		case s := <-t.samples():
			s.Lesser = why
			emit(s)
		case err := <-t.failed():
			t.errs = nil // it has ended: nobody waits for it again
			return err
		case <-quiet.C:
			if !t.running() {
				why = "the helper on the instance is silent"
				t.start()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// helper keeps a helper read, and opens it again after a while where it ends.
func helper(ctx context.Context, o Options, open Opener, news chan<- heard) {
	tell := func(h heard) {
		select {
		case news <- h:
		case <-ctx.Done():
		}
	}
	delay := retryFirst
	for ctx.Err() == nil {
		err := func() error {
			l, err := open(ctx)
			if err != nil {
				return err
			}
			stop := context.AfterFunc(ctx, func() { l.Close() })
			defer func() {
				if stop() {
					l.Close()
				}
			}()
			return fromHelper(l, o.clock(), func(s Sample) {
				delay = retryFirst
				tell(heard{s: &s})
			})
		}()
		if ctx.Err() != nil {
			return
		}
		tell(heard{err: err})
		if _, refused := errors.AsType[*refusedError](err); refused {
			delay = retryMost
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		delay = min(2*delay, retryMost)
	}
}

// tap is a Stream that can be stopped and started.
type tap struct {
	ctx  context.Context
	run  func(context.Context, func(Sample)) error
	end  context.CancelFunc
	out  chan Sample
	errs chan error
}

func (t *tap) running() bool { return t.end != nil }

func (t *tap) start() {
	if t.running() {
		return
	}
	ctx, cancel := context.WithCancel(t.ctx)
	out, errs := make(chan Sample), make(chan error, 1)
	t.end, t.out, t.errs = cancel, out, errs
	go func() {
		errs <- t.run(ctx, func(s Sample) {
			select {
			case out <- s:
			case <-ctx.Done():
			}
		})
	}()
}

// stop ends the stream and waits for its end.
func (t *tap) stop() {
	if !t.running() {
		return
	}
	t.end()
	if t.errs != nil {
		<-t.errs
	}
	t.end, t.out, t.errs = nil, nil, nil
}

func (t *tap) samples() <-chan Sample { return t.out }

// failed gives why the stream ended by itself.
func (t *tap) failed() <-chan error { return t.errs }
