package session

import (
	"context"
	stdsync "sync"

	"rentop/remote"
)

// link is the connection that a session has at the moment, for those who need
// one: it lets them wait for it, or hear why there is none.
type link struct {
	mu      stdsync.Mutex
	conn    *remote.Conn
	fresh   *remote.Conn // dialed; what is there has not been looked at yet
	facts   *remote.Facts
	err     error // of the last failed attempt
	failed  int   // attempts that failed
	final   bool  // err needs the person: waiting is useless
	changed chan struct{}
}

func newLink() *link { return &link{changed: make(chan struct{})} }

func (l *link) set(change func()) {
	l.mu.Lock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
}

// dialed says that there is a connection of which nothing is known yet.
func (l *link) dialed(c *remote.Conn) {
	l.set(func() { l.fresh, l.facts = c, nil })
}

func (l *link) up(c *remote.Conn, f *remote.Facts) {
	l.set(func() { l.conn, l.facts, l.err, l.final = c, f, nil, false })
}

func (l *link) down(err error, final bool) {
	l.set(func() {
		l.conn, l.fresh, l.err, l.final = nil, nil, err, final
		l.failed++
	})
}

// lost says that a connection has ended: no attempt has failed yet.
func (l *link) lost(err error) {
	l.set(func() { l.conn, l.fresh, l.err, l.final = nil, nil, err, false })
}

// now is the connection; nil where there is none or it has ended.
func (l *link) now() (*remote.Conn, *remote.Facts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.living(false), l.facts
}

// attempts is how many have failed.
func (l *link) attempts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// early is the connection, looked at or not; nil where there is none.
func (l *link) early() *remote.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.living(true)
}

// living is the connection as long as it lives: between its end and lost, nobody
// shall get it again.
func (l *link) living(early bool) *remote.Conn {
	c := l.conn
	if c == nil && early {
		c = l.fresh
	}
	if c == nil || c.Err() != nil {
		return nil
	}
	return c
}

// wait gives the connection. It returns the reason as soon as an attempt failed
// for good, or for any reason where patient is false: an attempt after the failed
// ones, which were counted before a new one was asked for. With early it takes a
// connection that has not been looked at: its facts are nil.
func (l *link) wait(ctx context.Context, failed int, patient, early bool) (*remote.Conn, *remote.Facts, error) {
	l.mu.Lock()
	for {
		conn, facts, err, final, n, ch := l.living(early), l.facts, l.err, l.final, l.failed, l.changed
		l.mu.Unlock()
		switch {
		case conn != nil:
			return conn, facts, nil
		case final && n > failed, final && patient:
			return nil, nil, err
		case !patient && n > failed:
			return nil, nil, err
		}
		select {
		case <-ch:
		case <-ctx.Done():
			if err != nil {
				return nil, nil, err
			}
			return nil, nil, ctx.Err()
		}
		l.mu.Lock()
	}
}
