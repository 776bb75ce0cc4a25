// Session channels and their budget. A server refuses more than MaxSessions at
// once (10 by default, 1 or 2 on some images), so the limit is learned from its
// refusals: callers wait for a free channel, and where a short command would
// wait for a long stream, another connection is opened.

package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// BusyError is returned where the server allows no further channel and no
// further connection could be opened.
type BusyError struct {
	Limit int   // channels that the server allows on one connection
	Err   error // why another connection failed; nil where none was tried
}

func (e *BusyError) Error() string {
	s := fmt.Sprintf("the server allows %d channels at once (MaxSessions) and all are in use; close a terminal or a log that is followed", e.Limit)
	if e.Err != nil {
		s += "; another connection failed: " + e.Err.Error()
	}
	return s
}

func (e *BusyError) Unwrap() error { return e.Err }

// ErrCut is returned where the connection ended before what ran on it did: its
// end is unknown.
var ErrCut = errors.New("the connection ended before the command did")

const (
	patience       = 300 * time.Millisecond // wait for a channel before another connection is opened
	busyAfter      = 10 * time.Second       // wait for a channel where none can be
	maxConns       = 5                      // connections to one instance, the first included
	channelTimeout = 20 * time.Second       // wait for the server's answer to a channel request
	settle         = 200 * time.Millisecond // a server may count a channel for so long after its end
)

// channels hands out session channels of one instance; see newChannels.
type channels struct {
	another func(context.Context) (*ssh.Client, error) // nil: one connection only

	mu      sync.Mutex    // guards the fields below and every line's
	lines   []*line       // lines[0] is the first connection
	changed chan struct{} // closed and replaced when a channel or a connection becomes free
	dialing bool
	closed  bool
}

// line is one connection with the channels in use on it.
type line struct {
	client *ssh.Client
	ended  chan struct{} // closed when the connection is gone
	used   int
	limit  int // 0: not learned yet
	given  time.Time
	proven atomic.Bool // a command was accepted
}

func newLine(c *ssh.Client) *line {
	l := &line{client: c, ended: make(chan struct{})}
	// Dropbear (2022.83) loses a channel's exit status, or dies of an assertion
	// (`!channel->sent_close`), when another channel's process ends at that moment.
	if strings.Contains(string(c.ServerVersion()), "dropbear") {
		l.limit = 1
	}
	go func() { c.Wait(); close(l.ended) }() // ends with the connection
	return l
}

func (l *line) gone() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// newChannels hands out first's channels, and those of further connections that
// another opens where the server's limit asks for it; close ends those.
func newChannels(first *ssh.Client, another func(context.Context) (*ssh.Client, error)) *channels {
	return &channels{another: another, lines: []*line{newLine(first)}, changed: make(chan struct{})}
}

func (c *channels) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, l := range c.lines[1:] {
		l.client.Close()
	}
	c.lines = c.lines[:1]
	c.wake()
}

// get returns a channel, waiting for a free one where the server's limit is
// reached.
func (c *channels) get(ctx context.Context) (*channel, error) {
	start := time.Now()
	for {
		l, changed, err := c.take()
		if err != nil {
			return nil, err
		}
		if l != nil {
			ch, err := openOn(ctx, l)
			if err == nil {
				ch.given = sync.OnceFunc(func() { c.give(l, true) })
				return ch, nil
			}
			if err := c.refused(ctx, l, err); err != nil {
				return nil, err
			}
			continue
		}
		waited := time.Since(start)
		until := patience
		if waited >= patience {
			until = busyAfter
			grew, err := c.extend(ctx)
			if grew {
				continue
			}
			if err != nil && (ctx.Err() != nil || waited >= busyAfter) {
				return nil, err
			}
		}
		timer := time.NewTimer(max(until-waited, 0))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// take reserves a place on a line that may have room; nil where none has.
func (c *channels) take() (*line, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.lines[0].gone() {
		return nil, nil, ErrCut
	}
	kept := c.lines[:1]
	for _, l := range c.lines[1:] {
		if !l.gone() {
			kept = append(kept, l)
		}
	}
	c.lines = kept
	for _, l := range c.lines {
		if l.limit == 0 || l.used < l.limit {
			l.used++
			return l, nil, nil
		}
	}
	return nil, c.changed, nil
}

func (c *channels) give(l *line, opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.used--
	if opened {
		l.given = time.Now()
	}
	c.wake()
}

// wake tells those who wait; c.mu is held.
func (c *channels) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// refused judges a failed open on l: nil is "try again".
func (c *channels) refused(ctx context.Context, l *line, err error) error {
	c.give(l, false)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refusal *ssh.OpenChannelError
	if !errors.As(err, &refusal) {
		if l.gone() {
			return nil // take knows whether it was the first
		}
		return fmt.Errorf("open a channel: %w: %w", ErrCut, err)
	}
	c.mu.Lock()
	fresh, used := time.Since(l.given) < settle, l.used
	if !fresh && used > 0 {
		l.limit = used
	}
	c.mu.Unlock()
	switch {
	case fresh: // sshd frees a session a moment after it closed the channel
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	case used > 0:
		return nil
	}
	return fmt.Errorf("the server refuses to run anything on this connection: %s", Short(refusal.Error(), saidLimit))
}

// extend opens another connection; false without an error where someone else is
// doing it.
func (c *channels) extend(ctx context.Context) (bool, error) {
	c.mu.Lock()
	limit := c.lines[0].limit
	if c.another == nil || len(c.lines) >= maxConns {
		c.mu.Unlock()
		return false, &BusyError{Limit: limit}
	}
	if c.dialing {
		c.mu.Unlock()
		return false, nil
	}
	c.dialing = true
	c.mu.Unlock()

	client, err := c.another(ctx)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing = false
	c.wake()
	switch {
	case err != nil && ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, &BusyError{Limit: limit, Err: err}
	case c.closed:
		client.Close()
		return false, ErrCut
	}
	l := newLine(client)
	l.limit = limit
	c.lines = append(c.lines, l)
	return true, nil
}

// openOn opens a session channel; a channel that comes after ctx's end is closed.
func openOn(ctx context.Context, l *line) (*channel, error) {
	type result struct {
		ch  *channel
		err error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, channelTimeout, errors.New("the server did not answer a channel request"))
	defer cancel()
	opened := make(chan result, 1)
	go func() { // ends with the answer or the connection
		ch, reqs, err := l.client.OpenChannel("session", nil)
		opened <- result{&channel{Channel: ch, reqs: reqs, line: l, closed: make(chan struct{}), in: make(chan struct{}, 1)}, err}
	}()
	select {
	case r := <-opened:
		return r.ch, r.err
	case <-ctx.Done():
		go func() { // likewise
			if r := <-opened; r.err == nil {
				go ssh.DiscardRequests(r.ch.reqs)
				r.ch.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}
