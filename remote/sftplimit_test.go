package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestNamesLimit(t *testing.T) {
	packet := func(kind byte, n int) []byte {
		return append(append(binary.BigEndian.AppendUint32(nil, uint32(n+1)), kind), make([]byte, n)...)
	}
	data, names := packet(103, 5000), packet(sftpName, 1000)
	for _, c := range []struct {
		name string
		sent []byte
		long bool
	}{
		{"file contents are not counted", bytes.Repeat(data, 10), false},
		{"names that fit", bytes.Repeat(append(bytes.Clone(data), names...), 2), false},
		{"names without end", bytes.Repeat(append(bytes.Clone(data), names...), 4), true},
		{"a length of zero", []byte{0, 0, 0, 0, sftpName, 0, 0, 0, 0, 1}, false},
	} {
		for _, r := range []io.Reader{bytes.NewReader(c.sent), iotest.OneByteReader(bytes.NewReader(c.sent))} {
			got, err := io.ReadAll(&namesLimit{r: r, max: 3000})
			if errors.Is(err, ErrTooLong) != c.long || !c.long && !bytes.Equal(got, c.sent) {
				t.Errorf("%s: %d of %d bytes, %v", c.name, len(got), len(c.sent), err)
			}
		}
	}
}
