package remote

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxListing bounds the bytes of file names on one SFTP channel: pkg/sftp holds a
// folder whole, and a hostile one has no end. A million files are about 200 MiB.
const maxListing = 1 << 30

const sftpName = 104 // SSH_FXP_NAME

// namesLimit passes on what an SFTP server sends until its file names are too many.
type namesLimit struct {
	r     io.Reader
	max   int64
	names int64
	head  [5]byte // a packet's length and type
	have  int
	left  int64 // of the packet
}

func (l *namesLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for b := p[:n]; len(b) > 0; {
		if l.left > 0 {
			k := min(l.left, int64(len(b)))
			b, l.left = b[k:], l.left-k
			continue
		}
		k := copy(l.head[l.have:], b)
		b = b[k:]
		if l.have += k; l.have < len(l.head) {
			continue
		}
		size := int64(binary.BigEndian.Uint32(l.head[:4]))
		l.have, l.left = 0, max(size-1, 0)
		if l.head[4] != sftpName {
			continue
		}
		if l.names += size; l.names > l.max {
			return 0, fmt.Errorf("%w: more than %d MiB of file names; choose a smaller folder", ErrTooLong, l.max>>20)
		}
	}
	return n, err
}
