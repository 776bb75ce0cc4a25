package codec

import (
	"errors"
	"math/bits"
)

// The last column of a transformed block is runs of one byte. Each run is coded as its
// length and its rank: how many other bytes come before the same one comes again
// (quantised local frequency coding, from libbsc by Grebnov). So the byte is known before both,
// from a list that the ranks keep in order:
//
//	1 byte     how many different bytes there are, less one
//	           those bytes, in the order in which they first come
//	           the runs, coded bit by bit

// columnScratch is what coding a column needs.
type columnScratch struct {
	coder
	run, rank numbers
	past      past
	ranks     []uint8
}

func (s *columnScratch) reset() {
	s.run.reset()
	s.rank.reset()
	s.past = past{}
}

// encode appends the coded column.
func (s *columnScratch) encode(dst, column []byte) []byte {
	// From the end on, the rank of a run is how far down the list its byte is.
	var list [256]byte
	alive := 0
	s.ranks = s.ranks[:0]
	for i := len(column) - 1; i >= 0; {
		c := column[i]
		for i >= 0 && column[i] == c {
			i--
		}
		r := 0
		for r < alive && list[r] != c {
			r++
		}
		if r == alive {
			alive++
		}
		copy(list[1:r+1], list[:r])
		list[0] = c
		s.ranks = append(s.ranks, uint8(r))
	}
	dst = append(dst, byte(alive-1))
	s.reset()
	s.write(append(dst, list[:alive]...))
	for k := len(s.ranks) - 1; k >= 0; k-- {
		c, n := column[0], 1
		for n < len(column) && column[n] == c {
			n++
		}
		column = column[n:]
		s.putNumber(&s.run, s.past.ofRun(c), uint32(n))
		if k > 0 { // nothing follows the last
			rank := uint32(s.ranks[k])
			s.putNumber(&s.rank, s.past.ofRank(c, uint32(n)), rank)
			s.past.note(c, uint32(n), rank)
		}
	}
	return s.flush()
}

var errColumn = errors.New("runs do not add up")

// decode fills column from what encode appended.
func (s *columnScratch) decode(column, in []byte) error {
	if len(column) == 0 || len(in) < 1 || len(in) < 2+int(in[0]) {
		return errColumn
	}
	var list [256]byte
	alive := 1 + int(in[0])
	copy(list[:], in[1:1+alive])
	s.reset()
	s.read(in[1+alive:])
	for {
		c := list[0]
		n := s.getNumber(&s.run, s.past.ofRun(c))
		if uint64(n) > uint64(len(column)) {
			return errColumn
		}
		for i := range column[:n] {
			column[i] = c
		}
		if column = column[n:]; len(column) == 0 {
			break
		}
		rank := s.getNumber(&s.rank, s.past.ofRank(c, n))
		// Nothing is read three bytes behind the one that flush wrote.
		if int(rank) >= alive || s.beyond > 3 {
			return errColumn
		}
		copy(list[:rank], list[1:rank+1])
		list[rank] = c
		s.past.note(c, n, rank)
	}
	if len(s.buf) > 0 || s.beyond > 3 {
		return errColumn
	}
	return nil
}

// past is what both ends know of the runs before.
type past struct {
	ranks, runs uint32     // classes of the last ones, two bits each
	own         [256]uint8 // by byte: the lengths, in bits, of its last run and rank
}

// class is 0 to 3: for 1, for 2, for 3 and 4, for more.
func class(v uint32) uint32 {
	if v <= 2 {
		return v - 1
	}
	if v <= 4 {
		return 2
	}
	return 3
}

func (p *past) ofRun(c byte) context {
	return context{uint32(c), p.ranks&15<<4 | p.runs&15, uint32(p.own[c])<<4 | p.runs&3<<2 | p.ranks&3}
}

func (p *past) ofRank(c byte, run uint32) context {
	k := class(run)
	return context{uint32(c), p.ranks&63<<2 | k, uint32(p.own[c])<<4 | k<<2 | p.ranks&3}
}

func (p *past) note(c byte, run, rank uint32) {
	p.own[c] = uint8(min(bits.Len32(run), 7) | min(bits.Len32(rank), 7)<<3)
	p.runs = p.runs<<2 | class(run)
	p.ranks = p.ranks<<2 | class(rank)
}
