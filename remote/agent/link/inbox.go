package link

// What has arrived: frames of several stripes put in order and joined to messages.
// Memory is bounded twice: messages that nobody takes stop all reading, and frames
// that run ahead of a slow stripe stop the reading of theirs. The frame that is
// needed next is always read, so a bound never stops the link for good.

import (
	"io"
	"sync"
)

const (
	maxReady = 4 << 20  // bytes of whole messages, before reading stops
	maxHeld  = 32 << 20 // bytes of frames that came before their turn
	frameFee = 64       // what a held frame costs beside its body
)

// ahead is a frame that waits for its turn.
type ahead struct {
	h    header
	body []byte
}

type inbox struct {
	mu      sync.Mutex // guards the fields below
	moved   sync.Cond  // next grew, room came about, or the end
	next    uint64     // number of the frame that is needed
	held    map[uint64]ahead
	heldSum int
	message Message // being joined
	filled  int
	joining bool
	reading bool // the frame that is needed is being read
	ready   []Message
	first   int    // index in ready
	sum     int    // bytes of ready
	reached uint64 // how many frames have come, held ones too
	final   uint64
	stripes int
	byes    int
	said    bool // final and stripes are known
	drop    bool // nobody takes messages any more
	err     error
}

func (b *inbox) init() {
	b.moved.L = &b.mu
	b.held = map[uint64]ahead{}
}

// recv returns the next message. broken is a rule that the other side broke in
// what comes after it.
func (b *inbox) recv() (m Message, broken, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.first == len(b.ready) {
		switch {
		case b.err != nil:
			return Message{}, nil, b.err
		case b.said && b.next == b.final && !b.joining:
			return Message{}, nil, io.EOF
		}
		b.moved.Wait()
	}
	m = b.ready[b.first]
	b.ready[b.first] = Message{}
	if b.first++; b.first == len(b.ready) {
		b.ready, b.first = b.ready[:0], 0
	}
	was := b.sum
	b.sum -= cost(m)
	if was > maxReady && b.sum <= maxReady {
		broken = b.catchUp()
		b.moved.Broadcast()
	}
	return m, broken, nil
}

func cost(m Message) int { return len(m.Payload) + frameFee }

// frame takes a frame's body from r in its turn, or holds it where it is early.
func (b *inbox) frame(h header, r io.Reader) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if b.err != nil {
			return b.err
		}
		_, twice := b.held[h.number]
		if twice || h.number < b.next || h.number == b.next && b.reading || b.said && h.number >= b.final {
			return protocolError("frame %d again, or after the last", h.number)
		}
		if h.number == b.next && b.sum <= maxReady {
			return b.now(h, r)
		}
		if h.number != b.next && b.heldSum <= maxHeld {
			return b.later(h, r)
		}
		b.moved.Wait()
	}
}

// now reads the frame that is needed straight into its message. It needs mu and
// gives it up while it reads: no one else can have the frame.
func (b *inbox) now(h header, r io.Reader) error {
	place, err := b.begin(h)
	if err != nil {
		return err
	}
	b.reading = true
	b.mu.Unlock()
	_, err = io.ReadFull(r, place)
	b.mu.Lock()
	b.reading = false
	if err != nil {
		return cut(err)
	}
	b.reached++
	b.advance(h)
	err = b.catchUp()
	b.moved.Broadcast()
	return err
}

// later holds a frame.
func (b *inbox) later(h header, r io.Reader) error {
	b.heldSum += h.size + frameFee
	b.held[h.number] = ahead{h: h} // its place; body comes
	b.mu.Unlock()
	body := getBuffer(h.size)
	_, err := io.ReadFull(r, body)
	b.mu.Lock()
	if err != nil {
		return cut(err)
	}
	b.held[h.number] = ahead{h, body}
	b.reached++
	if h.number > b.next {
		return nil
	}
	err = b.catchUp() // its turn came meanwhile
	b.moved.Broadcast()
	return err
}

// catchUp joins the held frames whose turn has come; it needs mu.
func (b *inbox) catchUp() error {
	for b.sum <= maxReady {
		a, is := b.held[b.next]
		if !is || a.body == nil { // nil: being read
			return nil
		}
		place, err := b.begin(a.h)
		if err != nil {
			return err
		}
		copy(place, a.body)
		putBuffer(a.body)
		delete(b.held, a.h.number)
		b.heldSum -= a.h.size + frameFee
		b.advance(a.h)
	}
	return nil
}

// begin returns where the body of the next frame belongs.
func (b *inbox) begin(h header) ([]byte, error) {
	switch {
	case h.typ == frameFirst && b.joining:
		return nil, protocolError("a new message inside another")
	case h.typ == frameFirst:
		b.message, b.filled, b.joining = Message{Kind: h.kind, Payload: getBuffer(h.total)}, 0, true
	case !b.joining || h.size > len(b.message.Payload)-b.filled:
		return nil, protocolError("more of a message than it announced")
	}
	return b.message.Payload[b.filled : b.filled+h.size], nil
}

// advance counts a frame whose body is in place.
func (b *inbox) advance(h header) {
	b.next++
	if b.filled += h.size; b.filled < len(b.message.Payload) {
		return
	}
	if b.drop {
		b.message.Free()
	} else {
		b.ready = append(b.ready, b.message)
		b.sum += cost(b.message)
	}
	b.message, b.joining = Message{}, false
}

// bye notes how many frames the other side has sent in all, over how many stripes.
// missing says that some have yet to come, on a stripe that is not added yet.
func (b *inbox) bye(h header) (missing bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.number < b.next || b.said && (h.number != b.final || h.total != b.stripes) {
		return false, protocolError("an end after %d frames, %d have come", h.number, b.next)
	}
	b.final, b.stripes, b.said = h.number, h.total, true
	b.byes++
	b.moved.Broadcast()
	switch {
	case b.next == b.final && b.joining:
		return false, protocolError("an end in the middle of a message")
	case b.byes > b.stripes, b.byes == b.stripes && b.reached < b.final:
		return false, protocolError("%d ends of %d stripes, and %d frames of %d", b.byes, b.stripes, b.reached, b.final)
	}
	return b.byes < b.stripes, nil
}

// over tells whether all has come.
func (b *inbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said && b.reached == b.final
}

// discard throws away what has come and will come.
func (b *inbox) discard() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop, b.ready, b.first, b.sum = true, nil, 0, 0
	err := b.catchUp()
	b.moved.Broadcast()
	return err
}

// end makes recv return err after what is ready; it needs mu.
func (b *inbox) end(err error) {
	if b.err == nil {
		b.err = err
	}
	b.moved.Broadcast()
}

func (b *inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(err)
}

// cut makes one error of the ways in which a channel ends too early.
func cut(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF || err == io.ErrClosedPipe {
		return ErrCut
	}
	return &cutError{err}
}

type cutError struct{ err error }

func (e *cutError) Error() string   { return ErrCut.Error() + ": " + e.err.Error() }
func (e *cutError) Unwrap() []error { return []error{ErrCut, e.err} }
