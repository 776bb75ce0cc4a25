package codec

import (
	"encoding/binary"
	"math"
	"sync"
)

// This file looks at a few samples of a block and says how to pack it. It must
// cost next to nothing where nothing can be gained: a 64th of the block is
// read, at most 64 KiB.

// Kind is what a range of bytes holds.
type Kind uint8

const (
	Unknown Kind = iota // the block itself decides
	Bytes               // no floats of 2 or 4 bytes
	BF16
	FP16
	FP32
)

// Width is the length of one number in bytes, 0 where Kind is no float.
func (k Kind) Width() int {
	switch k {
	case BF16, FP16:
		return 2
	case FP32:
		return 4
	}
	return 0
}

func (k Kind) String() string {
	return [...]string{"unknown", "bytes", "bf16", "fp16", "fp32"}[min(int(k), int(FP32))]
}

// plan is how to pack a block.
type plan struct {
	method Method
	width  int // of a number, for Planes
	phase  int
}

const (
	sampleRun = 4 << 10
	maxSample = 64 << 10
	// packs is the share of the raw length below which packing is worth its time.
	packs = 0.97
	// noise is the share of eight bits above which every residue is noise, too.
	noise = 0.998
)

// inspect decides from samples.
func inspect(block []byte, h Hint) plan {
	p := look(block)
	all := entropy(p.sum(0, 1, 2, 3), p.n) / 8
	best := plan{method: Raw}
	if all > noise && p.matched < 0.01 {
		return best // no way of looking at it would find anything
	}
	cost := packs
	// What is not repeated costs zstd its order-0 entropy.
	if c := all * (1 - p.matched); c < cost {
		best, cost = plan{method: Zstd}, c
	}
	consider := func(c float64, width, phase int) {
		if c < cost*0.98 {
			best, cost = plan{method: Planes, width: width, phase: phase}, c
		}
	}
	// No repeats, but not all bytes are as frequent: fp8, int8, base64.
	if p.matched < 0.02 {
		consider(all, 1, 0)
	}
	if h.Kind == Bytes {
		return best
	}
	if w := h.Kind.Width(); w > 0 {
		share, _ := p.planes(w)
		consider(share, w, ((h.Phase%w)+w)%w)
		return best
	}
	for w := 2; w <= 4; w *= 2 {
		share, phase := p.planes(w)
		consider(share, w, phase)
	}
	return best
}

// looked is what the samples show.
type looked struct {
	// count of byte values at offsets 0..3 modulo 4, from the block's first byte.
	count   [4][256]uint32
	matched float64 // share of the sample that repeats something shortly before
	n       float64
}

func look(block []byte) *looked {
	var p looked
	size := min(max(len(block)/64, sampleRun), maxSample, len(block))
	runs := max(1, size/sampleRun)
	run := min(sampleRun, len(block))
	var matched, tried int
	for i := range runs {
		// The middle of each part: a file's header is no sample of it.
		at := max(0, (2*i+1)*(len(block)/(2*runs))-run/2) &^ 3
		s := block[at : at+run]
		p.histogram(s)
		if i&1 == 0 {
			m, t := matches(s)
			matched, tried = matched+m, tried+t
		}
	}
	p.n = float64(runs * (run &^ 3))
	if tried > 0 {
		p.matched = float64(matched) / float64(tried)
	}
	return &p
}

func (p *looked) histogram(s []byte) {
	for len(s) >= 4 {
		p.count[0][s[0]]++
		p.count[1][s[1]]++
		p.count[2][s[2]]++
		p.count[3][s[3]]++
		s = s[4:]
	}
}

// matches counts the bytes that a greedy search for repeats of at least five
// bytes within s would save, and how many it looked at. The longer it finds nothing, the
// larger its steps.
func matches(s []byte) (matched, tried int) {
	var table [1024]uint16
	for i, last := 0, 0; i+8 <= len(s); {
		v := binary.LittleEndian.Uint64(s[i:]) << 24
		slot := &table[v*0x9e3779b97f4a7c15>>54]
		at := int(*slot)
		*slot = uint16(i)
		if at < i && binary.LittleEndian.Uint64(s[at:])<<24 == v {
			n := 5
			for i+n < len(s) && s[at+n] == s[i+n] {
				n++
			}
			matched += n - 2
			i += n
			last = i
			continue
		}
		i += 1 + (i-last)>>6
	}
	return matched, len(s)
}

// planes guesses the share of the raw length that planes of numbers of width
// bytes leave, and which byte of a number the block's first byte is. Packing moves
// the sign beside the mantissa, which the samples do not show: the share is
// guessed from above.
func (p *looked) planes(width int) (share float64, phase int) {
	if width == 2 {
		even, odd := entropy(p.sum(0, 2), p.n/2), entropy(p.sum(1, 3), p.n/2)
		if even < odd {
			phase = 1
		}
		return (even + odd) / 16, phase
	}
	// The exponent's byte is the one with the least in it, not counting bytes that
	// hold next to nothing: fp32 that was bf16 before has two of those.
	top, low := 3, 9.0
	for i := range 4 {
		e := entropy(&p.count[i], p.n/4)
		share += e / 32
		if e > 0.5 && e < low {
			top, low = i, e
		}
	}
	return share, 3 - top
}

// sum adds the counts of some residues.
func (p *looked) sum(residues ...int) *[256]uint32 {
	var all [256]uint32
	for _, r := range residues {
		for i, c := range &p.count[r] {
			all[i] += c
		}
	}
	return &all
}

// entropy is in bits a symbol, corrected for the bias of a small sample.
func entropy(count *[256]uint32, n float64) float64 {
	if n <= 0 {
		return 8
	}
	logs := countLogs()
	var sum float64
	used := 0
	for _, c := range count {
		if c < uint32(len(logs)) {
			sum += logs[c]
		} else {
			sum += float64(c) * math.Log2(float64(c))
		}
		used += int((c | -c) >> 31) // 1 unless c is 0
	}
	h := math.Log2(n) - sum/n + float64(used-1)/(2*n*math.Ln2)
	return min(max(h, 0), 8)
}

// countLogs is c·log2(c) by c.
var countLogs = sync.OnceValue(func() *[1024]float64 {
	t := new([1024]float64)
	for c := 1; c < len(t); c++ {
		t[c] = float64(c) * math.Log2(float64(c))
	}
	return t
})
