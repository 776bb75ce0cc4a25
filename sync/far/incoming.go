package far

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"time"

	"rentop/sync/codec"
)

// This file takes the messages of large files and hands each to its file's writer.

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
				r.broke(broken("%v", err))
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
	case <-in.r.life.Done():
		return context.Cause(in.r.life)
	}
}
