package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"rentop/remote"
)

// canSuspend says that ctrl+z works here.
const canSuspend = false

// prepareOutput makes the console take escape sequences.
func prepareOutput(out io.Writer) (restore func(), err error) {
	f, ok := out.(*os.File)
	if !ok {
		return func() {}, nil
	}
	h := windows.Handle(f.Fd())
	var old uint32
	if err := windows.GetConsoleMode(h, &old); err != nil {
		return func() {}, nil // not a console: mintty and the like need nothing
	}
	mode := old | windows.ENABLE_PROCESSED_OUTPUT | windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING | windows.DISABLE_NEWLINE_AUTO_RETURN
	if err := windows.SetConsoleMode(h, mode); err != nil {
		return nil, fmt.Errorf("make the console take escape sequences: %w; Windows Terminal does", err)
	}
	return func() { _ = windows.SetConsoleMode(h, old) }, nil
}

// watchSize sends the console's size when it changes, until stop. Windows tells
// of a resize only among the console's input records, which the shell gets.
func watchSize(ctx context.Context, out io.Writer) (sizes <-chan remote.Size, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch, done := make(chan remote.Size), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		last := sizeOf(out)
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			now := sizeOf(out)
			if now == last {
				continue
			}
			select {
			case ch <- now:
				last = now
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch, func() {
		cancel()
		<-done
	}
}
