package codec

import (
	"errors"

	"rentop/sync/codec/internal/sais"
)

// The Burrows-Wheeler transform of a block, for slow links: bytes sorted by what
// follows them, so that equal ones lie together. The text is thought to end with a
// sign smaller than every byte, which is not stored.
//
// A transformed block is
//
//	chains × 3 bytes   rows, little-endian, where the text's equal parts begin
//	n bytes            the last column

// sorter holds what packing and unpacking a block needs. It grows to the longest block.
type sorter struct {
	table  []int32 // order of the suffixes when packing, of rows when unpacking
	column []byte  // with its head
	code   columnScratch
}

func (s *sorter) encode(dst, block []byte) []byte {
	s.table = room(s.table, len(block)+1)
	s.column = room(s.column, bwtHead+len(block))
	forward(s.column, block, s.table[:len(block)])
	return s.code.encode(append(dst, s.column[:bwtHead]...), s.column[bwtHead:])
}

func (s *sorter) decode(block, in []byte) error {
	if len(in) < bwtHead || len(block) == 0 {
		return errRows
	}
	s.column = room(s.column, bwtHead+len(block))
	copy(s.column, in[:bwtHead])
	if err := s.code.decode(s.column[bwtHead:], in[bwtHead:]); err != nil {
		return err
	}
	s.table = room(s.table, len(block)+1)
	return inverse(block, s.column, s.table)
}

// room returns a slice of n elements, b itself where it is long enough.
func room[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n)
	}
	return b[:n]
}

const (
	// chains parts of the text are walked at once on the way back: each step waits for
	// memory, so they wait together.
	chains  = 8
	bwtHead = 3 * chains
)

// part is the length of each part of the text but the last.
func part(n int) int { return max(1, (n+chains-1)/chains) }

// forward fills out, of len(text)+bwtHead bytes, using sa, of len(text).
func forward(out, text []byte, sa []int32) {
	n := len(text)
	sais.Sort(text, sa)
	step := int32(part(n))
	head, last := out[:bwtHead], out[bwtHead:bwtHead+n]
	clear(head)
	last[0] = text[n-1]
	k := 1
	for i, at := range sa {
		if at == 0 {
			put24(head, i+1)
			continue
		}
		last[k] = text[at-1]
		k++
		if at%step == 0 {
			put24(head[3*(at/step):], i+1)
		}
	}
}

func put24(b []byte, v int) { b[0], b[1], b[2] = byte(v), byte(v>>8), byte(v>>16) }
func get24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

var errRows = errors.New("a row beyond the block")

// inverse fills text from what forward made, using table, of len(text)+1. Whatever in
// holds, it stays within bounds and takes the same time.
func inverse(text, in []byte, table []int32) error {
	n := len(text)
	head, last := in[:bwtHead], in[bwtHead:bwtHead+n]
	var rows [chains]uint32
	for c := range rows {
		if rows[c] = get24(head[3*c:]); rows[c] > uint32(n) {
			return errRows
		}
	}
	var next [256]uint32
	for _, c := range last {
		next[c]++
	}
	at := uint32(1)
	for c, m := range next {
		next[c] = at
		at += m
	}
	// table[row] is the row of the suffix one shorter, and the byte between them.
	table = table[:n+1]
	table[0] = 0
	end := int(rows[0]) // the row whose last column is the sign
	for i, c := range last[:min(end, n)] {
		table[next[c]] = int32(i<<8 | int(c))
		next[c]++
	}
	for i, c := range last[min(end, n):] {
		table[next[c]] = int32((end+i+1)<<8 | int(c))
		next[c]++
	}
	step := part(n)
	short := n - (chains-1)*step // length of the last part
	i := 0
	if short > 0 {
		o0, o1, o2, o3 := text[:step], text[step:2*step], text[2*step:3*step], text[3*step:4*step]
		o4, o5, o6, o7 := text[4*step:5*step], text[5*step:6*step], text[6*step:7*step], text[7*step:]
		r0, r1, r2, r3, r4, r5, r6, r7 := rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
		for ; i < short; i++ {
			r0, r1, r2, r3 = uint32(table[r0]), uint32(table[r1]), uint32(table[r2]), uint32(table[r3])
			r4, r5, r6, r7 = uint32(table[r4]), uint32(table[r5]), uint32(table[r6]), uint32(table[r7])
			o0[i], o1[i], o2[i], o3[i] = byte(r0), byte(r1), byte(r2), byte(r3)
			o4[i], o5[i], o6[i], o7[i] = byte(r4), byte(r5), byte(r6), byte(r7)
			r0, r1, r2, r3 = r0>>8, r1>>8, r2>>8, r3>>8
			r4, r5, r6, r7 = r4>>8, r5>>8, r6>>8, r7>>8
		}
		rows = [chains]uint32{r0, r1, r2, r3, r4, r5, r6, r7}
	}
	for c := range chains {
		r := rows[c]
		for k := c*step + i; k < min((c+1)*step, n); k++ {
			r = uint32(table[r])
			text[k] = byte(r)
			r >>= 8
		}
	}
	return nil
}
