package far

import (
	"crypto/sha256"
	"hash"
)

// This file computes SHA-256 beside what else is done with the bytes: it is what
// takes longest of moving a file that does not compress.

// hasher takes pieces in order; it has a goroutine of its own until sum.
type hasher struct {
	pieces chan hashed
	done   chan struct{}
	h      hash.Hash
	ended  bool
}

// hashed is one piece; free is called once it was taken in.
type hashed struct {
	b    []byte
	free func()
}

func newHasher() *hasher {
	h := &hasher{pieces: make(chan hashed, 4), done: make(chan struct{}), h: sha256.New()}
	go func() {
		defer close(h.done)
		for p := range h.pieces {
			h.h.Write(p.b)
			if p.free != nil {
				p.free()
			}
		}
	}()
	return h
}

// add takes b, which stays as it is until free is called.
func (h *hasher) add(b []byte, free func()) { h.pieces <- hashed{b, free} }

// sum ends the hasher; nothing may be added afterwards.
func (h *hasher) sum() (out [sha256.Size]byte) {
	if !h.ended {
		h.ended = true
		close(h.pieces)
	}
	<-h.done
	h.h.Sum(out[:0])
	return out
}
