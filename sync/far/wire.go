package far

import (
	"encoding/binary"
	"io/fs"
	"math"
	"time"

	"rentop/sync/tree"
)

// This file encodes what messages hold. Numbers are varints; every length is
// checked against a bound before anything is allocated for it.

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// decoder reads a message. After the first error all else is zero, so a caller
// looks at err once, at the end.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = broken("%s", what)
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("a message ends early")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a number is cut or too long")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// varint is what binary.AppendVarint writes: the sign is the lowest bit.
func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// length is a number of at most limit.
func (d *decoder) length(limit uint64) int {
	v := d.uvarint()
	if v > limit {
		d.fail("a length is beyond its limit")
		return 0
	}
	return int(v)
}

// size is a file's length or an offset.
func (d *decoder) size() int64 {
	v := d.uvarint()
	if v > math.MaxInt64 {
		d.fail("a size is beyond any disk")
		return 0
	}
	return int64(v)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail("a message ends early")
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) string(limit int) string { return string(d.bytes(d.length(uint64(limit)))) }

// end says whether all was read and right.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("a message is longer than what it says")
	}
	return d.err
}

// front encodes paths by what they share with the one before.
type front struct{ last string }

func (f *front) append(b []byte, p string) []byte {
	n := 0
	for n < len(p) && n < len(f.last) && p[n] == f.last[n] {
		n++
	}
	f.last = p
	b = binary.AppendUvarint(b, uint64(n))
	return appendString(b, p[n:])
}

func (f *front) read(d *decoder) string {
	n := d.length(uint64(len(f.last)))
	rest := d.bytes(d.length(uint64(tree.MaxPath - n)))
	f.last = f.last[:n] + string(rest)
	return f.last
}

// path reads a path and refuses one that leaves its root.
func (f *front) path(d *decoder) string {
	p := f.read(d)
	d.checkPath(p)
	return p
}

func (d *decoder) checkPath(p string) {
	if d.err == nil {
		if err := tree.CheckPath(p); err != nil {
			d.fail(err.Error())
		}
	}
}

// appendTime writes a time to the nanosecond; the zero time is its own.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = binary.AppendVarint(append(b, 1), t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func (d *decoder) time() time.Time {
	if d.byte() == 0 {
		return time.Time{}
	}
	sec, ns := d.varint(), d.length(1e9-1)
	if sec > 1<<40 || sec < -(1<<40) {
		d.fail("a time is beyond all calendars")
		return time.Time{}
	}
	return time.Unix(sec, int64(ns))
}

// appendMode writes a letter for the type and the permission bits.
func appendMode(b []byte, m fs.FileMode) []byte {
	t := byte('f')
	switch {
	case m.IsDir():
		t = 'd'
	case m&fs.ModeSymlink != 0:
		t = 'l'
	case m&fs.ModeNamedPipe != 0:
		t = 'p'
	case m&fs.ModeSocket != 0:
		t = 's'
	case m&fs.ModeCharDevice != 0:
		t = 'c'
	case m&fs.ModeDevice != 0:
		t = 'b'
	case m&fs.ModeIrregular != 0:
		t = 'i'
	}
	return binary.AppendUvarint(append(b, t), uint64(m.Perm()))
}

func (d *decoder) mode() fs.FileMode {
	t := d.byte()
	m := fs.FileMode(d.length(0o777))
	switch t {
	case 'f':
	case 'd':
		m |= fs.ModeDir
	case 'l':
		m |= fs.ModeSymlink
	case 'p':
		m |= fs.ModeNamedPipe
	case 's':
		m |= fs.ModeSocket
	case 'c':
		m |= fs.ModeDevice | fs.ModeCharDevice
	case 'b':
		m |= fs.ModeDevice
	case 'i':
		m |= fs.ModeIrregular
	default:
		d.fail("an unknown type of file")
	}
	return m
}

// Fields that follow an entry only where they are set.
const (
	hasTarget = 1 << iota
	hasFrom
	hasLink
	hasUnknown
)

// appendEntry writes e. What From and Link name is written in full: they are rare.
func (f *front) appendEntry(b []byte, e *tree.Entry) []byte {
	b = f.append(b, e.Path)
	var has byte
	if e.Target != "" {
		has |= hasTarget
	}
	if e.From != "" {
		has |= hasFrom
	}
	if e.Link != "" {
		has |= hasLink
	}
	b = append(b, has)
	b = appendMode(b, e.Mode)
	b = binary.AppendUvarint(b, uint64(max(0, e.Size)))
	b = appendTime(b, e.ModTime)
	if has&hasTarget != 0 {
		b = appendString(b, e.Target)
	}
	if has&hasFrom != 0 {
		b = appendString(b, e.From)
	}
	if has&hasLink != 0 {
		b = appendString(b, e.Link)
	}
	return b
}

// entry reads one entry. Its path is not checked: a listing drops a bad one and
// goes on, a transfer refuses it.
func (f *front) entry(d *decoder) tree.Entry {
	var e tree.Entry
	e.Path = f.read(d)
	has := d.byte()
	if has >= hasUnknown {
		d.fail("an entry holds an unknown field")
	}
	e.Mode = d.mode()
	e.Size = d.size()
	e.ModTime = d.time()
	if has&hasTarget != 0 {
		e.Target = d.string(tree.MaxPath)
	}
	if has&hasFrom != 0 {
		e.From = d.string(tree.MaxPath)
	}
	if has&hasLink != 0 {
		e.Link = d.string(tree.MaxPath)
	}
	return e
}

// maxPatterns bounds a list of patterns.
const maxPatterns = 1 << 12

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func (d *decoder) strings() []string {
	var out []string
	for range d.length(maxPatterns) {
		if d.err == nil {
			out = append(out, d.string(tree.MaxPath))
		}
	}
	return out
}
