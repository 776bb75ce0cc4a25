package codec

import (
	"encoding/binary"
	"sort"
)

// Range says what a part of a file holds.
type Range struct {
	Off, Len int64
	Kind     Kind
}

// MaxHead is how much of a file's beginning, in bytes, is worth giving to Sniff.
const MaxHead = 1 << 20

// maxRanges bounds what a hostile header may make us remember.
const maxRanges = 1 << 16

// Sniff reads the beginning of a file of size bytes and says which ranges of it
// hold floats, in order and joined where they touch: safetensors by its header, .pt archives by the
// storage types that their pickle names, as far as head goes. Nil is unknown. What it says is a hint: packing
// is lossless whatever the bytes are.
func Sniff(head []byte, size int64) []Range {
	var found []Range
	switch {
	case len(head) > 10 && head[8] == '{':
		found = safetensors(head, size)
	case len(head) > 30 && string(head[:4]) == "PK\x03\x04":
		found = torch(head, size)
	}
	return tidy(found, size)
}

// HintAt fills in Kind and Phase for the block of n bytes at off. The kind that
// most of the block is of wins.
func HintAt(ranges []Range, off int64, n int) Hint {
	var h Hint
	most := int64(0)
	end := off + int64(n)
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].Off+ranges[i].Len > off })
	var share [FP32 + 1]int64
	for ; i < len(ranges) && ranges[i].Off < end; i++ {
		r := ranges[i]
		k := min(r.Kind, FP32)
		share[k] += min(end, r.Off+r.Len) - max(off, r.Off)
		if share[k] <= most {
			continue
		}
		most, h.Kind, h.Phase = share[k], k, 0
		if w := int64(k.Width()); w > 0 {
			h.Phase = int(((off-r.Off)%w + w) % w)
		}
	}
	if most*2 < int64(n) {
		return Hint{} // mostly unknown: look
	}
	return h
}

// tidy sorts ranges, drops what lies outside the file or overlaps, and joins
// neighbours whose numbers stay aligned.
func tidy(found []Range, size int64) []Range {
	sort.Slice(found, func(i, j int) bool { return found[i].Off < found[j].Off })
	out := found[:0]
	for _, r := range found {
		if r.Off < 0 || r.Len <= 0 || r.Off > size || r.Len > size-r.Off {
			continue
		}
		if n := len(out); n > 0 {
			last := &out[n-1]
			if r.Off < last.Off+last.Len {
				continue
			}
			w := int64(max(1, r.Kind.Width()))
			if last.Kind == r.Kind && last.Off+last.Len == r.Off && last.Len%w == 0 {
				last.Len += r.Len
				continue
			}
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// safetensors: 8 bytes length of the header, a JSON object of tensors, then the
// data (https://github.com/huggingface/safetensors#format). Only two members matter:
//
//	"name": {"dtype":"BF16", "shape":[…], "data_offsets":[begin, end]}
func safetensors(head []byte, size int64) []Range {
	n := binary.LittleEndian.Uint64(head)
	if n > 100<<20 || int64(n) > size-8 { // the format's own limit
		return nil
	}
	data := 8 + int64(n)
	text := head[8:min(int64(len(head)), data)]
	var found []Range
	s := scanner{b: text}
	if s.next() != '{' {
		return nil
	}
	for len(found) < maxRanges {
		if s.next() != '"' || s.next() != ':' || s.next() != '{' {
			return found // the end, what no header holds, or beyond head
		}
		var kind Kind
		var begin, end int64
		has := false
		for t := s.next(); t != '}'; t = s.next() {
			if t == ',' {
				continue
			}
			if t != '"' {
				return found
			}
			key := string(s.token)
			if s.next() != ':' {
				return found
			}
			switch t := s.next(); {
			case t == '"':
				if key == "dtype" {
					kind = dtype(string(s.token))
				}
			case t == '[':
				var nums []int64
				for t = s.next(); t != ']'; t = s.next() {
					if t == '0' && len(nums) < 2 {
						nums = append(nums, s.number)
					} else if t != '0' && t != ',' {
						return found
					}
				}
				if key == "data_offsets" && len(nums) == 2 {
					begin, end, has = nums[0], nums[1], true
				}
			case t != '0':
				return found
			}
		}
		if has && begin >= 0 && end > begin && end <= size-data {
			found = append(found, Range{Off: data + begin, Len: end - begin, Kind: kind})
		}
		if s.next() != ',' {
			return found
		}
	}
	return found
}

// dtype names as safetensors writes them.
func dtype(s string) Kind {
	switch s {
	case "BF16":
		return BF16
	case "F16":
		return FP16
	case "F32":
		return FP32
	}
	return Bytes
}

// scanner reads the little JSON that a header is made of. next returns the kind of
// the next token: punctuation as itself, '"' for a string (in token, escapes left
// as they are), '0' for a number (in number), 0 at the end or at anything else.
type scanner struct {
	b      []byte
	token  []byte
	number int64
}

func (s *scanner) next() byte {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\n' || s.b[0] == '\r' || s.b[0] == '\t') {
		s.b = s.b[1:]
	}
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	switch {
	case c == '"':
		for i := 1; i < len(s.b); i++ {
			switch s.b[i] {
			case '\\':
				i++
			case '"':
				s.token, s.b = s.b[1:i], s.b[i+1:]
				return '"'
			}
		}
	case '0' <= c && c <= '9':
		s.number = 0
		i := 0
		for ; i < len(s.b) && '0' <= s.b[i] && s.b[i] <= '9'; i++ {
			if s.number > 1<<58 {
				return 0
			}
			s.number = s.number*10 + int64(s.b[i]-'0')
		}
		if s.b = s.b[i:]; len(s.b) > 0 {
			return '0'
		}
	case c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',':
		s.b = s.b[1:]
		return c
	}
	return 0
}
