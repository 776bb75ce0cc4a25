package nvml

import (
	"context"
	"errors"
	"fmt"
	"io"

	"rentop/remote/agent/link"
	"rentop/remote/gpu/sample"
)

// Serve is the helper's "gpu" service: it sends samples until ctx or the link
// ends, or once why there are none. Where the link is slower than the samples, the
// older ones are left out.
func Serve(ctx context.Context, l link.Link) error {
	return serve(ctx, l, func(ctx context.Context, emit func(sample.Sample)) error { return Run(ctx, Options{}, emit) })
}

func serve(ctx context.Context, l link.Link, run func(context.Context, func(sample.Sample)) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // the other side says nothing: its end is what is waited for
		for {
			if _, err := l.Recv(); err != nil {
				cancel(err)
				return
			}
		}
	}()
	newest := make(chan sample.Sample, 1)
	sent := make(chan error, 1)
	go func() {
		var e sample.Encoder
		var buf []byte
		for s := range newest {
			buf = e.Append(buf[:0], s)
			if err := l.Send(sample.MessageSample, buf); err != nil {
				cancel(err)
				sent <- fmt.Errorf("sending a sample: %w", err)
				for range newest {
				}
				return
			}
		}
		sent <- nil
	}()
	err := run(ctx, func(s sample.Sample) {
		select {
		case newest <- s:
		default:
			select {
			case <-newest:
			default:
			}
			newest <- s // room was made, and nobody else fills it
		}
	})
	close(newest)
	if failed := <-sent; failed != nil {
		return failed
	}
	var none *Unavailable
	if errors.As(err, &none) {
		return l.Send(sample.MessageRefused, sample.AppendProblem(nil, none.Problem))
	}
	if cause := context.Cause(ctx); errors.Is(cause, io.EOF) {
		return nil // they have gone in order
	}
	return err
}
