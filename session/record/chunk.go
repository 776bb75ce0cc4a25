package record

// The chunks of a file: how they are framed, and how they are found again.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// magic begins every file, then a byte with the version.
const (
	magic   = "rentop recording\n"
	version = 1
)

const (
	headLen   = 28
	maxPacked = 32 << 20 // bytes of a chunk in the file
	maxPlain  = 64 << 20 // and of what it holds: 400 machines with 8 cards each
	maxChunks = 4 << 20  // in a file: 48 days
)

// The kinds of chunks.
const (
	aboutKind  = 'A' // JSON of About, first in the file
	wholeKind  = 'W' // a view, and the begin of a zstd frame
	changeKind = 'C' // what is different from the view before
)

// chunk is one as the file's index knows it.
type chunk struct {
	kind   byte
	at     time.Time
	offset int64 // of its packed bytes
	packed int
	plain  int
	crc    uint32
}

func sum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// appendChunk appends a chunk with its head to dst.
func appendChunk(dst []byte, kind byte, at time.Time, packed []byte, plain int) []byte {
	head := make([]byte, 0, headLen)
	head = append(head, kind, 0, 0, 0)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(packed)))
	head = binary.LittleEndian.AppendUint32(head, uint32(plain))
	head = binary.LittleEndian.AppendUint64(head, uint64(at.UnixMilli()))
	head = binary.LittleEndian.AppendUint32(head, sum(packed))
	head = binary.LittleEndian.AppendUint32(head, sum(head))
	return append(append(dst, head...), packed...)
}

var errDamaged = errors.New("damaged")

// readHead reads a chunk's head at an offset of the file.
func readHead(r io.ReaderAt, offset int64) (chunk, error) {
	var head [headLen]byte
	if _, err := r.ReadAt(head[:], offset); err != nil {
		return chunk{}, err
	}
	num := func(i int) uint32 { return binary.LittleEndian.Uint32(head[i:]) }
	c := chunk{kind: head[0], offset: offset + headLen, packed: int(num(4)), plain: int(num(8)),
		at: time.UnixMilli(int64(binary.LittleEndian.Uint64(head[12:]))), crc: num(20)}
	switch year := c.at.UTC().Year(); {
	case num(24) != sum(head[:24]), c.packed > maxPacked, c.plain > maxPlain, year < 2000 || year > 9999,
		c.kind != aboutKind && c.kind != wholeKind && c.kind != changeKind:
		return chunk{}, errDamaged
	}
	return c, nil
}

// read gives a chunk's bytes and proves them.
func (c chunk) read(r io.ReaderAt) ([]byte, error) {
	b := make([]byte, c.packed)
	if _, err := r.ReadAt(b, c.offset); err != nil {
		return nil, fmt.Errorf("read the chunk at byte %d: %w", c.offset, err)
	}
	if sum(b) != c.crc {
		return nil, fmt.Errorf("the chunk at byte %d is %w", c.offset, errDamaged)
	}
	return b, nil
}

// index finds the chunks of a file of that size. What lies behind the last whole one
// is cut: bytes of it, 0 where the file ends as it should.
func index(r io.ReaderAt, size int64) (about chunk, views []chunk, cut int64, err error) {
	var begin [len(magic) + 1]byte
	if _, err := r.ReadAt(begin[:], 0); err != nil || string(begin[:len(magic)]) != magic {
		return chunk{}, nil, 0, errors.New("it is no recording of rentop")
	}
	if v := begin[len(magic)]; v != version {
		return chunk{}, nil, 0, fmt.Errorf("it is a recording of version %d, and this rentop reads version %d: use a newer one", v, version)
	}
	const first = int64(len(begin))
	at := first
	for at < size {
		c, err := readHead(r, at)
		if err != nil || c.offset+int64(c.packed) > size || (c.kind == aboutKind) != (at == first) ||
			len(views) == 0 && c.kind == changeKind || len(views) == maxChunks {
			break
		}
		if c.kind == aboutKind {
			about = c
		} else {
			if n := len(views); n > 0 && c.at.Before(views[n-1].at) { // the clock was set back: time stands still
				c.at = views[n-1].at
			}
			views = append(views, c)
		}
		at = c.offset + int64(c.packed)
	}
	if len(views) == 0 {
		return about, nil, 0, errors.New("it holds nothing: it was ended before its first second")
	}
	return about, views, size - at, nil
}
