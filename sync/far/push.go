package far

import (
	"cmp"
	"context"
	"encoding/binary"
	"io"

	"rentop/sync/delta"
	"rentop/sync/tree"
)

// This file is a push: the client sends, the server receives.

// Push carries out items, as they come, under root on the instance, until items
// is closed: files come from the folder src here. What fails for one item is told
// to Done and the rest goes on; the error is for what ended the whole.
func (c *Client) Push(ctx context.Context, src, root string, items <-chan Item, o Options) error {
	p, err := openPlace(src)
	if err != nil {
		return err
	}
	defer p.Close()
	early, err := first(ctx, items)
	if early == nil {
		return err
	}
	return c.do(ctx, svcReceive, appendString(nil, root), o.Wire, func(k *call) error {
		f := newFlow(o, early)
		s := newSender(k, p, c.codec, c.workers)
		s.named = true
		s.read = f.readAs
		s.failed = func(index uint32, err error) { f.finish(index, nil, err) }
		s.content, s.reading, s.reused, s.kept, s.current = f.o.Content, f.o.Reading, f.o.Reused, f.o.Kept, f.current
		s.start()
		answered := make(chan error, 1)
		go func() {
			err := s.answers(f)
			if err == io.EOF {
				err = nil
			}
			if err != nil || !f.over() {
				k.cancel(cmp.Or(err, errEarly)) // after all was answered it ends nothing
			}
			answered <- err
		}()
		counted := make(chan struct{})
		go func() { defer close(counted); s.counting() }()
		err := f.run(k, items, pushing{s})
		if err != nil {
			k.cancel(err)
		}
		if ferr := s.finish(); err == nil {
			err = ferr
		}
		if err == nil {
			err = k.sendEnd(nil)
		}
		if err != nil {
			k.cancel(err)
		}
		if aerr := <-answered; err == nil {
			err = aerr
		}
		if err = k.overBy(err); err == nil {
			s.count(k.sentSoFar())
		}
		k.cancel(errEarly)
		<-counted
		return err
	})
}

// pushing is a push's driver.
type pushing struct{ s *sender }

func (p pushing) op(index uint32, it *Item) error { return p.s.item(index, it) }
func (p pushing) flush() error                    { return p.s.flushAll() }

// last lets the receiver end with the last of its answers, which saves a round
// trip; not where a large file is still on its way, or anything was tried again.
func (p pushing) last(still func() bool) error {
	return p.s.put(&ticket{what: msgLast, parts: [][]byte{nil}, when: func() bool {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		return len(p.s.outs) == 0 && still()
	}})
}

func (p pushing) send(index uint32, it *Item) error {
	e := &it.Entry
	basis := !it.Fresh || len(it.Basis) > 0
	if e.Size < largeFrom && !(basis && e.Size >= wholeBelow) {
		return p.s.small(smallJob{index: index, from: e.Source(), path: e.Path, perm: e.Mode.Perm(), size: e.Size})
	}
	var hints []string
	for _, b := range it.Basis {
		if tree.CheckPath(b) == nil && len(hints) < maxBasis {
			hints = append(hints, b)
		}
	}
	a := announced{index: index, entry: tree.Entry{Path: e.Path, Mode: e.Mode.Perm(), Size: e.Size, ModTime: e.ModTime}, fresh: !basis, basis: hints}
	o := newOutgoing(a)
	o.from = e.Source()
	o.wait = basis || e.Size >= partFrom
	return p.s.large(o)
}

// answers reads what the receiver says, until its end; f is nil where the
// receiver keeps the account itself.
func (s *sender) answers(f *flow) error {
	for {
		m, err := s.k.recv()
		if err != nil {
			return err
		}
		if err := s.answer(m, f); err != nil {
			return err
		}
		s.k.release(m.size())
		m.free()
	}
}

func (s *sender) answer(m frame, f *flow) error {
	switch m.what {
	case msgDone:
		d, err := unpackList(s.codec, m.body)
		if err != nil {
			return err
		}
		for len(d.b) > 0 {
			index := d.index()
			derr := d.error()
			if d.err != nil {
				return d.err
			}
			if o := s.out(index); o != nil && derr != nil {
				o.stop.Store(true)
				signal(o.heard)
			}
			if f != nil && !f.finish(index, nil, derr) {
				return broken("an answer for item %d, which is not on its way", index)
			}
		}
		return nil
	case msgHave:
		d := decoder{b: m.body}
		o := s.out(d.index())
		part, bases := d.size(), d.length(maxBasis+1)
		if err := d.end(); err != nil {
			return err
		}
		if o == nil {
			return nil
		}
		twice := false
		o.hear(func(h *have) {
			if twice = h.known; !twice {
				h.known, h.part, h.bases = true, part, bases
			}
		})
		if twice {
			return broken("it said twice what it has of file %d", o.index)
		}
		return nil
	case msgSums, msgChunks:
		return s.signature(m)
	}
	return broken("a message of kind %d from the receiver", m.what)
}

// signature takes some of what the receiver says of what it has.
func (s *sender) signature(m frame) error {
	d := decoder{b: m.body}
	o := s.out(d.index())
	last := d.byte() == 1
	basis := 0
	if m.what == msgChunks {
		basis = d.length(maxBasis + 1)
	}
	if d.err != nil {
		return d.err
	}
	var chunks []delta.Chunk
	if m.what == msgChunks && len(d.b) > 0 {
		var err error
		if chunks, err = delta.Decode(nil, d.b); err != nil {
			return broken("%v", err)
		}
	}
	if o == nil {
		return nil
	}
	var bad error
	o.hear(func(h *have) {
		h.ended = h.ended || last
		if m.what == msgChunks {
			if len(chunks) > 0 && (basis < 1 || basis > h.bases) {
				bad = broken("a signature of basis %d of %d", basis, h.bases)
				return
			}
			if h.taken += len(chunks); h.taken > delta.MaxChunks {
				return // more than an index takes
			}
			h.chunks = append(h.chunks, signedChunk{basis, chunks})
			for _, c := range chunks {
				h.signed += int64(c.Len)
			}
			return
		}
		if len(d.b)%8 != 0 || int64(len(h.sums)+len(d.b)/8) > h.part/partBlock {
			bad = broken("sums that a part does not have")
			return
		}
		for len(d.b) > 0 {
			h.sums = append(h.sums, binary.LittleEndian.Uint64(d.b))
			d.b = d.b[8:]
		}
	})
	return bad
}

// receive is the server's side of a push.
func (s *server) receive(k *call, root string) error {
	p, err := openPlace(root)
	if err != nil {
		return err
	}
	defer p.Close()
	list := newDoneList(k, s.codec)
	list.settle = p.settle
	r := newReceiver(k, p, s.codec, s.workers)
	r.named = true
	r.done = func(index uint32, _ source, err error) {
		if err != nil {
			r.failed.Store(true)
		}
		list.add(index, err)
	}
	told := make(chan error, 1)
	go func() {
		err := list.run()
		if err != nil {
			k.cancel(err)
		}
		told <- err
	}()
	err = r.run()
	list.end()
	if terr := <-told; err == nil {
		err = terr
	}
	return k.overBy(err)
}
