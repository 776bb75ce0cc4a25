package link

// What travels on a stripe: frames, each a fixed header and its bytes.

import (
	"encoding/binary"
	"fmt"
)

const (
	headerSize = 16
	// chunkSize is what a stripe writes at once and how long a frame may be with
	// its header: a message is cut into frames so that stripes share it.
	chunkSize = 64 << 10
	maxBody   = chunkSize - headerSize
	maxSeq    = 1<<48 - 1
)

// The types of frames. Messages' frames are numbered across all stripes.
const (
	frameFirst = 1 + iota // a message's first; total is the payload's length
	frameMore             // a message's next
	framePing             // number is the ping's
	framePong             // the answer, or with number 0 a report unasked; the body says what arrived and when
	frameBye              // the stripe's last; number is how many frames, total how many stripes there were
)

const (
	pongSize   = 16
	maxStripes = 64
)

// header is a frame's beginning: type, kind, number (6 bytes), the body's length
// and the message's (4 each), big endian.
type header struct {
	typ    byte
	kind   byte
	number uint64
	size   int
	total  int
}

func (h header) put(b []byte) {
	binary.BigEndian.PutUint64(b, uint64(h.typ)<<56|uint64(h.kind)<<48|h.number)
	binary.BigEndian.PutUint32(b[8:], uint32(h.size))
	binary.BigEndian.PutUint32(b[12:], uint32(h.total))
}

// parseHeader reads the first headerSize bytes of b and checks all that can be
// checked without knowing what came before.
func parseHeader(b []byte) (header, error) {
	x := binary.BigEndian.Uint64(b)
	size, total := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	h := header{typ: byte(x >> 56), kind: byte(x >> 48), number: x & maxSeq}
	switch h.typ {
	case frameFirst:
		if total > MaxPayload {
			return header{}, protocolError("a message of %d bytes; at most %d are allowed", total, MaxPayload)
		}
		if size > maxBody || size > total || size == 0 && total > 0 {
			return header{}, protocolError("a first frame of %d bytes in a message of %d", size, total)
		}
	case frameMore:
		if size > maxBody || size == 0 || total != 0 || h.kind != 0 {
			return header{}, protocolError("a following frame of %d bytes, kind %d, total %d", size, h.kind, total)
		}
	case framePing, frameBye:
		if size != 0 || (total != 0) != (h.typ == frameBye) || total > maxStripes || h.kind != 0 {
			return header{}, protocolError("a frame of type %d with a body of %d bytes, total %d", h.typ, size, total)
		}
	case framePong:
		if size != pongSize || total != 0 || h.kind != 0 {
			return header{}, protocolError("an answer to a ping of %d bytes", size)
		}
	default:
		return header{}, protocolError("a frame of the unknown type %d", h.typ)
	}
	h.size, h.total = int(size), int(total)
	return h, nil
}

// ProtocolError says which rule of the link the other side broke.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string {
	return "the other side of the link broke its rules: it sent " + e.What
}

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}
