package codec

import (
	"bytes"
	"encoding/binary"
)

// torch reads a .pt archive: a zip without compression whose first entry,
// NAME/data.pkl, names the types of storages, and whose others hold them, aligned to 64
// bytes. Which storage is of which type would need the pickle run; where all
// floats are of one type, which is the rule, that does not matter.
func torch(head []byte, size int64) []Range {
	const fixed = 30
	le := binary.LittleEndian
	name, extra := int(le.Uint16(head[26:])), int(le.Uint16(head[28:]))
	method, flags, packed := le.Uint16(head[8:]), le.Uint16(head[6:]), int64(le.Uint32(head[18:]))
	start := fixed + name + extra
	if start > len(head) || method != 0 || !bytes.HasSuffix(head[fixed:fixed+name], []byte("/data.pkl")) {
		return nil
	}
	end := int64(start) + packed
	if flags&8 != 0 || packed == 0xffffffff {
		// The length follows the entry: look for the next one.
		next := bytes.Index(head[start:], []byte("PK\x03\x04"))
		if next < 0 {
			return nil
		}
		end = int64(start + next)
	}
	pickle := head[start:min(end, int64(len(head)))]
	var kind Kind
	for _, t := range []struct {
		class string
		kind  Kind
	}{{"\nBFloat16Storage\n", BF16}, {"\nHalfStorage\n", FP16}, {"\nFloatStorage\n", FP32}} {
		if !bytes.Contains(pickle, []byte(t.class)) {
			continue
		}
		if kind != Unknown {
			return nil // several: each block decides
		}
		kind = t.kind
	}
	if kind == Unknown || end >= size {
		return nil
	}
	off := (end + 63) &^ 63
	return []Range{{Off: off, Len: size - off, Kind: kind}}
}
