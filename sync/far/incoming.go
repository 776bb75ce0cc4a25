package far

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"rentop/sync/codec"
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

	have bases // what there is to make it from

	// The writer's own.
	size    int64
	time    time.Time
	dir     *folder
	name    string // while it is written
	f       *os.File
	keeps   bool  // name is found again by the next run
	had     int64 // length of the part that f goes on with
	inPlace bool  // f is the part
	at      int64
	hash    *hasher
	useless bool // what an earlier run left is of no use to a later one
}

// piece is what the writer does next.
type piece struct {
	data  *unpacked // a block
	steps bool      // data is steps, not content
	span  span      // where data is nil and end is zero
	end   byte      // msgEnd or msgFail, the file's last
	sum   []byte    // with msgEnd
	err   error     // with msgFail
	taken bool      // data is given back by the hasher
}

// unpacked is a block that a worker unpacks.
type unpacked struct {
	ready chan struct{} // nil: it is
	b     []byte
	free  func()
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
		in := &incoming{r: r, index: a.index, path: a.entry.Path, perm: a.entry.Mode, limit: 1<<63 - 1}
		if err := r.expect(in); err != nil {
			return err
		}
		select {
		case r.looking <- struct{}{}:
			in.look(a.entry.Size, a.entry.ModTime, a.fresh, a.basis)
		default: // more than an honest sender announces: it is sent whole
		}
		r.writers.Go(in.tell)
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
		if r.begun++; r.begun > maxBegun {
			return broken("more than %d large files at once", maxBegun)
		}
		select {
		case r.writing <- struct{}{}:
			in.begin(size, t)
			return nil
		case <-r.k.ctx.Done():
			return r.k.why()
		}
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
	case msgData, msgSteps:
		method, n := d.block()
		if d.err != nil {
			return d.err
		}
		u := &unpacked{free: func() { r.free(m) }, b: d.b}
		if method == codec.Raw {
			if len(d.b) != n {
				return broken("a block of %d bytes that says %d", len(d.b), n)
			}
			return in.put(piece{data: u, steps: m.what == msgSteps})
		}
		u.ready = make(chan struct{})
		packed := d.b
		if err := in.put(piece{data: u, steps: m.what == msgSteps}); err != nil {
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
	r.begun--
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
	} else {
		in.have.settle(0, true)
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

// begin starts the writer.
func (in *incoming) begin(size int64, t time.Time) {
	in.begun = true
	in.size, in.time = size, t
	in.r.writers.Go(in.write)
}

// write does pieces until the file's last.
func (in *incoming) write() {
	defer func() {
		in.drop(!in.keeps) // cut: the next run goes on with the part
		in.hash.sum()
		in.have.settle(in.at, !in.useless)
		<-in.r.writing
		if in.dir != nil {
			in.dir.put()
		}
	}()
	in.r.current(in.index)
	in.hash = newHasher()
	err := in.open()
	told := false
	for p := range in.pieces {
		if p.data != nil && p.data.ready != nil {
			<-p.data.ready
		}
		if err == nil && in.r.k.ctx.Err() == nil {
			err = in.piece(&p)
		}
		if p.data != nil && !p.taken {
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
	if in.f == nil {
		return
	}
	in.f.Close()
	in.f = nil
	if remove {
		in.dir.remove(in.name)
		in.useless = true
		return
	}
	in.r.kept(in.at)
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
				if in.have.part != nil {
					if pfi, err := in.have.part.Stat(); err == nil {
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

func (in *incoming) piece(p *piece) error {
	switch {
	case p.data != nil && p.steps:
		return eachStep(p.data.b, in.step)
	case p.data != nil:
		free := shared(2, p.data.free)
		p.taken = true
		defer free()
		return in.append(p.data.b, free)
	case p.end == msgEnd:
		return in.finish(p.sum)
	case p.end == 0:
		return in.keep(p.span)
	}
	return nil
}

// broke ends the call: the sender does not keep to the protocol.
func (in *incoming) broke(format string, args ...any) error {
	err := broken(format, args...)
	in.r.k.cancel(err)
	return err
}

// append writes b at the end of what there is; free is called once b was hashed.
func (in *incoming) append(b []byte, free func()) error {
	if int64(len(b)) > in.size-in.at {
		free()
		return in.broke("file %d is longer than it was announced", in.index)
	}
	in.hash.add(b, free)
	off := in.at
	in.at += int64(len(b))
	in.r.content(int64(len(b)))
	for len(b) > 0 {
		n := len(b)
		if off >= in.had { // beyond the part all is a hole already
			if z := zeros(b); z > 0 {
				b = b[z:]
				off += int64(z)
				continue
			}
			n = untilZeros(b)
		}
		if _, err := in.f.WriteAt(b[:n], off); err != nil {
			return err
		}
		b = b[n:]
		off += int64(n)
	}
	return nil
}

// keep takes a range of the part that lies where it belongs.
func (in *incoming) keep(s span) error {
	if in.have.part == nil {
		return in.broke("a range of a part that file %d does not have", in.index)
	}
	if s.off != in.at {
		return in.broke("a range of the part of file %d that is out of place", in.index)
	}
	return in.run(in.have.part, s.off, s.len, in.inPlace)
}

// step does one step of a file that is made from others.
func (in *incoming) step(s step, literal []byte) error {
	if s.basis == 0 {
		b := getBuffer(len(literal))
		copy(b, literal)
		both := shared(2, func() { putBuffer(b) })
		defer both()
		return in.append(b, both)
	}
	if s.basis > len(in.have.files) {
		return in.broke("a range of a basis that file %d does not have", in.index)
	}
	return in.run(in.have.files[s.basis-1], s.off, s.len, false)
}

// run takes n bytes at off of f, which are written unless they are in place.
func (in *incoming) run(f *os.File, off, n int64, inPlace bool) error {
	if n > in.size-in.at {
		return in.broke("file %d is longer than it was announced", in.index)
	}
	for n > 0 && in.r.k.ctx.Err() == nil {
		b := getBuffer(int(min(n, 1<<20)))
		free := func() { putBuffer(b) }
		if _, err := f.ReadAt(b, off); err != nil {
			return errDiffers // it was longer when its sums were told
		}
		off += int64(len(b))
		n -= int64(len(b))
		if inPlace {
			in.at += int64(len(b))
			in.r.content(int64(len(b)))
			in.hash.add(b, free)
			continue
		}
		both := shared(2, free)
		err := in.append(b, both)
		both()
		if err != nil {
			return err
		}
	}
	return nil
}

// finish compares the sum and gives the file its name.
func (in *incoming) finish(want []byte) error {
	if in.at != in.size {
		return in.broke("file %d is shorter than it was announced", in.index)
	}
	is := source{size: in.size, time: in.time, sum: in.hash.sum()}
	if string(is.sum[:]) != string(want) {
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
	in.have.close() // Windows replaces no open file
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
		in.useless = true // what there was of it
		in.have.settle(in.at, false)
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
