package serve

import (
	"context"

	"golang.org/x/sys/unix"
)

// lookAgain bounds how long the watching outlives its context, in milliseconds. The
// end itself is told at once.
const lookAgain = 5000

// hungUp is closed when the other end of stdin is: also where data still waits
// there because the service is too busy to read it, so that no helper outlives its
// connection. It sleeps in the kernel: a timer would wake an idle helper each second.
func hungUp(ctx context.Context, _ *stripe) <-chan struct{} {
	gone := make(chan struct{})
	go func() { // ends with ctx
		for ctx.Err() == nil {
			fds := []unix.PollFd{{Fd: 0, Events: unix.POLLRDHUP}}
			n, err := unix.Poll(fds, lookAgain)
			if err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				close(gone)
				return
			}
		}
	}()
	return gone
}
