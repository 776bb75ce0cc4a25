// Package whole says whether a checkpoint's file is complete, by its own format: a
// trainer that was killed while it wrote leaves a file that looks like any other. It
// reads a file's ends only, through a function, so that it does not matter where the
// file is.
package whole

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Reader gives n bytes of a file from byte at on: all of them, or an error.
type Reader func(at, n int64) ([]byte, error)

// ErrCut is wrapped by the error of a file that is not complete.
var ErrCut = errors.New("the file is not complete")

// maxHeader bounds a safetensors header that is read (the format's own bound is 100 MB,
// and real ones stay below 1 MB).
const maxHeader = 8 << 20

// Check reads the ends of a file of size bytes and says whether it is cut short. nil
// is a file that is complete, or one whose format tells nothing. An error that is no
// ErrCut is the reader's.
func Check(name string, size int64, read Reader) error {
	switch strings.ToLower(path.Ext(name)) {
	case ".safetensors":
		return safetensors(size, read)
	case ".pt", ".pth", ".ckpt", ".bin":
		return archive(size, read)
	}
	return nil
}

// Tells says whether Check has something to read in a file of that name.
func Tells(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".safetensors", ".pt", ".pth", ".ckpt", ".bin":
		return true
	}
	return false
}

func cut(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCut, fmt.Sprintf(format, args...))
}

// safetensors: 8 bytes length of the header, a JSON object of tensors, the data
// without holes (https://github.com/huggingface/safetensors#format).
func safetensors(size int64, read Reader) error {
	if size < 8 {
		return cut("%d bytes hold no safetensors header", size)
	}
	b, err := read(0, 8)
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(b)
	switch {
	case n > uint64(size-8):
		return cut("its header has %d bytes, the file %d", n, size)
	case n > maxHeader:
		return nil
	}
	if b, err = read(8, int64(n)); err != nil {
		return err
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b, &header); err != nil {
		return cut("its header is no JSON")
	}
	var end uint64
	for name, raw := range header {
		if name == "__metadata__" {
			continue
		}
		var t struct {
			Offsets [2]uint64 `json:"data_offsets"`
		}
		if json.Unmarshal(raw, &t) != nil || t.Offsets[0] > t.Offsets[1] {
			return cut("its header does not say where a tensor lies")
		}
		end = max(end, t.Offsets[1])
	}
	if have := uint64(size) - 8 - n; end != have {
		return cut("its tensors take %d bytes, and %d are there", end, have)
	}
	return nil
}

// The records of a zip archive that are at its end
// (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.14 to 4.3.16).
const (
	localMagic = "PK\x03\x04"
	endMagic   = "PK\x05\x06"
	end64Magic = "PK\x06\x06"
	loc64Magic = "PK\x06\x07"
	endLen     = 22
	end64Len   = 56
	loc64Len   = 20
	maxComment = 1<<16 - 1
)

// archive: what torch.save writes since 1.6 is a zip, whose directory comes last. An
// older file is a pickle, which does not tell where it ends.
func archive(size int64, read Reader) error {
	if size < 4 {
		return nil
	}
	b, err := read(0, 4)
	if err != nil {
		return err
	}
	if string(b) != localMagic {
		return nil
	}
	n := min(size, endLen+loc64Len+maxComment)
	tail, err := read(size-n, n)
	if err != nil {
		return err
	}
	at := lastEnd(tail)
	if at < 0 {
		return cut("the archive's directory, which is written last, is not there")
	}
	end := tail[at:]
	length, offset := uint64(binary.LittleEndian.Uint32(end[12:])), uint64(binary.LittleEndian.Uint32(end[16:]))
	before := uint64(size) - uint64(len(end))
	if at >= loc64Len && string(tail[at-loc64Len:at-loc64Len+4]) == loc64Magic {
		where := binary.LittleEndian.Uint64(tail[at-loc64Len+8:])
		if uint64(size) < end64Len || where > uint64(size)-end64Len {
			return cut("the archive's end points beyond the file")
		}
		b, err := read(int64(where), end64Len)
		if err != nil {
			return err
		}
		if string(b[:4]) != end64Magic {
			return cut("the archive's end points to what is no end")
		}
		length, offset, before = binary.LittleEndian.Uint64(b[40:]), binary.LittleEndian.Uint64(b[48:]), where
	}
	if offset > before || length > before-offset {
		return cut("the archive's directory lies beyond the file")
	}
	return nil
}

// lastEnd finds the end record whose comment reaches exactly the end; -1 for none.
func lastEnd(tail []byte) int {
	for at := len(tail) - endLen; at >= 0; at-- {
		if string(tail[at:at+4]) == endMagic && at+endLen+int(binary.LittleEndian.Uint16(tail[at+20:])) == len(tail) {
			return at
		}
	}
	return -1
}
