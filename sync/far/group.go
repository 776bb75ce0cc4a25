package far

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"time"

	"rentop/sync/codec"
)

// This file reads a group of small files and packs them as one block.

// headRoom is what a file's place in a batch's header takes beside its path.
const headRoom = 48

// pack reads a group's files into t's message. Those that cannot be read are
// reported and left out; those that have grown large go by themselves.
func (s *sender) pack(t *ticket, group []smallJob, level codec.Level) {
	s.current(group[0].index)
	head, all := 64, int64(0)
	for i := range group {
		head += len(group[i].path) + headRoom
		all += group[i].size
	}
	buf := getBuffer(head + int(min(all, codec.MaxBlock)))[:head]
	files := make([]small, 0, len(group))
	var large []*outgoing
	for i := range group {
		j := &group[i]
		f, fi, err := s.p.openSource(j.from)
		if err != nil {
			s.failed(j.index, err)
			continue
		}
		if size := fi.Size(); size >= largeFrom && size > j.size || int64(len(buf))+size > codec.MaxBlock {
			f.Close()
			o := newOutgoing(announced{index: j.index, fresh: true})
			o.from, o.entry.Path, o.entry.Mode, o.entry.Size = j.from, j.path, j.perm, size
			large = append(large, o)
			continue
		}
		start := len(buf)
		buf, err = s.readWhole(buf, f, fi)
		f.Close()
		if err != nil {
			buf = buf[:start]
			s.failed(j.index, err)
			continue
		}
		m := small{index: j.index, path: j.path, perm: j.perm, size: fi.Size(), time: fi.ModTime(), sum: sha256.Sum256(buf[start:])}
		files = append(files, m)
		s.read(j.index, source{size: m.size, time: m.time, sum: m.sum})
	}
	t.after = func() {
		putBuffer(buf)
		for _, o := range large {
			s.late(o)
		}
	}
	if len(files) == 0 {
		return
	}
	for i := range files {
		t.raw += files[i].size
	}
	header := appendBatch(nil, files, s.named)
	raw := buf[head-len(header):]
	copy(raw, header)
	block, packed := s.encode(raw, codec.Hint{Level: level})
	t.parts = [][]byte{block, packed}
	after := t.after
	t.after = func() {
		if len(packed) > 0 && &packed[0] != &raw[0] {
			putBuffer(packed)
		}
		after()
	}
}

// encode packs a block; where that gains nothing the result is raw itself.
func (s *sender) encode(raw []byte, h codec.Hint) (head, packed []byte) {
	m := codec.Raw
	packed = raw
	if h.Level == codec.LevelNone && len(raw) >= hole && zeros(raw) == len(raw)/hole*hole {
		h.Level = codec.LevelQuick // a hole costs nothing even where nothing is packed
	}
	if h.Level > codec.LevelNone {
		start := time.Now()
		var out []byte
		if m, out = s.codec.Pack(getBuffer(len(raw))[:0], raw, h); m == codec.Raw {
			putBuffer(out)
		} else {
			packed = out
		}
		s.gov.Encoded(h.Level, m, len(raw), len(packed), time.Since(start))
	}
	return appendBlock(nil, m, len(raw)), packed
}

// readWhole appends f's content to buf and makes sure that it did not change.
func (s *sender) readWhole(buf []byte, f *os.File, fi fs.FileInfo) ([]byte, error) {
	size := int(fi.Size())
	buf = growBuffer(buf, size)
	n, err := io.ReadFull(f, buf[len(buf):len(buf)+size])
	s.reading(int64(n))
	if err == io.ErrUnexpectedEOF || err == io.EOF && size > 0 {
		return buf, errChanged
	}
	if err != nil && err != io.EOF {
		return buf, err
	}
	buf = buf[:len(buf)+size]
	return buf, unchanged(f, fi)
}

// unchanged looks again at a file that was read as fi.
func unchanged(f *os.File, fi fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if now.Size() != fi.Size() || !now.ModTime().Equal(fi.ModTime()) {
		return errChanged
	}
	return nil
}
