//go:build !windows

package tui

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"rentop/remote"
)

// canSuspend says that ctrl+z works here.
const canSuspend = true

// prepareOutput makes the terminal take escape sequences; here it always does.
func prepareOutput(io.Writer) (restore func(), err error) { return func() {}, nil }

// watchSize sends the terminal's size when it changes, until stop.
func watchSize(ctx context.Context, out io.Writer) (sizes <-chan remote.Size, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGWINCH)
	ch, done := make(chan remote.Size), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-sig:
			case <-ctx.Done():
				return
			}
			select {
			case ch <- sizeOf(out):
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch, func() {
		signal.Stop(sig)
		cancel()
		<-done
	}
}
