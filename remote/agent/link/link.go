// Package link carries messages between rentop and its helper on an instance:
// ordered, length-checked, over one channel or striped over several. It knows
// nothing of what the messages say, and depends only on the standard library.
package link

import "errors"

// MaxPayload bounds one message; a longer one from the other side is an error.
const MaxPayload = 9 << 20

// Message is one message. Kind is the service's own.
type Message struct {
	Kind    byte
	Payload []byte
}

// Free gives the payload's memory to later messages. Whoever calls it keeps no
// part of the payload; nobody has to call it.
func (m *Message) Free() {
	putBuffer(m.Payload)
	m.Payload = nil
}

// Link is a stream of messages in both directions, in order. An error is final:
// every later call returns it too.
type Link interface {
	// Send queues one message whose payload is the concatenation of parts, and
	// waits while too much is queued. The parts may be used again when it
	// returns. It is safe for concurrent use.
	Send(kind byte, parts ...[]byte) error
	// Recv returns the next message; its payload belongs to the caller. One
	// goroutine at a time may call it. io.EOF is the other side's orderly end.
	Recv() (Message, error)
	// Close flushes what is queued, tells the other side and ends the link.
	Close() error
}

var (
	// ErrCut is the error of a link whose channel ended before the other side
	// said that it was done.
	ErrCut = errors.New("the link was cut")
	// ErrClosed is the error of a link that was closed here.
	ErrClosed = errors.New("the link was closed")
)
