// Connections that may not use the whole line.

package remote

import (
	"context"
	"net"
	"sync"
)

// Throttle slows down the bytes of a connection, SSH's own included. Up is called
// before n bytes go out, Down after n bytes came in; each returns when the next may
// move, or end is closed.
type Throttle interface {
	Up(n int, end <-chan struct{})
	Down(n int, end <-chan struct{})
}

// AgainThrottled is Again for a connection that keeps to t, with all further ones
// that it opens.
func (c *Conn) AgainThrottled(ctx context.Context, t Throttle) (*Conn, error) {
	o := *c.o
	o.OnHealth, o.OnStage, o.Throttle = nil, nil, t
	return Dial(ctx, c.ep, o)
}

// throttledConn is the first transport of a connection.
type throttledConn struct {
	net.Conn
	t      Throttle
	end    chan struct{}
	ending sync.Once
}

func newThrottledConn(c net.Conn, t Throttle) *throttledConn {
	return &throttledConn{Conn: c, t: t, end: make(chan struct{})}
}

// throttlePiece bounds what goes out at once, so that a low rate is smooth.
const throttlePiece = 8 << 10

func (c *throttledConn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		piece := p[:min(len(p), throttlePiece)]
		c.t.Up(len(piece), c.end)
		var k int
		k, err = c.Conn.Write(piece)
		n, p = n+k, p[k:]
	}
	return n, err
}

func (c *throttledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.t.Down(n, c.end)
	}
	return n, err
}

func (c *throttledConn) Close() error {
	c.ending.Do(func() { close(c.end) })
	return c.Conn.Close()
}
