package whole

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
)

func reader(b []byte) Reader {
	return func(at, n int64) ([]byte, error) {
		if at < 0 || n < 0 || at+n > int64(len(b)) {
			return nil, fmt.Errorf("asked for %d bytes at %d of %d", n, at, len(b))
		}
		return b[at : at+n], nil
	}
}

func tensors(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func archived(comment string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range 5 {
		f, _ := w.Create(fmt.Sprintf("archive/data/%d", i))
		f.Write(make([]byte, 100*i))
	}
	w.SetComment(comment)
	w.Close()
	return b.Bytes()
}

// A cut anywhere is seen, and the whole file is not complained about.
func TestCutAnywhere(t *testing.T) {
	for name, text := range map[string][]byte{
		"model.safetensors": tensors(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[25],"data_offsets":[0,100]},"b":{"dtype":"U8","shape":[7],"data_offsets":[100,107]}}`, 107),
		"none.safetensors":  tensors(`{}`, 0),
		"model.pt":          archived(""),
		"said.pth":          archived("PK\x05\x06 a comment that looks like an end, and is not one"),
	} {
		if err := Check(name, int64(len(text)), reader(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		from := 0
		if name == "model.pt" || name == "said.pth" {
			from = 4 // less is no archive
		}
		for n := from; n < len(text); n++ {
			if err := Check(name, int64(n), reader(text[:n])); !errors.Is(err, ErrCut) {
				t.Errorf("%s cut to %d of %d bytes: %v", name, n, len(text), err)
			}
		}
	}
}

func TestNoOpinion(t *testing.T) {
	for name, text := range map[string]string{"old.pt": "\x80\x02}q\x00.", "a.txt": "PK\x03\x04", "empty.pt": "", "weights.bin": "floats"} {
		if err := Check(name, int64(len(text)), reader([]byte(text))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestZip64: a directory beyond 4 GiB, in a file with a hole.
func TestZip64(t *testing.T) {
	const dir = 5 << 30
	end := binary.LittleEndian.AppendUint64([]byte(end64Magic), 44)
	end = append(end, make([]byte, end64Len-len(end))...)
	binary.LittleEndian.PutUint64(end[40:], 100)
	binary.LittleEndian.PutUint64(end[48:], dir)
	end = append(end, loc64Magic+"\x00\x00\x00\x00"...)
	end = binary.LittleEndian.AppendUint64(end, dir+100)
	end = append(end, 1, 0, 0, 0)
	end = append(end, endMagic...)
	end = append(end, bytes.Repeat([]byte{0xff}, 16)...)
	end = append(end, 0, 0)
	size := int64(dir + 100 + len(end))
	holes := func(at, n int64) ([]byte, error) {
		b := make([]byte, n)
		for i := range b {
			if p := at + int64(i); p < 4 {
				b[i] = localMagic[p]
			} else if p >= dir+100 {
				b[i] = end[p-dir-100]
			}
		}
		return b, nil
	}
	if err := Check("big.pt", size, holes); err != nil {
		t.Error(err)
	}
	binary.LittleEndian.PutUint64(end[48:], dir+1)
	if err := Check("big.pt", size, holes); !errors.Is(err, ErrCut) {
		t.Errorf("a directory that does not fit: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("a.safetensors", tensors(`{"a":{"data_offsets":[0,4]}}`, 4))
	f.Add("a.pt", archived("x"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		err := Check(name, int64(len(text)), reader(text))
		if err != nil && !errors.Is(err, ErrCut) {
			t.Errorf("it asks beyond the file: %v", err)
		}
	})
}
