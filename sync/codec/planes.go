package codec

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// Planes: the bytes of floats grouped by significance. Sign and exponent of
// weights are few values, the mantissa is noise; side by side, as they lie in the
// file, a compressor finds nothing. Each number is rotated left by one bit, so that the
// top byte holds the exponent alone (bf16, fp32) and the sign lies with the
// mantissa; then the bytes of one significance are put together. The idea is
// ZipNN's (arXiv 2411.05239).
//
// A packed block is
//
//	1 byte     log2 of the width (bits 0-1), bytes before the first whole number (bits 2-3)
//	           those bytes, and those after the last whole number, as they are
//	           pieces of at most pieceLen numbers, each
//	             for each plane, the most significant first
//	               uvarint   length<<2 | how
//	               length bytes
const pieceLen = 64 << 10

// How a piece of a plane is packed.
const (
	planeRaw   = 0
	planeConst = 1 // one byte, repeated
	planeHuff  = 2 // huff0: table, then four streams
	planeZstd  = 3
)

// minHuff is the shortest piece that huff0 is asked to pack.
const minHuff = 256

type planeScratch struct {
	planes [4][pieceLen]byte
	huff   huff0.Scratch
	out    []byte
}

func (s *planeScratch) encode(dst, block []byte, width, phase int, z *zstd.Encoder) []byte {
	lead := min((width-phase)%width, len(block))
	dst = append(dst, byte(bits.TrailingZeros(uint(width)))|byte(lead)<<2)
	dst = append(dst, block[:lead]...)
	body := block[lead:]
	tail := len(body) % width
	dst = append(dst, body[len(body)-tail:]...)
	body = body[:len(body)-tail]
	for len(body) > 0 {
		n := min(len(body)/width, pieceLen)
		s.split(body[:n*width], width)
		for p := range width {
			dst = s.pack(dst, s.planes[p][:n], z)
		}
		body = body[n*width:]
	}
	return dst
}

// pack appends one piece of one plane.
func (s *planeScratch) pack(dst, b []byte, z *zstd.Encoder) []byte {
	how := planeRaw
	if len(b) >= minHuff {
		how = judge(b)
	}
	switch how {
	case planeConst:
		return append(binary.AppendUvarint(dst, 1<<2|planeConst), b[0])
	case planeZstd:
		s.out = z.EncodeAll(b, s.out[:0])
		if len(s.out) < len(b) {
			dst = binary.AppendUvarint(dst, uint64(len(s.out))<<2|planeZstd)
			return append(dst, s.out...)
		}
	case planeHuff:
		s.huff.Reuse = huff0.ReusePolicyNone
		if out, _, err := huff0.Compress4X(b, &s.huff); err == nil && len(out) < len(b) {
			dst = binary.AppendUvarint(dst, uint64(len(out))<<2|planeHuff)
			return append(dst, out...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(b))<<2|planeRaw)
	return append(dst, b...)
}

// judge looks at a part of a plane's piece and says how to pack it.
func judge(b []byte) int {
	head := b[:min(len(b), sampleRun)]
	var count [256]uint32
	for _, c := range head {
		count[c]++
	}
	if count[head[0]] == uint32(len(head)) {
		for _, c := range b {
			if c != b[0] {
				return planeZstd
			}
		}
		return planeConst
	}
	h := entropy(&count, float64(len(head)))
	if h > 7.85 {
		return planeRaw
	}
	if m, n := matches(head); h < 1 || float64(m) > 0.3*float64(n) {
		return planeZstd
	}
	return planeHuff
}

var errPlanes = errors.New("planes do not add up")

// decode fills dst, whose length is the raw length, from in.
func (s *planeScratch) decode(dst, in []byte, z *zstd.Decoder) error {
	if len(in) < 1 || in[0] >= 16 || in[0]&3 == 3 {
		return errPlanes
	}
	width, lead := 1<<(in[0]&3), int(in[0]>>2)
	in = in[1:]
	if lead >= width || lead > len(dst) {
		return errPlanes
	}
	tail := (len(dst) - lead) % width
	if len(in) < lead+tail {
		return errPlanes
	}
	copy(dst, in[:lead])
	copy(dst[len(dst)-tail:], in[lead:lead+tail])
	in = in[lead+tail:]
	body := dst[lead : len(dst)-tail]
	for len(body) > 0 {
		n := min(len(body)/width, pieceLen)
		for p := range width {
			var err error
			if in, err = s.unpack(s.planes[p][:n], in, z); err != nil {
				return err
			}
		}
		s.join(body[:n*width], width)
		body = body[n*width:]
	}
	if len(in) != 0 {
		return errPlanes
	}
	return nil
}

// unpack fills one piece of one plane and returns the rest of in.
func (s *planeScratch) unpack(dst, in []byte, z *zstd.Decoder) ([]byte, error) {
	v, k := binary.Uvarint(in)
	if k <= 0 || v>>2 > uint64(len(in)-k) || v>>2 > uint64(len(dst)) {
		return nil, errPlanes
	}
	packed, rest := in[k:k+int(v>>2)], in[k+int(v>>2):]
	switch v & 3 {
	case planeRaw:
		if len(packed) != len(dst) {
			return nil, errPlanes
		}
		copy(dst, packed)
	case planeConst:
		if len(packed) != 1 {
			return nil, errPlanes
		}
		for i := range dst {
			dst[i] = packed[0]
		}
	case planeHuff:
		table, data, err := huff0.ReadTable(packed, &s.huff)
		if err != nil {
			return nil, err
		}
		out, err := table.Decoder().Decompress4X(dst[:0:len(dst)], data)
		if err != nil {
			return nil, err
		}
		if len(out) != len(dst) {
			return nil, errPlanes
		}
	case planeZstd:
		out, err := z.DecodeAll(packed, dst[:0:len(dst)])
		if err != nil {
			return nil, err
		}
		if len(out) != len(dst) {
			return nil, errPlanes
		}
	}
	return rest, nil
}
