package delta

import (
	"context"
	"io"
)

// MaxLiteral is the longest literal run that Diff emits, in bytes.
const MaxLiteral = 1 << 20

// stream cuts a reader into chunks within one buffer:
//
//	buf[kept:at]     cut already, still wanted by the caller
//	buf[at:filled]   not cut yet
type stream struct {
	r                io.Reader
	p                Params
	buf              []byte
	kept, at, filled int
	end              error
}

// newStream makes room for what a caller may keep, for one chunk beside and for
// reading well ahead.
func newStream(r io.Reader, p Params) *stream {
	return &stream{r: r, p: p, buf: make([]byte, max(MaxLiteral, p.Max)+p.Max+1<<20)}
}

// next returns the next chunk, good until the call after, and io.EOF after the
// last. Bytes from kept on stay in the buffer.
func (s *stream) next(ctx context.Context) ([]byte, error) {
	if s.filled-s.at < s.p.Max && s.end == nil {
		if err := s.fill(ctx); err != nil {
			return nil, err
		}
	}
	if s.at == s.filled {
		return nil, s.end
	}
	n := s.p.cut(s.buf[s.at:s.filled])
	b := s.buf[s.at : s.at+n]
	s.at += n
	return b, nil
}

// fill moves what is kept to the front and reads until the buffer is full or the
// source at its end. An error of the source other than its end is returned at
// once: nothing after it could be right.
func (s *stream) fill(ctx context.Context) error {
	if s.kept > 0 {
		copy(s.buf, s.buf[s.kept:s.filled])
		s.at, s.filled, s.kept = s.at-s.kept, s.filled-s.kept, 0
	}
	for idle := 0; s.filled < len(s.buf); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.r.Read(s.buf[s.filled:])
		s.filled += n
		if err == io.EOF {
			s.end = io.EOF
			return nil
		}
		if err != nil {
			return err
		}
		if idle++; n > 0 {
			idle = 0
		} else if idle > 100 {
			return io.ErrNoProgress
		}
	}
	return nil
}
