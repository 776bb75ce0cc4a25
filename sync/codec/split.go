package codec

import (
	"encoding/binary"
	"math/bits"
)

// This file turns numbers into planes and back, eight bytes at a step.

const (
	evenBytes  = 0x00ff00ff00ff00ff
	evenPairs  = 0x0000ffff0000ffff
	lowBits16  = 0x0001000100010001
	lowBits32  = 0x0000000100000001
	highBits16 = lowBits16 << 15
	highBits32 = lowBits32 << 31
)

// squeeze moves the bytes 0, 2, 4 and 6 of x together.
func squeeze(x uint64) uint64 {
	x &= evenBytes
	x = (x | x>>8) & evenPairs
	return (x | x>>16) & 0xffffffff
}

// stretch is the way back.
func stretch(x uint64) uint64 {
	x = (x | x<<16) & evenPairs
	return (x | x<<8) & evenBytes
}

// split fills the planes from whole numbers of width bytes.
func (s *planeScratch) split(b []byte, width int) {
	le := binary.LittleEndian
	switch width {
	case 1:
		copy(s.planes[0][:], b)
	case 2:
		hi, lo := s.planes[0][:len(b)/2], s.planes[1][:len(b)/2]
		for len(b) >= 16 && len(hi) >= 8 && len(lo) >= 8 {
			x, y := le.Uint64(b), le.Uint64(b[8:])
			x = x&^highBits16<<1 | x>>15&lowBits16
			y = y&^highBits16<<1 | y>>15&lowBits16
			le.PutUint64(hi, squeeze(x>>8)|squeeze(y>>8)<<32)
			le.PutUint64(lo, squeeze(x)|squeeze(y)<<32)
			b, hi, lo = b[16:], hi[8:], lo[8:]
		}
		for i := range hi {
			v := bits.RotateLeft16(le.Uint16(b[2*i:]), 1)
			hi[i], lo[i] = byte(v>>8), byte(v)
		}
	case 4:
		n := len(b) / 4
		p0, p1, p2, p3 := s.planes[0][:n], s.planes[1][:n], s.planes[2][:n], s.planes[3][:n]
		for len(b) >= 16 && len(p0) >= 4 && len(p1) >= 4 && len(p2) >= 4 && len(p3) >= 4 {
			x, y := le.Uint64(b), le.Uint64(b[8:])
			x = x&^highBits32<<1 | x>>31&lowBits32
			y = y&^highBits32<<1 | y>>31&lowBits32
			// even bytes: planes 3 and 1 in turn; odd bytes: planes 2 and 0
			even, odd := squeeze(x)|squeeze(y)<<32, squeeze(x>>8)|squeeze(y>>8)<<32
			le.PutUint32(p3, uint32(squeeze(even)))
			le.PutUint32(p1, uint32(squeeze(even>>8)))
			le.PutUint32(p2, uint32(squeeze(odd)))
			le.PutUint32(p0, uint32(squeeze(odd>>8)))
			b, p0, p1, p2, p3 = b[16:], p0[4:], p1[4:], p2[4:], p3[4:]
		}
		for i := range p0 {
			v := bits.RotateLeft32(le.Uint32(b[4*i:]), 1)
			p0[i], p1[i], p2[i], p3[i] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
		}
	}
}

// join fills b from the planes.
func (s *planeScratch) join(b []byte, width int) {
	le := binary.LittleEndian
	switch width {
	case 1:
		copy(b, s.planes[0][:])
	case 2:
		hi, lo := s.planes[0][:len(b)/2], s.planes[1][:len(b)/2]
		for len(b) >= 16 && len(hi) >= 8 && len(lo) >= 8 {
			h, l := le.Uint64(hi), le.Uint64(lo)
			x := stretch(h&0xffffffff)<<8 | stretch(l&0xffffffff)
			y := stretch(h>>32)<<8 | stretch(l>>32)
			le.PutUint64(b, x>>1&^highBits16|x&lowBits16<<15)
			le.PutUint64(b[8:], y>>1&^highBits16|y&lowBits16<<15)
			b, hi, lo = b[16:], hi[8:], lo[8:]
		}
		for i := range hi {
			le.PutUint16(b[2*i:], bits.RotateLeft16(uint16(hi[i])<<8|uint16(lo[i]), -1))
		}
	case 4:
		n := len(b) / 4
		p0, p1, p2, p3 := s.planes[0][:n], s.planes[1][:n], s.planes[2][:n], s.planes[3][:n]
		for len(b) >= 16 && len(p0) >= 4 && len(p1) >= 4 && len(p2) >= 4 && len(p3) >= 4 {
			even := stretch(uint64(le.Uint32(p3))) | stretch(uint64(le.Uint32(p1)))<<8
			odd := stretch(uint64(le.Uint32(p2))) | stretch(uint64(le.Uint32(p0)))<<8
			x := stretch(even&0xffffffff) | stretch(odd&0xffffffff)<<8
			y := stretch(even>>32) | stretch(odd>>32)<<8
			le.PutUint64(b, x>>1&^highBits32|x&lowBits32<<31)
			le.PutUint64(b[8:], y>>1&^highBits32|y&lowBits32<<31)
			b, p0, p1, p2, p3 = b[16:], p0[4:], p1[4:], p2[4:], p3[4:]
		}
		for i := range p0 {
			v := uint32(p0[i])<<24 | uint32(p1[i])<<16 | uint32(p2[i])<<8 | uint32(p3[i])
			le.PutUint32(b[4*i:], bits.RotateLeft32(v, -1))
		}
	}
}
