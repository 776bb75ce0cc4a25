package codec

import "math/bits"

// This file codes numbers from 1 up: how many bits they have below the highest, one
// decision after another, then those bits.

const (
	exponents = 24 // a number is below 2^24
	// decisions of a number that are guessed: the exponents, all bits of numbers below
	// 16 and the two highest of longer ones. The other bits are as likely as not.
	decisions = 64
)

// bitSlot numbers the decision about the next bit of a number with exponent e, of which the
// bits in known, after a leading one, are known; -1 is for a bit without a guess.
func bitSlot(e int, known uint32) int {
	switch {
	case e <= 3:
		return exponents + 1<<(e-1) - 1 + int(known) - 1 // 1, 3 and 7 slots
	case known < 4:
		return exponents + 11 + 3*min(e-4, 8) + int(known) - 1
	}
	return -1
}

// numbers is the guesses about one kind of number, in three kinds of context.
type numbers struct {
	byByte [256][decisions]guess
	byPast [256][decisions]guess
	byOwn  [1024][decisions]guess
	mix    [decisions]mixer
}

// context is where the guesses about a number are found.
type context struct{ byByte, byPast, byOwn uint32 }

func (n *numbers) reset() {
	for _, of := range [][][decisions]guess{n.byByte[:], n.byPast[:], n.byOwn[:]} {
		for i := range of {
			for k := range of[i] {
				of[i][k] = evens
			}
		}
	}
	for i := range n.mix {
		n.mix[i] = newMixer
	}
}

// putNumber writes v, from 1 up.
func (c *coder) putNumber(n *numbers, at context, v uint32) {
	x, y, z := &n.byByte[at.byByte&255], &n.byPast[at.byPast&255], &n.byOwn[at.byOwn&1023]
	e := bits.Len32(v) - 1
	for i := range e {
		c.put(0, &n.mix[i], &x[i], &y[i], &z[i])
	}
	if e < exponents-1 { // the highest needs no end
		c.put(1, &n.mix[e], &x[e], &y[e], &z[e])
	}
	known := uint32(1)
	for k := e - 1; k >= 0; k-- {
		bit := v >> k & 1
		if s := bitSlot(e, known); s >= 0 {
			c.put(bit, &n.mix[s], &x[s], &y[s], &z[s])
		} else {
			c.putEven(bit)
		}
		known = known<<1 | bit
	}
}

// getNumber reads a number.
func (c *coder) getNumber(n *numbers, at context) uint32 {
	x, y, z := &n.byByte[at.byByte&255], &n.byPast[at.byPast&255], &n.byOwn[at.byOwn&1023]
	e := 0
	for e < exponents-1 && c.get(&n.mix[e], &x[e], &y[e], &z[e]) == 0 {
		e++
	}
	v := uint32(1)
	for range e {
		if s := bitSlot(e, v); s >= 0 {
			v = v<<1 | c.get(&n.mix[s], &x[s], &y[s], &z[s])
		} else {
			v = v<<1 | c.getEven()
		}
	}
	return v
}
