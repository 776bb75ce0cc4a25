package far

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"rentop/sync/codec"
	"rentop/sync/tree"
)

// This file writes one large file: beside its destination, from blocks that come
// and ranges of what is there. A file of partFrom or more keeps its unfinished
// part under a name of its own; the next run compares it block by block, so that no
// length and no journal is trusted.

// incoming is a large file on its way.
type incoming struct {
	r     *receiver
	index uint32
	path  string
	perm  fs.FileMode
	limit int64 // bytes it may have

	pieces chan piece
	begun  bool // the writer runs

	part *os.File // of an earlier run, open for reading; may be nil

	// The writer's own.
	size    int64
	time    time.Time
	dir     *folder
	name    string // while it is written
	f       *os.File
	keeps   bool  // name is found again by the next run
	had     int64 // length of the part that f goes on with
	inPlace bool  // f is part
	at      int64
	sum     hash.Hash
}

// piece is what the writer does next.
type piece struct {
	data *unpacked // a block
	span span      // where data is nil and end is zero
	end  byte      // msgEnd or msgFail, the file's last
	sum  []byte    // with msgEnd
	err  error     // with msgFail
}

// unpacked is a block that a worker unpacks.
type unpacked struct {
	ready chan struct{} // nil: it is
	b     []byte
	free  func()
}

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

func (r *receiver) file(index uint32) *incoming {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files[index]
}

// expect makes room for a file that is announced.
func (r *receiver) expect(in *incoming) error {
	in.r = r
	in.pieces = make(chan piece, 4)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files[in.index] != nil {
		return broken("file %d twice", in.index)
	}
	if len(r.files) > maxLarge {
		return broken("more than %d large files at once", maxLarge)
	}
	r.files[in.index] = in
	return nil
}

// large takes one message of a large file.
func (r *receiver) large(m frame) error {
	d := decoder{b: m.body}
	if m.what == msgAnnounce {
		a := d.announce()
		if err := d.end(); err != nil {
			return err
		}
		if !r.named {
			return broken("an announcement in a pull")
		}
		r.free(m)
		in := &incoming{index: a.index, path: a.entry.Path, perm: a.entry.Mode, limit: 1<<63 - 1}
		if err := r.expect(in); err != nil {
			return err
		}
		in.openPart(a.entry.Size, a.entry.ModTime)
		r.writers.Go(func() { in.tell() })
		return nil
	}
	index := d.index()
	if d.err != nil {
		return d.err
	}
	in := r.file(index)
	if m.what == msgStart {
		size, t := d.size(), d.time()
		if err := d.end(); err != nil {
			return err
		}
		r.free(m)
		if in == nil && !r.named {
			p, perm, limit, ok := r.lookup(index)
			if !ok {
				return broken("a file that nobody asked for")
			}
			in = &incoming{index: index, path: p, perm: perm, limit: limit}
			if err := r.expect(in); err != nil {
				return err
			}
		}
		if in == nil || in.begun {
			return broken("the beginning of file %d, which is not expected", index)
		}
		in.begin(size, t)
		return nil
	}
	if m.what == msgFail && (in == nil || !in.begun) { // nothing of it has come
		err := d.error()
		if derr := d.end(); derr != nil {
			return derr
		}
		r.free(m)
		return r.never(index, in, err)
	}
	if in == nil || !in.begun {
		return broken("content of file %d, which has not begun", index)
	}
	switch m.what {
	case msgData:
		method, n := d.block()
		if d.err != nil {
			return d.err
		}
		u := &unpacked{free: func() { r.free(m) }, b: d.b}
		if method == codec.Raw {
			if len(d.b) != n {
				return broken("a block of %d bytes that says %d", len(d.b), n)
			}
			return in.put(piece{data: u})
		}
		u.ready = make(chan struct{})
		packed := d.b
		if err := in.put(piece{data: u}); err != nil {
			return err
		}
		err := r.do(func() {
			defer close(u.ready)
			b, err := r.codec.Decode(getBuffer(n)[:0], method, packed, n)
			r.free(m)
			u.b, u.free = b, func() { putBuffer(b) }
			if err != nil {
				u.b = nil
				r.k.cancel(broken("%v", err))
			}
		})
		if err != nil {
			u.b, u.free = nil, func() {}
			close(u.ready)
		}
		return err
	case msgCopy:
		s := d.span()
		if err := d.end(); err != nil {
			return err
		}
		r.free(m)
		return in.put(piece{span: s})
	case msgEnd:
		sum := append([]byte(nil), d.bytes(sha256.Size)...)
		if err := d.end(); err != nil {
			return err
		}
		r.free(m)
		return r.last(in, piece{end: msgEnd, sum: sum})
	}
	err := d.error()
	if derr := d.end(); derr != nil {
		return derr
	}
	r.free(m)
	return r.last(in, piece{end: msgFail, err: err})
}

// last gives the writer its last piece.
func (r *receiver) last(in *incoming, p piece) error {
	if err := in.put(p); err != nil {
		return err
	}
	r.forget(in)
	return nil
}

func (r *receiver) forget(in *incoming) {
	r.mu.Lock()
	delete(r.files, in.index)
	r.mu.Unlock()
}

// never is a file of which nothing comes.
func (r *receiver) never(index uint32, in *incoming, err error) error {
	if in != nil {
		r.forget(in)
		in.abandon()
	} else if r.named {
		return broken("the failure of file %d, which is not expected", index)
	}
	if !r.named { // in a push the sender knows for itself
		if _, _, _, ok := r.lookup(index); !ok {
			return broken("the failure of a file that nobody asked for")
		}
		if err == nil {
			err = errChanged
		}
		r.done(index, source{}, err)
	}
	return nil
}

// abandon ends a file whose writer has not begun, or lets the writer see that no more comes.
func (in *incoming) abandon() {
	if in.begun {
		close(in.pieces)
	} else if in.part != nil {
		in.part.Close()
	}
}

func (in *incoming) put(p piece) error {
	select {
	case in.pieces <- p:
		return nil
	case <-in.r.k.ctx.Done():
		return in.r.k.why()
	}
}

// openPart opens what an earlier run left of the file.
func (in *incoming) openPart(size int64, t time.Time) bool {
	if size < partFrom {
		return false
	}
	dir, base := path.Split(PartName(in.path, size, t))
	d, err := in.r.p.folder(path.Clean(dir))
	if err != nil {
		return false // told when the file begins
	}
	defer d.put()
	f, err := d.read(base)
	if err != nil {
		return false
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() < partBlock {
		f.Close()
		return false
	}
	in.part = f
	return true
}

// tell says what there is of the file: the sums of its part's blocks.
func (in *incoming) tell() {
	k := in.r.k
	select {
	case in.r.haves <- struct{}{}:
		defer func() { <-in.r.haves }()
	case <-k.ctx.Done():
		return
	}
	part := in.part
	length := int64(0)
	if part != nil {
		if fi, err := part.Stat(); err == nil {
			length = fi.Size() / partBlock * partBlock
		}
	}
	index := binary.AppendUvarint(nil, uint64(in.index))
	if err := k.send(msgHave, binary.AppendUvarint(index[:len(index):len(index)], uint64(length))); err != nil || length == 0 {
		return
	}
	buf := getBuffer(partBlock)
	defer putBuffer(buf)
	b := append(index[:len(index):len(index)], 0)
	for off := int64(0); off < length && k.ctx.Err() == nil; off += partBlock {
		if n, err := part.ReadAt(buf, off); n < len(buf) && err != nil {
			break // closed, since the file has ended, or shorter by now
		}
		if b = binary.LittleEndian.AppendUint64(b, xxh3.Hash(buf)); len(b) >= 16<<10 {
			if k.send(msgSums, b) != nil {
				return
			}
			b = append(index[:len(index):len(index)], 0)
		}
	}
	b[len(index)] = 1
	k.send(msgSums, b)
}

// begin starts the writer.
func (in *incoming) begin(size int64, t time.Time) {
	in.begun = true
	in.size, in.time = size, t
	in.sum = sha256.New()
	in.r.writers.Go(in.write)
}

// write does pieces until the file's last.
func (in *incoming) write() {
	defer func() {
		in.drop(!in.keeps) // cut: the next run goes on with the part
		if in.part != nil {
			in.part.Close()
		}
		if in.dir != nil {
			in.dir.put()
		}
	}()
	in.r.current(in.index)
	err := in.open()
	told := false
	for p := range in.pieces {
		if p.data != nil && p.data.ready != nil {
			<-p.data.ready
		}
		if err == nil && in.r.k.ctx.Err() == nil {
			err = in.piece(p)
		}
		if p.data != nil {
			p.data.free()
		}
		if err != nil && !told { // the sender may stop
			told = true
			in.drop(true)
			in.r.done(in.index, source{}, err)
		}
		if p.end != 0 {
			if p.end == msgFail && !told {
				in.failed(p.err)
			}
			return
		}
	}
}

// failed is the sender's giving up.
func (in *incoming) failed(err error) {
	if err == nil {
		err = errChanged
	}
	in.drop(!in.keeps || classify(err).Class == Changed)
	if !in.r.named {
		in.r.done(in.index, source{}, err)
	}
}

// drop closes the file, and removes it where it is of no use.
func (in *incoming) drop(remove bool) {
	if in.f != nil {
		in.f.Close()
		if remove {
			in.dir.remove(in.name)
		}
		in.f = nil
	}
}

// open makes the file in which the content is gathered, or goes on with the part.
func (in *incoming) open() error {
	if in.size > in.limit {
		return &Error{Class: Changed, Text: "is much larger by now than it was when listed", Here: true}
	}
	dir, _ := path.Split(in.path)
	d, err := in.r.p.folder(path.Clean(dir))
	if err != nil {
		return err
	}
	in.dir = d
	if in.size >= partFrom {
		in.name = path.Base(PartName(in.path, in.size, in.time))
		f, held, err := d.part(in.name)
		if err == nil && !held {
			fi, serr := f.Stat()
			if serr == nil && fi.Mode().IsRegular() {
				in.f, in.keeps, in.had = f, true, fi.Size()
				if in.part != nil {
					if pfi, err := in.part.Stat(); err == nil {
						in.inPlace = os.SameFile(fi, pfi)
					}
				}
				return nil
			}
			f.Close()
		}
		if errors.Is(err, fs.ErrPermission) || classify(errOr(err, io.EOF)).Class == Full {
			return err
		}
	}
	in.name = in.r.p.temp()
	in.f, err = d.create(in.name)
	return err
}

func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (in *incoming) piece(p piece) error {
	switch {
	case p.data != nil:
		if in.at+int64(len(p.data.b)) > in.size {
			return in.broke("file %d is longer than it was announced", in.index)
		}
		return in.append(p.data.b)
	case p.end == msgEnd:
		return in.finish(p.sum)
	case p.end == 0:
		return in.copy(p.span)
	}
	return nil
}

// broke ends the call: the sender does not keep to the protocol.
func (in *incoming) broke(format string, args ...any) error {
	err := broken(format, args...)
	in.r.k.cancel(err)
	return err
}

// append writes b at the end of what there is.
func (in *incoming) append(b []byte) error {
	in.sum.Write(b)
	off := in.at
	in.at += int64(len(b))
	in.r.content(int64(len(b)))
	for len(b) > 0 {
		zero := 0
		if off >= in.had { // beyond the part all is a hole already
			zero = zeros(b)
		}
		if zero == 0 {
			n := len(b)
			if off >= in.had {
				n = untilZeros(b)
			}
			if _, err := in.f.WriteAt(b[:n], off); err != nil {
				return err
			}
			zero = n
		}
		b = b[zero:]
		off += int64(zero)
	}
	return nil
}

// copy takes a range of what is there.
func (in *incoming) copy(s span) error {
	switch {
	case s.basis != 0 || in.part == nil:
		return in.broke("a range of something that file %d does not have", in.index)
	case s.off != in.at:
		return in.broke("a range of the part of file %d that is out of place", in.index)
	case s.len > in.size-in.at:
		return in.broke("file %d is longer than it was announced", in.index)
	}
	buf := getBuffer(int(min(s.len, 1<<20)))
	defer putBuffer(buf)
	for left := s.len; left > 0 && in.r.k.ctx.Err() == nil; {
		n := int(min(left, int64(len(buf))))
		if _, err := in.part.ReadAt(buf[:n], in.at); err != nil {
			return errDiffers // it was longer when it was read for its sums
		}
		if in.inPlace {
			in.sum.Write(buf[:n])
			in.at += int64(n)
			in.r.content(int64(n))
		} else if err := in.append(buf[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// finish compares the sum and gives the file its name.
func (in *incoming) finish(want []byte) error {
	if in.at != in.size {
		return in.broke("file %d is shorter than it was announced", in.index)
	}
	is := source{size: in.size, time: in.time}
	if in.sum.Sum(is.sum[:0]); string(is.sum[:]) != string(want) {
		return errDiffers
	}
	err := in.f.Truncate(in.size) // holes at the end, or a longer part
	if err == nil {
		err = in.f.Chmod(in.perm.Perm())
	}
	if err == nil {
		err = in.f.Sync()
	}
	if cerr := in.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = in.dir.times(in.name, in.time)
	}
	if err == nil {
		err = in.dir.move(in.name, path.Base(in.path))
	}
	if err != nil {
		in.dir.remove(in.name)
	}
	in.f = nil
	if err == nil {
		in.r.done(in.index, is, nil)
	}
	return err
}

// hole is the shortest run of zeros that is left out.
const hole = 32 << 10

var zeroBlock [hole]byte

// zeros is the length of b's beginning that is zeros, in whole holes.
func zeros(b []byte) int {
	n := 0
	for len(b)-n >= hole && string(b[n:n+hole]) == string(zeroBlock[:]) {
		n += hole
	}
	return n
}

// untilZeros is the length of b before the first hole, at a multiple of hole.
func untilZeros(b []byte) int {
	for n := hole; n < len(b); n += hole {
		if zeros(b[n:min(len(b), n+hole)]) > 0 {
			return n
		}
	}
	return len(b)
}
