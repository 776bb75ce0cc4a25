package link

// What waits to be sent: chunks of whole frames, from which each stripe takes the
// next when it can. A small message joins the chunk at the end, so what piles up
// behind a slow stripe leaves in few writes.

import (
	"fmt"
	"sync"
)

// queueAhead is how much may wait per stripe, with one more for all: enough to
// keep them busy, little enough that a message is soon on its way.
const queueAhead = 4 * chunkSize

// chunk is a queued write.
type chunk struct {
	buf *[chunkSize]byte
	n   int
}

func (c chunk) bytes() []byte { return c.buf[:c.n] }

type outbox struct {
	turn sync.Mutex // held by the Send whose frames are numbered; locked before mu

	mu      sync.Mutex // guards the fields below
	room    sync.Cond  // a chunk was taken, or the end
	work    sync.Cond  // there is something to write, or the end
	queue   []chunk
	bytes   int
	next    uint64 // number of the next frame
	stripes int
	partial bool // a message is queued in part: its rest comes, also while closing
	closing bool
	err     error
	sent    int64 // bytes handed to stripes
}

func (o *outbox) init() {
	o.room.L, o.work.L = &o.mu, &o.mu
}

// put queues one message.
func (o *outbox) put(kind byte, parts [][]byte) error {
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	if total > MaxPayload {
		return fmt.Errorf("a message of %d bytes; a link takes at most %d", total, MaxPayload)
	}
	o.turn.Lock()
	defer o.turn.Unlock()
	h := header{typ: frameFirst, kind: kind, total: total}
	for left := total; ; {
		h.size = min(left, maxBody)
		var err error
		left -= h.size
		if h.size < chunkSize/2 {
			parts, err = o.join(h, parts, left > 0)
		} else {
			c := chunk{buf: chunks.Get().(*[chunkSize]byte)}
			h.number = o.next // only the holder of turn changes it
			parts = c.add(h, parts)
			err = o.push(c, left > 0)
		}
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		h = header{typ: frameMore}
	}
}

// add appends a frame whose body is the beginning of parts and returns the rest.
func (c *chunk) add(h header, parts [][]byte) [][]byte {
	h.put(c.buf[c.n:])
	c.n += headerSize
	for end := c.n + h.size; c.n < end; {
		n := copy(c.buf[c.n:end], parts[0])
		c.n += n
		if n < len(parts[0]) {
			rest := append([][]byte{parts[0][n:]}, parts[1:]...)
			return rest
		}
		parts = parts[1:]
	}
	return parts
}

// push queues a full chunk. more says that the message goes on.
func (o *outbox) push(c chunk, more bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.wait(); err != nil {
		chunks.Put(c.buf)
		return err
	}
	o.partial = more
	o.append(c)
	return nil
}

// join queues a small frame, in the last chunk where it fits.
func (o *outbox) join(h header, parts [][]byte, more bool) ([][]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.wait(); err != nil {
		return nil, err
	}
	o.partial = more
	h.number = o.next
	if n := len(o.queue); n > 0 && o.queue[n-1].n+headerSize+h.size <= chunkSize {
		parts = o.queue[n-1].add(h, parts)
		o.next++
		o.bytes += headerSize + h.size
		if !more && o.closing {
			o.work.Broadcast()
		}
		return parts, nil
	}
	c := chunk{buf: chunks.Get().(*[chunkSize]byte)}
	parts = c.add(h, parts)
	o.append(c)
	return parts, nil
}

// append needs mu.
func (o *outbox) append(c chunk) {
	o.next++
	o.queue = append(o.queue, c)
	o.bytes += c.n
	if o.closing {
		o.work.Broadcast() // all may have waited for the end of a message
	} else {
		o.work.Signal()
	}
}

// wait returns when there is room, or the reason why there will be none; it needs
// mu.
func (o *outbox) wait() error {
	for o.full() && o.over() == nil {
		o.room.Wait()
	}
	return o.over()
}

func (o *outbox) full() bool { return o.bytes >= queueAhead*(1+o.stripes) }

// over is why nothing more is queued, nil where something may be.
func (o *outbox) over() error {
	if o.err == nil && o.closing && !o.partial {
		return ErrClosed
	}
	return o.err
}

// take hands out what s has to write next: its own frames and a chunk. bye is the
// end: s's own last frame is in control.
func (o *outbox) take(s *stripe) (control []byte, c chunk, bye bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if o.err != nil {
			return nil, chunk{}, false, o.err
		}
		control, s.control = s.control, nil
		switch {
		case len(o.queue) > 0:
			c = o.queue[0]
			o.queue[0] = chunk{}
			if o.queue = o.queue[1:]; len(o.queue) == 0 {
				o.queue = nil
			}
			o.bytes -= c.n
			o.sent += int64(c.n)
			o.room.Broadcast()
			return control, c, false, nil
		case len(o.queue) == 0 && o.closing && !o.partial:
			var b [headerSize]byte
			header{typ: frameBye, number: o.next, total: o.stripes}.put(b[:])
			return append(control, b[:]...), chunk{}, true, nil
		case len(control) > 0:
			return control, chunk{}, false, nil
		}
		o.work.Wait()
	}
}

// tell queues a frame of a stripe's own, before all chunks.
func (o *outbox) tell(s *stripe, h header, body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(s.control) > maxControl { // the other side pings faster than it reads: it hears less
		return
	}
	var b [headerSize]byte
	h.size = len(body)
	h.put(b[:])
	s.control = append(append(s.control, b[:]...), body...)
	o.work.Broadcast()
}

const maxControl = 4 << 10

// close lets no more in; what is queued still leaves.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.room.Broadcast()
	o.work.Broadcast()
}

func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	for _, c := range o.queue {
		chunks.Put(c.buf)
	}
	o.queue, o.bytes = nil, 0
	o.room.Broadcast()
	o.work.Broadcast()
}
