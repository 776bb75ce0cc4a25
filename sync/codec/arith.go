package codec

import (
	"math"
	"sync"
)

// This file codes single bits by a probability that three adaptive guesses, each
// from another context, give together: logistic mixing and the arithmetic coder as in
// lpaq (Mahoney, "Data Compression Explained", chapter 4). The decoder repeats every
// step of the encoder, so this arithmetic is part of the format: integers alone.

// guess is a probability of a one, 22 bits, above a count of what it was taught by, 10
// bits. It learns quickly at first and ever slower down to a limit.
type guess uint32

const evens guess = 1 << 31

// Limits of the counts, by context. What follows from the byte drifts along the column and
// is forgotten soon. Found by trying, on JSON text and Go source.
const (
	limitByByte = 16
	limitByPast = 250
	limitByOwn  = 40
)

// mixer holds the weights of the guesses, 65536 is one.
type mixer [3]int32

var newMixer = mixer{24000, 24000, 24000}

const mixRate = 14

// squashed is 1/(1+e^-x) in 1/65536 for x from -8 to 8 in steps of a half. It is written
// out, since floating point may differ between the two ends by a last digit.
var squashed = [33]int32{
	32, 36, 60, 98, 162, 267, 439, 720, 1179, 1921, 3108,
	4971, 7812, 11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565,
	62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65504,
}

// tables are functions by look-up.
type tables struct {
	squash  [4096]int32 // probability in 1/65536, by 2048 + its logit in 1/256
	stretch [4096]int16 // logit in 1/256, by the probability in 1/4096
	slower  [256]int32  // 1/(n+1.6) in 1/65536
}

var codeTables = sync.OnceValue(func() *tables {
	t := new(tables)
	for i := range t.squash {
		k, w := i>>7, int32(i&127)
		t.squash[i] = (squashed[k]*(128-w) + squashed[k+1]*w + 64) >> 7
	}
	p := 0
	for i, v := range t.squash {
		for ; p <= int(v>>4); p++ {
			t.stretch[p] = int16(max(i-2048, -2047))
		}
	}
	for ; p < len(t.stretch); p++ {
		t.stretch[p] = 2047
	}
	for n := range t.slower {
		t.slower[n] = int32(655360 / (10*n + 16))
	}
	return t
})

// coder writes bits, or reads them.
type coder struct {
	*tables
	low, high uint32
	cursor    uint32 // when reading: the 32 bits from low's position on
	buf       []byte // written so far, or still to read
	beyond    int    // bytes read beyond the end, as zeros
}

func (c *coder) write(dst []byte) {
	*c = coder{tables: codeTables(), high: math.MaxUint32, buf: dst}
}

func (c *coder) read(in []byte) {
	*c = coder{tables: codeTables(), high: math.MaxUint32, buf: in}
	for range 4 {
		c.cursor = c.cursor<<8 | uint32(c.next())
	}
}

// flush ends what is written: one byte names a number between low and high, since
// their first bytes differ.
func (c *coder) flush() []byte {
	return append(c.buf, byte(c.low>>24)+1)
}

func (c *coder) next() byte {
	if len(c.buf) == 0 {
		c.beyond++
		return 0
	}
	v := c.buf[0]
	c.buf = c.buf[1:]
	return v
}

// put writes a bit.
func (c *coder) put(bit uint32, m *mixer, x, y, z *guess) {
	sx, sy, sz := c.stretched(*x), c.stretched(*y), c.stretched(*z)
	p := c.mix(m, sx, sy, sz)
	mid := c.low + uint32(uint64(c.high-c.low)*uint64(p)>>16)
	if bit != 0 {
		c.high = mid
	} else {
		c.low = mid + 1
	}
	m.learn(bit, p, sx, sy, sz)
	x.learn(c.tables, bit, limitByByte)
	y.learn(c.tables, bit, limitByPast)
	z.learn(c.tables, bit, limitByOwn)
	c.shiftOut()
}

// get reads a bit.
func (c *coder) get(m *mixer, x, y, z *guess) uint32 {
	sx, sy, sz := c.stretched(*x), c.stretched(*y), c.stretched(*z)
	p := c.mix(m, sx, sy, sz)
	mid := c.low + uint32(uint64(c.high-c.low)*uint64(p)>>16)
	var bit uint32
	if c.cursor <= mid {
		bit = 1
		c.high = mid
	} else {
		c.low = mid + 1
	}
	m.learn(bit, p, sx, sy, sz)
	x.learn(c.tables, bit, limitByByte)
	y.learn(c.tables, bit, limitByPast)
	z.learn(c.tables, bit, limitByOwn)
	c.shiftIn()
	return bit
}

// putEven writes a bit that is as likely as not.
func (c *coder) putEven(bit uint32) {
	mid := c.low + (c.high-c.low)>>1
	if bit != 0 {
		c.high = mid
	} else {
		c.low = mid + 1
	}
	c.shiftOut()
}

func (c *coder) getEven() uint32 {
	mid := c.low + (c.high-c.low)>>1
	var bit uint32
	if c.cursor <= mid {
		bit = 1
		c.high = mid
	} else {
		c.low = mid + 1
	}
	c.shiftIn()
	return bit
}

func (c *coder) shiftOut() {
	for (c.low^c.high)>>24 == 0 {
		c.buf = append(c.buf, byte(c.high>>24))
		c.low <<= 8
		c.high = c.high<<8 | 255
	}
}

func (c *coder) shiftIn() {
	for (c.low^c.high)>>24 == 0 {
		c.low <<= 8
		c.high = c.high<<8 | 255
		c.cursor = c.cursor<<8 | uint32(c.next())
	}
}

func (c *coder) stretched(g guess) int32 { return int32(c.stretch[g>>20]) }

func (c *coder) mix(m *mixer, sx, sy, sz int32) int32 {
	s := (m[0]*sx + m[1]*sy + m[2]*sz) >> 16
	return c.squash[min(max(s, -2047), 2047)+2048]
}

func (m *mixer) learn(bit uint32, p, sx, sy, sz int32) {
	err := (int32(bit<<16) - p) * mixRate >> 10
	m[0] = held(m[0] + (sx*err+1<<9)>>10)
	m[1] = held(m[1] + (sy*err+1<<9)>>10)
	m[2] = held(m[2] + (sz*err+1<<9)>>10)
}

// held keeps a weight so small that a mix of three fits 32 bits.
func held(w int32) int32 { return min(max(w, -1<<18), 1<<18) }

func (g *guess) learn(t *tables, bit, limit uint32) {
	n := uint32(*g) & 255
	p := int32(*g >> 10)
	p += int32(int64(int32(bit<<22)-int32(bit)-p) * int64(t.slower[n]) >> 16)
	if n < limit {
		n++
	}
	*g = guess(uint32(p)<<10 | n)
}
