package far

import (
	"encoding/binary"

	"rentop/sync/codec"
)

// This file is how a file is described that is made from others: steps, each a
// run of one basis or of the literal bytes that follow them in the same block.

// step is a copy where basis is not 0, else a literal run.
type step struct {
	basis    int
	off, len int64
}

// steps gathers a block: the steps and their literals.
type steps struct {
	head     []byte
	literals []byte
	copied   int64
	ends     [maxBasis + 2]int64 // where the last run of each basis ended
	n        int
}

func (s *steps) copy(basis int, off, n int64) {
	s.head = binary.AppendUvarint(s.head, uint64(basis))
	s.head = binary.AppendVarint(s.head, off-s.ends[basis])
	s.head = binary.AppendUvarint(s.head, uint64(n))
	s.ends[basis] = off + n
	s.copied += n
	s.n++
}

func (s *steps) literal(b []byte) {
	s.head = binary.AppendUvarint(s.head, 0)
	s.head = binary.AppendUvarint(s.head, uint64(len(b)))
	s.literals = append(s.literals, b...)
	s.n++
}

// block is what is gathered, as one block; the next begins.
func (s *steps) block() []byte {
	b := getBuffer(len(s.head) + len(s.literals) + 10)[:0]
	b = binary.AppendUvarint(b, uint64(len(s.head)))
	b = append(append(b, s.head...), s.literals...)
	*s = steps{head: s.head[:0], literals: s.literals[:0]}
	return b
}

// maxSteps bounds the steps of a block, so that it stays below codec.MaxBlock.
const (
	maxSteps    = 20_000
	maxLiterals = codec.MaxBlock - 1<<20
)

// eachStep calls do with every step of a block.
func eachStep(b []byte, do func(s step, literal []byte) error) error {
	d := decoder{b: b}
	head := decoder{b: d.bytes(d.length(uint64(len(b))))}
	var ends [maxBasis + 2]int64
	for d.err == nil && len(head.b) > 0 {
		s := step{basis: head.length(maxBasis + 1)}
		var literal []byte
		if s.basis == 0 {
			literal = d.bytes(head.length(codec.MaxBlock))
		} else {
			s.off = ends[s.basis] + head.varint()
			s.len = head.size()
			if s.off < 0 || s.off+s.len < s.off {
				head.fail("a step out of all bounds")
			}
			ends[s.basis] = s.off + s.len
		}
		if head.err != nil {
			return head.err
		}
		if d.err != nil {
			return d.err
		}
		if err := do(s, literal); err != nil {
			return err
		}
	}
	return d.end()
}
