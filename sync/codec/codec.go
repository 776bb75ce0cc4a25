package codec

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// MaxBlock is the longest raw block, in bytes, that Encode and Decode take.
const MaxBlock = 8 << 20

// Method says how a block is packed. It travels beside the block.
type Method uint8

const (
	Raw    Method = 0 // the bytes themselves
	Zstd   Method = 1 // one zstd frame
	Planes Method = 2 // numbers grouped by significance, see planes.go
	Sorted Method = 3 // Burrows-Wheeler transform, see bwt.go
	S2     Method = 4 // one block of Snappy's successor, where the link is faster than the cores
)

func (m Method) String() string {
	switch m {
	case Raw:
		return "raw"
	case Zstd:
		return "zstd"
	case Planes:
		return "planes"
	case Sorted:
		return "sorted"
	case S2:
		return "s2"
	}
	return fmt.Sprintf("method %d", uint8(m))
}

// Hint is what the caller knows about a block. The zero Hint means: look for
// yourself, do not compress hard.
type Hint struct {
	Level Level
	Kind  Kind
	// Phase is which byte of a number the block's first byte is, 0 for the lowest.
	// It counts only where Kind is a float.
	Phase int
}

// ErrCorrupt is what Decode wraps: the packed bytes are not what Encode makes.
var ErrCorrupt = errors.New("codec: packed block is damaged")

// Codec packs and unpacks blocks. It is safe for use by many goroutines at once.
// What it needs for a block is made when a goroutine first needs it and given up
// when none has for a while: a zstd encoder takes 10 to 45 MiB, a sorter 48.
type Codec struct {
	zstd    [levels]sync.Pool // *zstd.Encoder
	decode  func() *zstd.Decoder
	planes  sync.Pool // *planeScratch
	quick   sync.Pool // *[]byte, with room for a block's worst case
	sorters sync.Pool // *sorter
	// sorting holds a token for each sorter in use.
	sorting chan struct{}
}

// maxSorters bounds how many blocks are sorted at once, whatever the workers: memory is flat.
const maxSorters = 2

// New makes a Codec for that many goroutines at once (at least one). More may use it;
// the methods that take much memory then wait for each other.
func New(workers int) *Codec {
	workers = max(1, workers)
	c := &Codec{
		decode:  sync.OnceValue(func() *zstd.Decoder { return newDecoder(workers) }),
		planes:  sync.Pool{New: func() any { return new(planeScratch) }},
		quick:   sync.Pool{New: func() any { return new([]byte) }},
		sorters: sync.Pool{New: func() any { return new(sorter) }},
		sorting: make(chan struct{}, min(workers, maxSorters)),
	}
	for l := range levels {
		c.zstd[l].New = func() any { return newEncoder(l) }
	}
	return c
}

// Encode appends block, packed, to dst and returns how it is packed. It never
// makes a block longer: what does not compress is appended as it is. block must
// not be longer than MaxBlock nor overlap dst.
func (c *Codec) Encode(dst, block []byte, h Hint) (Method, []byte) {
	m, out := c.Pack(dst, block, h)
	if m == Raw {
		out = append(out, block...)
	}
	return m, out
}

// Pack is Encode without the copy of what does not compress: where the method is Raw, nothing
// is appended and the caller sends block itself.
func (c *Codec) Pack(dst, block []byte, h Hint) (Method, []byte) {
	if len(block) > MaxBlock {
		panic("codec: block longer than MaxBlock")
	}
	if h.Level <= LevelNone || h.Level >= levels || len(block) < minPacked {
		return Raw, dst
	}
	p := inspect(block, h)
	switch {
	case p.method == Zstd && h.Level == LevelMost && len(block) >= minSorted:
		p.method = Sorted
	case p.method == Zstd && h.Level == LevelQuick:
		p.method = S2
	}
	start := len(dst)
	switch p.method {
	case Planes:
		s := c.planes.Get().(*planeScratch)
		z := c.zstd[LevelFastest].Get().(*zstd.Encoder)
		dst = s.encode(dst, block, p.width, p.phase, z)
		c.zstd[LevelFastest].Put(z)
		c.planes.Put(s)
	case Sorted:
		c.sort(func(s *sorter) { dst = s.encode(dst, block) })
	case Zstd:
		z := c.zstd[h.Level].Get().(*zstd.Encoder)
		dst = z.EncodeAll(block, dst)
		c.zstd[h.Level].Put(z)
	case S2:
		b := c.quick.Get().(*[]byte)
		*b = s2.Encode((*b)[:cap(*b)], block)
		dst = append(dst, *b...)
		c.quick.Put(b)
	}
	if len(dst)-start >= len(block) {
		p.method = Raw
	}
	if p.method == Raw {
		dst = dst[:start]
	}
	return p.method, dst
}

// sort lends a sorter to do, once one of the few is free.
func (c *Codec) sort(do func(s *sorter)) {
	c.sorting <- struct{}{}
	s := c.sorters.Get().(*sorter)
	do(s)
	c.sorters.Put(s)
	<-c.sorting
}

// minSorted is the length below which zstd packs better than sorting does.
const minSorted = 16 << 10

// minPacked is the length below which a frame's own header eats the gain.
const minPacked = 64

// Decode appends the rawLen bytes that in stands for to dst. It takes hostile
// input: it never makes more than rawLen bytes, allocates no more than that and
// a fixed amount beside, and any error wraps ErrCorrupt.
func (c *Codec) Decode(dst []byte, m Method, in []byte, rawLen int) ([]byte, error) {
	if rawLen < 0 || rawLen > MaxBlock {
		return dst, fmt.Errorf("%w: it claims %d bytes, the limit is %d", ErrCorrupt, rawLen, MaxBlock)
	}
	if len(in) > rawLen {
		return dst, fmt.Errorf("%w: %d packed bytes for %d", ErrCorrupt, len(in), rawLen)
	}
	start := len(dst)
	dst = grow(dst, rawLen)
	var err error
	switch m {
	case Raw:
		dst = append(dst, in...)
	case Zstd:
		// DecodeAll is capped by the capacity: no byte beyond rawLen.
		var out []byte
		if out, err = c.decode().DecodeAll(in, dst[start:start:start+rawLen]); err == nil {
			dst = dst[:start+len(out)]
		}
	case Planes:
		s := c.planes.Get().(*planeScratch)
		err = s.decode(dst[start:start+rawLen], in, c.decode())
		c.planes.Put(s)
		dst = dst[:start+rawLen]
	case Sorted:
		c.sort(func(s *sorter) { err = s.decode(dst[start:start+rawLen], in) })
		dst = dst[:start+rawLen]
	case S2:
		// What it says of its length is looked at first: Decode would make room for it.
		var n int
		if n, err = s2.DecodedLen(in); err == nil && n != rawLen {
			err = fmt.Errorf("it holds %d bytes", n)
		}
		if err == nil {
			_, err = s2.Decode(dst[start:start+rawLen], in)
		}
		dst = dst[:start+rawLen]
	default:
		err = errors.New("unknown method")
	}
	if err != nil {
		return dst[:start], fmt.Errorf("%w (%s): %v", ErrCorrupt, m, err)
	}
	if got := len(dst) - start; got != rawLen {
		return dst[:start], fmt.Errorf("%w (%s): %d bytes instead of %d", ErrCorrupt, m, got, rawLen)
	}
	return dst, nil
}

// grow makes room for n more bytes without the doubling of append.
func grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	next := make([]byte, len(dst), len(dst)+n)
	copy(next, dst)
	return next
}

func newEncoder(l Level) *zstd.Encoder {
	z, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(l.zstd()),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(MaxBlock),
		zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false)) // the caller compares SHA-256
	if err != nil {
		panic(err) // options are constants
	}
	return z
}

func newDecoder(workers int) *zstd.Decoder {
	z, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderMaxWindow(MaxBlock),
		zstd.WithDecoderMaxMemory(MaxBlock),
		zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // options are constants
	}
	return z
}
