package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A batch of a signature on the wire: how many chunks, their lengths, their sums.
//
//	uvarint   n, at most MaxBatch
//	n times   uvarint length
//	n times   6 bytes sum, little-endian

// MaxBatch is how many chunks one encoded batch may hold.
const MaxBatch = 1 << 16

// ErrSignature is what Decode wraps: the bytes are no batch of a signature.
var ErrSignature = errors.New("delta: signature is damaged")

// Append appends the batch of chunks, at most MaxBatch, encoded, to dst.
func Append(dst []byte, chunks []Chunk) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(chunks)))
	for _, c := range chunks {
		dst = binary.AppendUvarint(dst, uint64(c.Len))
	}
	for _, c := range chunks {
		dst = append(dst, byte(c.Sum), byte(c.Sum>>8), byte(c.Sum>>16), byte(c.Sum>>24), byte(c.Sum>>32), byte(c.Sum>>40))
	}
	return dst
}

const sumBytes = SumBits / 8

// Decode appends the chunks of one batch to dst. It takes hostile input: what it
// allocates is bounded by the length of in.
func Decode(dst []Chunk, in []byte) ([]Chunk, error) {
	n, k := binary.Uvarint(in)
	if k <= 0 || n > MaxBatch || n*(sumBytes+1) > uint64(len(in)-k) {
		return dst, fmt.Errorf("%w: %d bytes hold no batch of %d chunks", ErrSignature, len(in), n)
	}
	lengths := in[k:]
	start := len(dst)
	for range n {
		length, k := binary.Uvarint(lengths)
		if k <= 0 || length == 0 || length > MaxChunk {
			return dst[:start], fmt.Errorf("%w: a chunk of %d bytes, the limit is %d", ErrSignature, length, MaxChunk)
		}
		dst = append(dst, Chunk{Len: uint32(length)})
		lengths = lengths[k:]
	}
	sums := lengths
	if uint64(len(sums)) != n*sumBytes {
		return dst[:start], fmt.Errorf("%w: %d bytes of sums for %d chunks", ErrSignature, len(sums), n)
	}
	for i := range dst[start:] {
		s := sums[i*sumBytes:]
		dst[start+i].Sum = uint64(binary.LittleEndian.Uint32(s)) | uint64(binary.LittleEndian.Uint16(s[4:]))<<32
	}
	return dst, nil
}
