package sample

// The elements of the wire: varints, and text with its length before it. Whatever
// is read is from an instance: every length is checked against what is there.

import (
	"encoding/binary"
	"errors"

	"rentop/remote/clean"
)

var errShort = errors.New("sample: the message ends too early")

// writer gathers bytes.
type writer []byte

func (w *writer) uint(n uint64) { *w = binary.AppendUvarint(*w, n) }
func (w *writer) int(n int64)   { *w = binary.AppendVarint(*w, n) }
func (w *writer) bool(b bool) {
	if b {
		w.uint(1)
	} else {
		w.uint(0)
	}
}
func (w *writer) text(s string, longest int) {
	s = clean.Short(s, longest)
	w.uint(uint64(len(s)))
	*w = append(*w, s...)
}

// reader takes them back. After the first fault it gives zeroes and keeps the fault.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.b = err, nil
	}
}

func (r *reader) uint() uint64 {
	n, l := binary.Uvarint(r.b)
	if l <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[l:]
	return n
}

func (r *reader) int() int64 {
	n, l := binary.Varint(r.b)
	if l <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[l:]
	return n
}

func (r *reader) bool() bool { return r.uint() != 0 }

// count reads a number that may be at most highest.
func (r *reader) count(highest int) int {
	n := r.uint()
	if n > uint64(highest) {
		r.fail(errors.New("sample: the message counts more than there can be"))
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) text(longest int) string { return clean.Short(string(r.bytes()), longest) }
