package far

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"rentop/sync/delta"
	"rentop/sync/tree"
)

// This file is what a receiver has of a file that is about to come: the part of a
// run that was cut, its older version, files that may hold much of it.

// PartName is where the unfinished part of a large file waits, beside it: the
// name holds what makes this version of the source.
func PartName(p string, size int64, t time.Time) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", p, size, t.UnixNano()))
	dir, name := path.Split(p)
	if len(name) > 180 {
		name = strings.ToValidUTF8(name[:180], "")
	}
	return dir + "." + name + tree.PartInfix + hex.EncodeToString(h[:8])
}

// bases is what there is to make a file from.
type bases struct {
	part  *os.File      // goes on in place; nil where there is none
	files []*os.File    // signed by content; a part is among them where others are
	size  int64         // of the new file, as both sides know it
	token chan struct{} // given back with the files; nil where there was none

	dir    *folder // of the part while it is one of files
	old    string  // and its name there
	oldLen int64
}

func (b *bases) close() {
	if b.part != nil {
		b.part.Close()
	}
	for _, f := range b.files {
		f.Close()
	}
}

// settle is the end of a part that has served as a basis: it becomes the part
// again where it holds more than the one that this run has kept, with got bytes.
func (b *bases) settle(got int64, keep bool) {
	b.close()
	if b.token != nil {
		<-b.token
		b.token = nil
	}
	if b.dir == nil {
		return
	}
	if keep && got < b.oldLen {
		b.dir.rename(b.old, strings.TrimSuffix(b.old, oldSuffix))
	} else {
		b.dir.remove(b.old)
	}
	b.dir.put()
	b.dir = nil
}

// oldSuffix marks a part that is read while the next one is written.
const oldSuffix = "-old"

// look finds what there is; the caller holds a token of looking, which is given
// back with what was found. Nothing here fails: less of a basis is more to send.
func (in *incoming) look(size int64, t time.Time, fresh bool, candidates []string) {
	in.have.size, in.have.token = size, in.r.looking
	if !fresh {
		in.candidate(in.path)
		for _, c := range candidates {
			in.candidate(c)
		}
	}
	if size < partFrom {
		return
	}
	dir, base := path.Split(PartName(in.path, size, t))
	d, err := in.r.p.folder(path.Clean(dir))
	if err != nil {
		return // told when the file begins
	}
	defer d.put()
	f, n := openBasis(d, base)
	if f == nil {
		return
	}
	if len(in.have.files) == 0 {
		in.have.part = f
		return
	}
	if d.rename(base, base+oldSuffix) != nil {
		f.Close()
		return
	}
	d.uses.Add(1)
	in.have.dir, in.have.old, in.have.oldLen = d, base+oldSuffix, n
	in.have.files = append(in.have.files, f)
}

func (in *incoming) candidate(p string) {
	if len(in.have.files) == maxBasis-1 { // one is left for the part
		return
	}
	dir, base := path.Split(p)
	d, err := in.r.p.folder(path.Clean(dir))
	if err != nil {
		return
	}
	defer d.put()
	f, _ := openBasis(d, base)
	if f == nil {
		return
	}
	fi, err := f.Stat()
	for _, o := range in.have.files {
		if ofi, oerr := o.Stat(); err != nil || oerr != nil || os.SameFile(fi, ofi) {
			f.Close()
			return
		}
	}
	in.have.files = append(in.have.files, f)
}

// openBasis opens a regular file that is long enough to be of use.
func openBasis(d *folder, base string) (*os.File, int64) {
	f, err := d.read(base)
	if err != nil {
		return nil, 0
	}
	if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() && fi.Size() >= wholeBelow {
		return f, fi.Size()
	}
	f.Close()
	return nil, 0
}

// some says whether there is anything.
func (b *bases) some() bool { return b.part != nil || len(b.files) > 0 }

// tell says what there is, as the sender asked or as a pull asks for the file.
func (in *incoming) tell() {
	k := in.r.k
	select {
	case in.r.haves <- struct{}{}:
		defer func() { <-in.r.haves }()
	case <-k.ctx.Done():
		return
	}
	index := binary.AppendUvarint(nil, uint64(in.index))
	index = index[:len(index):len(index)]
	part := in.have.part
	length := int64(0)
	if part != nil {
		if fi, err := part.Stat(); err == nil {
			length = fi.Size() / partBlock * partBlock
		}
	}
	files := in.have.files
	have := binary.AppendUvarint(index, uint64(length))
	if k.send(msgHave, binary.AppendUvarint(have, uint64(len(files)))) != nil {
		return
	}
	switch {
	case len(files) > 0:
		for i, f := range files {
			if !in.sign(binary.AppendUvarint(append(index, 0), uint64(i+1)), f) {
				return
			}
		}
		k.send(msgChunks, binary.AppendUvarint(append(index, 1), 0))
	case length > 0:
		in.sums(index, part, length)
	}
}

// sums sends a sum of each block of the part.
func (in *incoming) sums(index []byte, part *os.File, length int64) {
	k := in.r.k
	buf := getBuffer(partBlock)
	defer putBuffer(buf)
	b := append(index, 0)
	for off := int64(0); off < length && k.ctx.Err() == nil; off += partBlock {
		if n, err := part.ReadAt(buf, off); n < len(buf) && err != nil {
			break // closed, since the file has ended, or shorter by now
		}
		if b = binary.LittleEndian.AppendUint64(b, xxh3.Hash(buf)); len(b) >= 16<<10 {
			if k.send(msgSums, b) != nil {
				return
			}
			b = append(index, 0)
		}
	}
	b[len(index)] = 1
	k.send(msgSums, b)
}

// sign sends the signature of one basis; false ends it all.
func (in *incoming) sign(head []byte, f *os.File) bool {
	k := in.r.k
	head = head[:len(head):len(head)]
	fi, err := f.Stat()
	if err != nil {
		return k.ctx.Err() == nil
	}
	r := io.NewSectionReader(f, 0, fi.Size())
	err = delta.Sign(k.ctx, r, in.have.size, func(c []delta.Chunk) error {
		return k.send(msgChunks, delta.Append(head, c))
	})
	if err != nil && k.ctx.Err() == nil && context.Cause(k.ctx) == nil {
		return true // it can no longer be read: what was told may still be of use
	}
	return err == nil
}
