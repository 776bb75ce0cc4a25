package serve

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// hungUp is closed when the other end of stdin is: also where data still waits
// there because the service is too busy to read it, so that no helper outlives its
// connection.
func hungUp(ctx context.Context, _ *stripe) <-chan struct{} {
	gone := make(chan struct{})
	go func() { // ends with ctx
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			fds := []unix.PollFd{{Fd: 0, Events: unix.POLLRDHUP}}
			if n, err := unix.Poll(fds, 0); err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				close(gone)
				return
			}
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return gone
}
