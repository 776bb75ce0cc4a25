// Time limits around a connection that is being made, and its signs of life.

package remote

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// guard is a timeout that can be paused while a person is asked.
type guard struct {
	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	since   time.Time
	paused  int
	expired bool
}

func newGuard(d time.Duration, kill func()) *guard {
	g := &guard{left: d, since: time.Now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(d, func() {
		g.mu.Lock()
		g.expired = g.paused == 0
		over := g.expired
		g.mu.Unlock()
		if over {
			kill()
		}
	})
	return g
}

func (g *guard) pause() (resume func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused++; g.paused == 1 && g.timer.Stop() {
		g.left -= time.Since(g.since)
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.paused--; g.paused == 0 && !g.expired {
			g.since = time.Now()
			g.timer.Reset(max(g.left, time.Second))
		}
	}
}

func (g *guard) stop() { g.timer.Stop() }

func (g *guard) fired() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.expired
}

// watchedConn knows when bytes last came in and whether reading has failed.
type watchedConn struct {
	net.Conn
	epoch  time.Time
	heard  atomic.Int64 // since epoch
	broken atomic.Bool
}

func newWatchedConn(c net.Conn) *watchedConn { return &watchedConn{Conn: c, epoch: time.Now()} }

func (w *watchedConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.heard.Store(int64(time.Since(w.epoch)))
	}
	if err != nil {
		w.broken.Store(true)
	}
	return n, err
}

// silence is how long nothing was heard since t or, where that is later, since
// the last byte.
func (w *watchedConn) silence(t time.Time) time.Duration {
	last := w.epoch.Add(time.Duration(w.heard.Load()))
	if t.After(last) {
		last = t
	}
	return time.Since(last)
}
