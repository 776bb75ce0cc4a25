package link

// Memory that goes round: a busy link would otherwise make garbage at its rate.

import (
	"math/bits"
	"sync"
)

// Payloads of less than smallest bytes are cheap to make; above, four classes an
// octave waste at most a quarter.
const (
	smallest = 16 << 10
	classes  = 4 * 11
)

var (
	payloads [classes]sync.Pool // of *[]byte, class by capacity
	chunks   = sync.Pool{New: func() any { return new([chunkSize]byte) }}
)

// class returns the class that n bytes fit in and how much it holds.
func class(n int) (class, size int) {
	octave := bits.Len(uint(max(n-1, smallest))) - 1 // 2^octave ≤ n-1 or smallest
	step := 1 << (octave - 2)
	quarter := (max(n, smallest+1) - 1<<octave + step - 1) / step // 1…4
	return (octave-bits.Len(smallest)+1)*4 + quarter - 1, 1<<octave + quarter*step
}

// getBuffer returns n bytes of any content.
func getBuffer(n int) []byte {
	if n < smallest {
		return make([]byte, n)
	}
	c, size := class(n)
	if b, ok := payloads[c].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, size)
}

func putBuffer(b []byte) {
	if cap(b) < smallest {
		return
	}
	if c, size := class(cap(b)); c < classes && size == cap(b) {
		payloads[c].Put(&b)
	}
}
