package far

import (
	"os"
	"path"
	"time"
)

// This file is the writer of one large file, which has a goroutine of its own. It
// writes beside the destination, from blocks that come and ranges of what is there. A
// file of partFrom or more keeps its unfinished part under a name of its own; the next
// run compares it block by block, so that no length and no journal is trusted.

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
		if err == nil && in.r.life.Err() == nil {
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
		return errGrown
	}
	d, err := in.r.p.folder(path.Dir(in.path))
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
		if err != nil {
			if c := classify(err).Class; c == Denied || c == Full {
				return err
			}
		}
	}
	in.name = in.r.p.temp()
	in.f, err = d.create(in.name)
	return err
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
	in.r.broke(err)
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
	for n > 0 && in.r.life.Err() == nil {
		b := getBuffer(int(min(n, 1<<20)))
		free := func() { putBuffer(b) }
		if _, err := f.ReadAt(b, off); err != nil {
			return errDiffers // it was longer when its sums were told
		}
		off += int64(len(b))
		n -= int64(len(b))
		in.r.reused(int64(len(b)))
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
		in.r.p.touch(in.dir)
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
