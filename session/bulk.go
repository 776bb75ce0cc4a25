package session

import (
	"context"
	"errors"
	"fmt"
	stdsync "sync"
	"sync/atomic"
	"time"

	"rentop/remote"
	"rentop/sync"
)

// This file is about the connections that files move over: never the screen's
// own, so that telemetry and the terminal stay quick. One that has served well is
// kept for a while, since logging in costs more than most transfers. A command
// that moves files has nothing else to do on its one connection, and uses that.

// bulkFor is how long a connection without a transfer is kept.
const bulkFor = 2 * time.Minute

// bulk keeps the last connection for files.
type bulk struct {
	mu    stdsync.Mutex
	idle  *carriage
	timer *time.Timer
}

// carriage is a transport with its connection. Close gives it back where the
// transfer said that it served well, and ends it otherwise.
type carriage struct {
	sync.Transport
	conn   *remote.Conn
	owned  bool // the connection ends with the transport
	served atomic.Bool
	s      *Session
}

func (c *carriage) Close() error {
	if c.served.Load() && c.owned && c.s.bulk.keep(c) {
		return nil
	}
	return c.end()
}

// Unwrap gives the engine what the transport offers beside Transport.
func (c *carriage) Unwrap() sync.Transport { return c.Transport }

func (c *carriage) end() error {
	err := c.Transport.Close()
	if c.owned {
		err = errors.Join(err, c.conn.Close())
	}
	return err
}

// served says that all went well over t, which may be kept then.
func served(t sync.Transport, err error) {
	if c, ok := t.(*carriage); ok && err == nil {
		c.served.Store(true)
	}
}

// keep holds c for the next transfer; false where there is one already.
func (b *bulk) keep(c *carriage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.idle != nil || c.conn.Err() != nil || c.s.ctx.Err() != nil {
		return false
	}
	c.served.Store(false)
	b.idle = c
	b.timer = time.AfterFunc(bulkFor, func() {
		if b.take(c) != nil {
			c.end()
		}
	})
	return true
}

// take hands out what is kept; where only is not nil, only that one.
func (b *bulk) take(only *carriage) *carriage {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.idle
	if c == nil || only != nil && c != only {
		return nil
	}
	b.idle = nil
	b.timer.Stop()
	return c
}

// close ends what is kept.
func (b *bulk) close() {
	if c := b.take(nil); c != nil {
		c.end()
	}
}

// openTransport gives the best transport for files. Its Close may keep the
// connection for the next.
func (s *Session) openTransport(ctx context.Context) (sync.Transport, error) {
	if c := s.bulk.take(nil); c != nil {
		if c.conn.Err() == nil && c.conn.Health().State == remote.Alive {
			return c, nil
		}
		c.end()
	}
	o := sync.OpenOptions{Agent: s.f.opt.helper}
	if !s.f.Config().Transfer.MayUseAgent() {
		o.NoAgent, o.WhyNot = true, "the config says agent = false"
	}
	return s.openOver(ctx, o)
}

// openOver opens a transport over a connection of its own.
func (s *Session) openOver(ctx context.Context, o sync.OpenOptions) (sync.Transport, error) {
	conn, owned, facts, err := s.dialBulk(ctx)
	if err != nil {
		return nil, err
	}
	tr, err := sync.OpenWith(ctx, conn, facts, o)
	if err != nil {
		if owned {
			conn.Close()
		}
		return nil, fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	return &carriage{Transport: tr, conn: conn, owned: owned, s: s}, nil
}

// dialBulk gives a connection for a transfer. It asks nothing: the first
// connection has the answers. facts are nil where nobody has looked yet.
func (s *Session) dialBulk(ctx context.Context) (conn *remote.Conn, owned bool, facts *remote.Facts, err error) {
	if !s.f.opt.Live {
		conn, facts, err = s.dialed(ctx)
		return conn, false, facts, err
	}
	first, facts, err := s.connected(ctx)
	if err != nil {
		return nil, false, nil, err
	}
	conn, err = first.AgainThrottled(ctx, s.limit)
	if err != nil {
		return nil, false, nil, unreachable{fmt.Errorf("%s: open a connection for the transfer: %w", s.cfg().Name, err)}
	}
	return conn, true, facts, nil
}
