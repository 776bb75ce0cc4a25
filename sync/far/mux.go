package far

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"rentop/remote/agent/link"
)

// This file lets many calls share a link. A call has messages in both
// directions, each direction with a window in bytes that its consumer refills. The
// one goroutine that reads the link only puts messages into queues, whose length the
// windows bound.

// The kinds of messages on the link. Each payload begins with the call's number.
const (
	kindOpen   = 1 + iota // service, header: a new call, from the client only
	kindData              // what, body
	kindCredit            // how many bytes more the other side may send, and how many have come
	kindEnd               // an error or none: no more data from this side
	kindCancel            // the client gives the call up; the server answers with its end
)

const (
	// window is what either side of a call may send before it hears back. It covers
	// 1 Gbit/s over 250 ms.
	window = 32 << 20
	// overhead is what a message counts beside its body, so that tiny ones are bounded too.
	overhead = 64
	// What was consumed is granted again in such pieces, or so often where less comes.
	grantAt    = window / 128
	grantEvery = 20 * time.Millisecond
	// maxCalls bounds the calls that are open at once.
	maxCalls = 64
	idSize   = 4
)

// conn is a link shared by calls.
type conn struct {
	l     link.Link
	serve func(*call) // the server's; nil on the client

	opening sync.Mutex // held while an open is sent, so that calls are opened in order

	mu     sync.Mutex // protects what follows
	calls  map[uint32]*call
	last   uint32 // the newest call
	err    error  // why the link ended
	served sync.WaitGroup

	down chan struct{} // closed once the link has ended
}

func newConn(l link.Link, serve func(*call)) *conn {
	return &conn{l: l, serve: serve, calls: map[uint32]*call{}, down: make(chan struct{})}
}

// call is one request with its two streams.
type call struct {
	c       *conn
	id      uint32
	service byte   // of an incoming one
	header  []byte // of an incoming one
	ctx     context.Context
	cancel  context.CancelCauseFunc
	wire    func(int64) // hears of bytes; nil where nobody counts
	telling sync.Mutex  // held while a grant is sent

	mu       sync.Mutex // protects what follows
	in       []frame
	granted  int64 // what the other side may still send
	credit   int64 // what we may still send
	owed     int64 // consumed and not yet granted again
	granting time.Time
	ended    bool // the other side's end has come
	endErr   error
	sent     int64         // in all
	acked    int64         // what the other side has consumed in all
	arrivals int64         // what has come there, as it last said
	came     int64         // what has come here
	news     chan struct{} // in has grown, or the end has come
	credited chan struct{}
	over     chan struct{} // closed with ended
}

// frame is one message of a call.
type frame struct {
	what byte
	body []byte
	m    link.Message
}

func (f *frame) size() int64 { return int64(len(f.body)) + overhead }

// free gives the frame's memory back; its body is gone afterwards.
func (f *frame) free() { f.m.Free(); f.body = nil }

// newCall needs c.mu.
func (c *conn) newCall(ctx context.Context, id uint32) *call {
	k := &call{c: c, id: id, granted: window, credit: window, news: make(chan struct{}, 1), credited: make(chan struct{}, 1), over: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancelCause(ctx)
	c.calls[id] = k
	return k
}

// open starts a call.
func (c *conn) open(ctx context.Context, service byte, header []byte) (*call, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return nil, err
	}
	if len(c.calls) >= maxCalls {
		c.mu.Unlock()
		return nil, errors.New("too many transfers at once over one link")
	}
	c.last++
	k := c.newCall(ctx, c.last)
	c.mu.Unlock()
	if err := c.l.Send(kindOpen, binary.LittleEndian.AppendUint32(nil, k.id), []byte{service}, header); err != nil {
		c.end(err)
		return nil, c.cause()
	}
	return k, nil
}

// read takes messages until the link ends; it returns why.
func (c *conn) read(ctx context.Context) error {
	for {
		m, err := c.l.Recv()
		if err != nil {
			if err != io.EOF {
				err = fmt.Errorf("the link to the sync helper: %w", err)
			}
			c.end(err)
			return err
		}
		if err := c.dispatch(ctx, m); err != nil {
			c.end(err)
			return err
		}
	}
}

func (c *conn) dispatch(ctx context.Context, m link.Message) error {
	if len(m.Payload) < idSize {
		return broken("a message of %d bytes", len(m.Payload))
	}
	id := binary.LittleEndian.Uint32(m.Payload)
	body := m.Payload[idSize:]
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Kind == kindOpen {
		switch {
		case c.serve == nil:
			return broken("it opened a call")
		case id != c.last+1:
			return broken("call %d after %d", id, c.last)
		case len(body) < 1 || len(body) > 1<<20:
			return broken("a request of %d bytes", len(body))
		case len(c.calls) >= maxCalls+8: // the client may not have heard of the ends yet
			return broken("more than %d calls at once", maxCalls)
		}
		c.last = id
		k := c.newCall(ctx, id)
		k.service, k.header = body[0], body[1:]
		c.served.Go(func() { c.serve(k) })
		return nil
	}
	k := c.calls[id]
	if k == nil {
		if id > c.last {
			return broken("a message for call %d, which nobody opened", id)
		}
		m.Free()
		return nil // on its way while the call ended
	}
	switch m.Kind {
	case kindData:
		if len(body) < 1 {
			return broken("data without a kind")
		}
		return k.put(frame{what: body[0], body: body[1:], m: m})
	case kindCredit:
		if len(body) != 12 {
			return broken("a grant of %d bytes", len(body))
		}
		return k.grant(int64(binary.LittleEndian.Uint32(body)), binary.LittleEndian.Uint64(body[4:]))
	case kindEnd:
		d := decoder{b: body}
		err := d.error()
		if e := d.end(); e != nil {
			return e
		}
		k.finish(err)
	case kindCancel:
		k.cancel(&Error{Class: Stopped, Text: "the transfer was given up"})
	default:
		return broken("a message of unknown kind %d", m.Kind)
	}
	return nil
}

// end ends all calls; the first reason counts.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if c.err = err; err == io.EOF {
		c.err = errors.New("the sync helper has ended")
	}
	close(c.down)
	for _, k := range c.calls {
		k.cancel(c.err)
	}
}

// cause is why the link ended.
func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// close forgets the call.
func (k *call) close() {
	k.c.mu.Lock()
	delete(k.c.calls, k.id)
	k.c.mu.Unlock()
	k.cancel(context.Canceled)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (k *call) put(f frame) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return broken("data after the end of call %d", k.id)
	}
	k.came += f.size()
	if k.granted -= f.size(); k.granted < 0 {
		return broken("more data than it was granted in call %d", k.id)
	}
	k.in = append(k.in, f)
	signal(k.news)
	return nil
}

func (k *call) grant(n int64, arrived uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if arrived > uint64(k.sent) || int64(arrived) < k.arrivals {
		return broken("%d bytes of %d have come in call %d", arrived, k.sent, k.id)
	}
	k.arrivals = int64(arrived)
	k.acked += n
	if k.credit += n; k.credit > window {
		return broken("a grant beyond the window in call %d", k.id)
	}
	signal(k.credited)
	return nil
}

func (k *call) finish(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.ended, k.endErr = true, err
		close(k.over)
		signal(k.news)
	}
}

// why is the reason for which the call's context ended.
func (k *call) why() error { return context.Cause(k.ctx) }

// send waits until the other side has room and sends. It is safe for concurrent use.
func (k *call) send(what byte, parts ...[]byte) error {
	n := int64(overhead)
	for _, p := range parts {
		n += int64(len(p))
	}
	for {
		k.mu.Lock()
		if k.ctx.Err() != nil {
			k.mu.Unlock()
			return k.why()
		}
		if k.credit >= n {
			k.credit -= n
			k.sent += n
			if k.credit > 0 {
				signal(k.credited) // another may wait for less
			}
			k.mu.Unlock()
			break
		}
		k.mu.Unlock()
		select {
		case <-k.credited:
		case <-k.ctx.Done():
			return k.why()
		}
	}
	head := append(binary.LittleEndian.AppendUint32(make([]byte, 0, idSize+1), k.id), what)
	if err := k.c.l.Send(kindData, append([][]byte{head}, parts...)...); err != nil {
		k.c.end(err)
		return err
	}
	if k.wire != nil {
		k.wire(n)
	}
	return nil
}

// flight is what was sent and is not known to have come, and what was consumed.
func (k *call) flight() (inflight, acked int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent - k.arrivals, k.acked
}

// arrived is how much of what was sent has come, as far as is known.
func (k *call) arrived() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.arrivals
}

// sentSoFar is what was sent in all.
func (k *call) sentSoFar() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent
}

// recv returns the next message; io.EOF where the other side has ended well. Its
// bytes count against the window until release is called for the frame's size.
func (k *call) recv() (frame, error) {
	for {
		if k.ctx.Err() != nil {
			return frame{}, k.why()
		}
		k.mu.Lock()
		if len(k.in) > 0 {
			f := k.in[0]
			k.in[0] = frame{}
			if k.in = k.in[1:]; len(k.in) == 0 {
				k.in = nil
			}
			k.mu.Unlock()
			if k.wire != nil {
				k.wire(f.size())
			}
			return f, nil
		}
		ended, err := k.ended, k.endErr
		k.mu.Unlock()
		if ended {
			if err == nil {
				err = io.EOF
			}
			return frame{}, err
		}
		select {
		case <-k.news:
		case <-k.ctx.Done():
			return frame{}, k.why()
		}
	}
}

// left is a message that had come when the call was over; false where there is none.
func (k *call) left() (frame, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.in) == 0 {
		return frame{}, false
	}
	f := k.in[0]
	k.in = k.in[1:]
	return f, true
}

// release grants n bytes again: they were consumed.
func (k *call) release(n int64) {
	if k.ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	k.owed += n
	due := k.due()
	k.mu.Unlock()
	if !due {
		return
	}
	// Taken before k.mu, which the reader of the link needs: it must not wait for a Send.
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	if !k.due() {
		k.mu.Unlock()
		return
	}
	k.granting = time.Now()
	n, k.owed = k.owed, 0
	k.granted += n
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(make([]byte, 0, 16), k.id), uint32(n))
	b = binary.LittleEndian.AppendUint64(b, uint64(k.came))
	k.mu.Unlock()
	if err := k.c.l.Send(kindCredit, b); err != nil {
		k.c.end(err)
	}
}

// due says whether what is owed should be granted now; it needs mu.
func (k *call) due() bool {
	return !k.ended && (k.owed >= grantAt || k.owed >= 8*overhead && time.Since(k.granting) >= grantEvery)
}

// sendEnd says that no more comes from this side, because of err where it is set.
func (k *call) sendEnd(err error) error {
	return k.c.l.Send(kindEnd, appendError(binary.LittleEndian.AppendUint32(nil, k.id), err))
}

// giveUp tells the server to stop, and waits for a moment until it has: what it
// wrote is settled then, and a new call finds no other in its way.
func (k *call) giveUp(wait <-chan struct{}) {
	k.mu.Lock()
	ended := k.ended
	k.mu.Unlock()
	if ended {
		return
	}
	if k.c.l.Send(kindCancel, binary.LittleEndian.AppendUint32(nil, k.id)) != nil {
		return
	}
	select {
	case <-k.over:
	case <-k.c.down:
	case <-wait:
	}
}
