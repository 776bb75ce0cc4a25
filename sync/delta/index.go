package delta

import (
	"errors"
	"fmt"
)

// MaxChunks is how many chunks an Index holds, over all its bases: about 24 bytes
// each, 96 MiB in all.
const MaxChunks = 4 << 20

// ErrFull is what Add wraps when an Index holds MaxChunks.
var ErrFull = errors.New("delta: too many chunks")

// Index finds chunks of one or several bases. Its signatures come from the other
// end: it takes them as they are, whatever they claim. Fill it first, then use it
// by as many goroutines as you like.
type Index struct {
	// entries in segments, so that growing copies nothing.
	segments [][]entry
	n        int
	ends     []int64  // by basis: its length so far
	table    []uint32 // open addressing: entry number + 1, 0 is free
	shift    uint
}

// entry is one chunk of a basis.
type entry struct {
	key uint64 // Sum, and the basis in the bits above SumBits
	off int64
}

const (
	segmentLog = 12
	segmentLen = 1 << segmentLog
	// MaxBases is how many bases an Index tells apart.
	MaxBases = 1 << (64 - SumBits)
	// maxProbe bounds a search: an instance that names chunks which all fall in one
	// place costs us matches, not time.
	maxProbe = 32
)

// NewIndex makes an empty Index. An empty or nil Index matches nothing.
func NewIndex() *Index { return new(Index) }

// Add appends the next chunks of a basis. Bases are numbered from 0 and filled one
// after the other; one without chunks may be left out.
func (ix *Index) Add(basis int, chunks []Chunk) error {
	switch {
	case basis >= MaxBases:
		return fmt.Errorf("%w: basis %d, the limit is %d", ErrFull, basis, MaxBases)
	case basis < len(ix.ends)-1 || basis < 0:
		return fmt.Errorf("delta: basis %d added after %d bases: they are filled in order", basis, len(ix.ends))
	case ix.n+len(chunks) > MaxChunks:
		return fmt.Errorf("%w: more than %d in %d bases", ErrFull, MaxChunks, basis+1)
	}
	for len(ix.ends) <= basis {
		// The entry between two bases has no chunk: it ends the last one of the basis before.
		if last := len(ix.ends) - 1; last >= 0 {
			ix.push(entry{key: uint64(last) << SumBits, off: ix.ends[last]})
		}
		ix.ends = append(ix.ends, 0)
	}
	for _, c := range chunks {
		if c.Len == 0 || c.Len > MaxChunk {
			return fmt.Errorf("delta: a chunk of %d bytes in basis %d", c.Len, basis)
		}
		if (ix.n+1)*8 > len(ix.table)*5 {
			ix.enlarge()
		}
		ix.push(entry{key: uint64(basis)<<SumBits | c.Sum&(1<<SumBits-1), off: ix.ends[basis]})
		ix.ends[basis] += int64(c.Len)
		ix.insert(ix.n - 1)
	}
	return nil
}

func (ix *Index) push(e entry) {
	if ix.n&(segmentLen-1) == 0 {
		ix.segments = append(ix.segments, make([]entry, 0, segmentLen))
	}
	s := &ix.segments[len(ix.segments)-1]
	*s = append(*s, e)
	ix.n++
}

func (ix *Index) at(i int) entry { return ix.segments[i>>segmentLog][i&(segmentLen-1)] }

func (e entry) sum() uint64 { return e.key & (1<<SumBits - 1) }
func (e entry) basis() int  { return int(e.key >> SumBits) }

// length of the chunk at i: up to the next entry, or the end of its basis. It is
// 0 or less for the entry between two bases.
func (ix *Index) length(i int) int64 {
	e := ix.at(i)
	if i+1 < ix.n {
		return ix.at(i+1).off - e.off
	}
	return ix.ends[e.basis()] - e.off
}

func (ix *Index) slot(sum uint64) uint64 { return sum * 0x9e3779b97f4a7c15 >> ix.shift }

// insert puts entry i into the table unless one of the same sum is there: the
// first of equal chunks is the one that is found.
func (ix *Index) insert(i int) {
	sum := ix.at(i).sum()
	mask := uint64(len(ix.table) - 1)
	for k, tries := ix.slot(sum), 0; tries < maxProbe; k, tries = (k+1)&mask, tries+1 {
		t := ix.table[k]
		if t == 0 {
			ix.table[k] = uint32(i + 1)
			return
		}
		if ix.at(int(t-1)).sum() == sum {
			return
		}
	}
}

// enlarge doubles the table.
func (ix *Index) enlarge() {
	size := max(1024, 2*len(ix.table))
	ix.table = make([]uint32, size)
	ix.shift = 64
	for s := size; s > 1; s >>= 1 {
		ix.shift--
	}
	for i := range ix.n {
		if ix.length(i) > 0 { // not between two bases
			ix.insert(i)
		}
	}
}

// find returns the entry of a chunk, preferring want, the one that follows the
// last match.
func (ix *Index) find(sum uint64, length int64, want int) (int, bool) {
	if ix == nil || len(ix.table) == 0 {
		return 0, false
	}
	if want > 0 && want < ix.n && ix.at(want).sum() == sum && ix.length(want) == length {
		return want, true
	}
	mask := uint64(len(ix.table) - 1)
	for k, tries := ix.slot(sum), 0; tries < maxProbe; k, tries = (k+1)&mask, tries+1 {
		t := ix.table[k]
		if t == 0 {
			return 0, false
		}
		if i := int(t - 1); ix.at(i).sum() == sum {
			return i, ix.length(i) == length
		}
	}
	return 0, false
}
