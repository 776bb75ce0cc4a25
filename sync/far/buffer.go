package far

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// This file is memory that goes round: blocks would otherwise be garbage at the
// rate of the transfer.

// buffers holds slices by the power of two of their capacity.
var buffers [26]sync.Pool

// getBuffer returns n bytes of any content.
func getBuffer(n int) []byte {
	class := bits.Len(uint(max(n, 1<<12) - 1))
	if class >= len(buffers) {
		return make([]byte, n)
	}
	if b, ok := buffers[class].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, 1<<class)
}

// putBuffer gives a buffer of getBuffer back, or one that codec has grown.
func putBuffer(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class >= 12 && class < len(buffers) {
		b = b[:0]
		buffers[class].Put(&b)
	}
}

// growBuffer makes room for n bytes after b.
func growBuffer(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	next := getBuffer(len(b) + n)[:len(b)]
	copy(next, b)
	putBuffer(b)
	return next
}

// shared calls free once the function it returns was called n times.
func shared(n int32, free func()) func() {
	var left atomic.Int32
	left.Store(n)
	return func() {
		if left.Add(-1) == 0 {
			free()
		}
	}
}
