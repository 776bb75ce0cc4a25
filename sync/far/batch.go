package far

import (
	"bytes"
	"crypto/sha256"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"rentop/sync/codec"
)

// This file unpacks and writes small files, a batch of them at a time.

// batch unpacks many small files and writes them.
func (r *receiver) batch(m frame) {
	size := m.size()
	d := decoder{b: m.body}
	method, n := d.block()
	raw := d.b
	err := d.err
	if err == nil && method != codec.Raw {
		if raw, err = r.codec.Decode(getBuffer(n)[:0], method, d.b, n); err != nil {
			err = broken("%v", err)
		}
		defer putBuffer(raw)
	} else if err == nil && len(raw) != n {
		err = broken("a block of %d bytes that says %d", len(raw), n)
	}
	if err == nil {
		err = r.unpacked(raw)
	}
	m.free()
	r.k.release(size)
	if err != nil {
		r.broke(err)
	}
}

// unpacked writes the files of one batch.
func (r *receiver) unpacked(raw []byte) error {
	d := decoder{b: raw}
	files, want := d.batch(r.named)
	if d.err != nil {
		return d.err
	}
	limits, contents := make([]int64, len(files)), make([][]byte, len(files))
	all := sha256.New()
	for i := range files {
		s := &files[i]
		if limits[i] = s.size; !r.named {
			var ok bool
			if s.path, s.perm, limits[i], ok = r.lookup(s.index); !ok {
				return broken("a file that nobody asked for")
			}
		}
		contents[i] = d.bytes(int(s.size))
		s.sum = sha256.Sum256(contents[i])
		all.Write(s.sum[:])
	}
	if !bytes.Equal(all.Sum(nil), want) {
		for i := range files {
			r.done(files[i].index, source{}, errDiffers)
		}
		return nil
	}
	r.write(files, limits, contents)
	return nil
}

// Where a file takes longer than slowFile, others of its batch are written
// beside it, up to maxBeside at once in all: a disk that must be waited for (fsync, a
// network's file system) is asked for many things at a time, and where nothing
// waits no goroutine is made.
const (
	slowFile  = 150 * time.Microsecond
	maxBeside = 48
)

// write writes files; the slices are of one length.
func (r *receiver) write(files []small, limits []int64, contents [][]byte) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var one func()
	one = func() {
		near := nearby{p: r.p}
		defer near.close()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(files) {
				return
			}
			s := &files[i]
			begun := time.Now()
			err := r.k.ctx.Err()
			switch {
			case err != nil:
				continue // the call is over; nobody hears
			case s.size > limits[i]:
				err = errGrown
			default:
				err = s.put(&near, contents[i])
			}
			if err == nil {
				r.content(s.size)
			}
			r.done(s.index, source{size: s.size, time: s.time, sum: s.sum}, err)
			if time.Since(begun) > slowFile && i+1 < len(files) && r.beside.Load() < maxBeside {
				r.beside.Add(1)
				wg.Go(func() {
					defer r.beside.Add(-1)
					one()
				})
			}
		}
	}
	one()
	wg.Wait()
}

// put gives one whole file its name.
func (s *small) put(near *nearby, content []byte) error {
	p := near.p
	d, err := near.folder(path.Dir(s.path))
	if err != nil {
		return err
	}
	tmp := p.temp()
	f, err := d.create(tmp)
	if err != nil {
		return err
	}
	if len(content) > 0 {
		_, err = f.Write(content)
	}
	if err == nil && s.perm.Perm() != 0o600 {
		err = f.Chmod(s.perm.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = d.times(tmp, s.time)
	}
	if err == nil {
		err = d.move(tmp, path.Base(s.path))
	}
	if err != nil {
		d.remove(tmp)
	} else {
		p.touch(d)
	}
	return err
}
