package sync

import "encoding/binary"

// This file remembers many paths in little memory: each is what it has beyond
// the one before it. A million paths of a source tree take some 15 MB.

// pathList is a list of entries' paths, in any order, tree order being the
// smallest.
type pathList struct {
	text []byte
	n    int
	size int64 // of all files
	last string
}

// add appends e's two paths.
func (l *pathList) add(e Entry) {
	same := 0
	for same < len(e.Path) && same < len(l.last) && e.Path[same] == l.last[same] {
		same++
	}
	l.text = binary.AppendUvarint(l.text, uint64(same))
	l.text = binary.AppendUvarint(l.text, uint64(len(e.Path)-same))
	l.text = append(l.text, e.Path[same:]...)
	l.text = binary.AppendUvarint(l.text, uint64(len(e.From)))
	l.text = append(l.text, e.From...)
	l.text = binary.AppendUvarint(l.text, uint64(e.Size))
	l.last = e.Path
	l.n++
	l.size += e.Size
}

// all reads the list: Path, From and Size are set.
func (l *pathList) all(yield func(Entry) bool) {
	if l == nil {
		return
	}
	text, path := l.text, []byte(nil)
	number := func() int {
		n, size := binary.Uvarint(text)
		text = text[size:]
		return int(n)
	}
	word := func(n int) []byte {
		w := text[:n]
		text = text[n:]
		return w
	}
	for len(text) > 0 {
		same := number()
		path = append(path[:same], word(number())...)
		e := Entry{Path: string(path), From: string(word(number()))}
		e.Size = int64(number())
		if !yield(e) {
			return
		}
	}
}
