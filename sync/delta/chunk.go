package delta

import (
	"context"
	"io"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Chunk is one run of content: how long it is and what it hashes to. Sum has
// SumBits bits. It is a hint, never a proof.
type Chunk struct {
	Sum uint64
	Len uint32
}

// SumBits is how much of xxh3 a signature carries. With the length, which must
// be equal too, a pair of different chunks looks the same once in 2^58.
const SumBits = 48

// sum is what a chunk of content hashes to.
func sum(b []byte) uint64 { return xxh3.Hash(b) & (1<<SumBits - 1) }

// gear gives each byte value a random number (splitmix64 from 0). It is part of
// the protocol: both ends must cut alike.
var gear = func() (t [256]uint64) {
	x := uint64(0)
	for i := range t {
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		t[i] = z ^ z>>31
	}
	return t
}()

// cut returns the length of the first chunk of b, which holds at least Max bytes
// or is the end of the content. A chunk ends where the hash of the last 64 bytes has its top bits
// clear: up to Avg as many as make one in Avg, above it one fewer, so that lengths gather
// around Avg (FastCDC, Xia et al. 2016). The first Min bytes hold no end: only the last 64
// of them are looked at.
func (p Params) cut(b []byte) int {
	if len(b) <= p.Min {
		return len(b)
	}
	n := min(len(b), p.Max)
	level := bits.TrailingZeros(uint(p.Avg))
	strict, loose := uint64(1)<<(64-level), uint64(1)<<(64-level+1)
	var h uint64
	i := p.Min - min(64, p.Min)
	for ; i < p.Min; i++ {
		h = h<<1 + gear[b[i]]
	}
	if at := scan(b[:min(n, p.Avg)], i, &h, strict); at > 0 {
		return at
	}
	if at := scan(b[:n], max(i, min(n, p.Avg)), &h, loose); at > 0 {
		return at
	}
	return n
}

// scan moves h over b from i on and returns the length up to and with the byte
// that brings h below limit, 0 if none does. Two bytes are added at a step: a chain of
// single ones would wait for each in turn.
func scan(b []byte, i int, state *uint64, limit uint64) int {
	h := *state
	for ; i+4 <= len(b); i += 4 {
		q := b[i : i+4 : i+4]
		g0, g1 := gear[q[0]], gear[q[1]]
		if h<<1+g0 < limit {
			return i + 1
		}
		if h = h<<2 + (g0<<1 + g1); h < limit {
			return i + 2
		}
		g0, g1 = gear[q[2]], gear[q[3]]
		if h<<1+g0 < limit {
			return i + 3
		}
		if h = h<<2 + (g0<<1 + g1); h < limit {
			return i + 4
		}
	}
	for ; i < len(b); i++ {
		h = h<<1 + gear[b[i]]
		if h < limit {
			return i + 1
		}
	}
	*state = h
	return 0
}

// signBatch is how many chunks Sign hands on at once.
const signBatch = 1024

// Sign reads r to its end and emits its chunks in order, some at a time; emit
// must not keep the slice. size decides the chunks, see ParamsFor; r may be of any length.
func Sign(ctx context.Context, r io.Reader, size int64, emit func([]Chunk) error) error {
	batch := make([]Chunk, 0, signBatch)
	s := newStream(r, ParamsFor(size))
	for {
		b, err := s.next(ctx)
		if err != nil && err != io.EOF {
			return err
		}
		if len(batch) > 0 && (err == io.EOF || len(batch) == signBatch) {
			if err := emit(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if err == io.EOF {
			return nil
		}
		batch = append(batch, Chunk{Sum: sum(b), Len: uint32(len(b))})
		s.kept = s.at
	}
}
