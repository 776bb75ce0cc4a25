package far

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"sync"
	"time"
)

// This file is a pull: the client asks and receives, the server sends.

// Pull carries out items, as they come, in the folder dst here, which no item
// leaves: files come from root on the instance. As Push otherwise.
func (c *Client) Pull(ctx context.Context, root, dst string, items <-chan Item, o Options) error {
	p, err := openPlace(dst)
	if err != nil {
		return err
	}
	defer p.Close()
	early, err := first(ctx, items)
	if early == nil {
		return err
	}
	return c.do(ctx, svcSend, appendString(nil, root), o.Wire, func(k *call) error {
		f := newFlow(o, early)
		r := newReceiver(k, p, c.codec, c.workers)
		r.lookup = func(index uint32) (string, fs.FileMode, int64, bool) {
			u, ok := f.find(index)
			if !ok || u.it.Op != Send || u.linked {
				return "", 0, 0, false
			}
			e := &u.it.Entry
			return e.Path, e.Mode.Perm(), grown(e.Size), true
		}
		d := &pulling{c: c, k: k, r: r, f: f}
		r.done = func(index uint32, is source, err error) {
			if err != nil {
				d.stop(index, err)
			}
			f.finish(index, &is, err)
		}
		r.content, r.reused, r.kept, r.current = f.o.Content, f.o.Reused, f.o.Kept, f.current
		received := make(chan error, 1)
		go func() {
			err := r.run()
			p.settle()
			k.cancel(cmp.Or(err, errEarly)) // after all that was asked for it ends nothing
			received <- err
		}()
		err := f.run(k, items, d)
		if err == nil {
			err = k.sendEnd(nil)
		}
		if err != nil {
			k.cancel(err)
		}
		if rerr := <-received; err == nil {
			err = rerr
		}
		return k.overBy(err)
	})
}

// grown is how long a file may have become since it was listed: a log may grow,
// and an endless file is cut.
func grown(size int64) int64 { return size + max(size, 64<<20) }

// pulling is a pull's driver.
type pulling struct {
	c *Client
	k *call
	r *receiver
	f *flow

	b     []byte
	front front
	tell  []*incoming // whose parts are told once they are asked for
}

func (p *pulling) op(index uint32, it *Item) error {
	p.f.finish(index, nil, p.r.p.apply(it))
	return nil
}

func (p *pulling) send(index uint32, it *Item) error {
	e := &it.Entry
	w := wanted{index: index, path: e.Source(), size: e.Size}
	if e.Size >= largeFrom || (!it.Fresh || len(it.Basis) > 0) && e.Size >= wholeBelow {
		w.large = true
		in := &incoming{r: p.r, index: index, path: e.Path, perm: e.Mode.Perm(), limit: grown(e.Size)}
		select {
		case p.r.looking <- struct{}{}:
		default: // those before must be on their way
			if err := p.flush(); err != nil {
				return err
			}
			select {
			case p.r.looking <- struct{}{}:
			case <-p.k.ctx.Done():
				return p.k.why()
			}
		}
		if in.look(e.Size, e.ModTime, it.Fresh && len(it.Basis) == 0, it.Basis[:min(len(it.Basis), maxBasis)]); in.have.some() {
			w.have = true
			if err := p.r.expect(in); err != nil {
				in.have.settle(0, true)
				return err
			}
			p.tell = append(p.tell, in)
		} else {
			in.have.settle(0, true)
		}
	}
	if p.b = p.front.appendWanted(p.b, &w); len(p.b) >= goodList || len(p.tell) >= maxAnnounced {
		return p.flush()
	}
	return nil
}

func (p *pulling) flush() error {
	if len(p.b) == 0 {
		return nil
	}
	err := p.k.send(msgWant, packList(p.c.codec, p.b))
	p.b, p.front = p.b[:0], front{}
	for _, in := range p.tell {
		p.r.writers.Go(in.tell)
	}
	p.tell = nil
	return err
}

func (p *pulling) last(func() bool) error { return nil }

// stop tells the server that a file is not wanted any more.
func (p *pulling) stop(index uint32, err error) {
	if err := p.k.send(msgDone, packList(p.c.codec, appendDone(nil, index, err))); err != nil {
		p.k.cancel(err)
	}
}

// send is the server's side of a pull.
func (s *server) send(k *call, root string) error {
	p, err := openPlace(root)
	if err != nil {
		return err
	}
	defer p.Close()
	w := &wishes{more: make(chan struct{}, 1)}
	out := newSender(k, p, s.codec, s.workers)
	out.read = func(uint32, source) {}
	out.failed = func(index uint32, err error) {
		if out.out(index) != nil {
			return // sendLarge tells
		}
		if err := out.fail(index, err); err != nil {
			k.cancel(err)
		}
	}
	out.start()
	heard := make(chan error, 1)
	go func() {
		err := w.hear(s, out)
		if err != nil {
			k.cancel(err)
		}
		heard <- err
	}()
	err = w.feed(out)
	if err != nil {
		k.cancel(err)
	}
	if ferr := out.finish(); err == nil {
		err = ferr
	}
	if err != nil {
		k.cancel(err)
	}
	if herr := <-heard; err == nil {
		err = herr
	}
	return k.overBy(err)
}

// wishes are the files that the client asked for and that were not begun. The
// goroutine that hears never waits for the one that feeds: what it hears next
// may be what that one waits for.
type wishes struct {
	mu    sync.Mutex // protects what follows
	list  []wish
	ended bool
	more  chan struct{}
}

type wish struct {
	wanted
	o *outgoing // nil for a small one
}

func (w *wishes) hear(s *server, out *sender) error {
	for {
		m, err := out.k.recv()
		if err != nil {
			w.mu.Lock()
			w.ended = true
			w.mu.Unlock()
			signal(w.more)
			if err == io.EOF {
				return nil
			}
			return err
		}
		if m.what != msgWant {
			if err := out.answer(m, nil); err != nil {
				return err
			}
		} else if err := w.want(s, out, m); err != nil {
			return err
		}
		out.k.release(m.size())
		m.free()
	}
}

func (w *wishes) want(s *server, out *sender, m frame) error {
	d, err := unpackList(s.codec, m.body)
	if err != nil {
		return err
	}
	for f := (front{}); len(d.b) > 0; {
		x := wish{wanted: f.wanted(d)}
		if d.err != nil {
			return d.err
		}
		if x.large {
			x.o = newOutgoing(announced{index: x.index})
			x.o.from, x.o.wait, x.o.entry.Size = x.path, x.have, x.size
			out.expect(x.o) // what the client has of it may be told before its turn
		}
		w.mu.Lock()
		w.list = append(w.list, x)
		n := len(w.list)
		w.mu.Unlock()
		if n > 2*maxPending {
			return broken("more than %d files asked for at once", 2*maxPending)
		}
	}
	signal(w.more)
	return nil
}

// feed names the files to the sender.
func (w *wishes) feed(out *sender) error {
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		w.mu.Lock()
		list, ended := w.list, w.ended
		w.list = nil
		w.mu.Unlock()
		for i := range list {
			x := &list[i]
			var err error
			if x.o != nil {
				err = out.large(x.o)
			} else {
				err = out.small(smallJob{index: x.index, from: x.path, size: x.size})
			}
			if err != nil {
				return err
			}
		}
		if len(list) > 0 {
			continue
		}
		if ended {
			return nil
		}
		pause.Reset(idle)
		select {
		case <-w.more:
		case <-pause.C:
			if err := out.flush(); err != nil {
				return err
			}
			select {
			case <-w.more:
			case <-out.k.ctx.Done():
				return out.k.why()
			}
		case <-out.k.ctx.Done():
			return out.k.why()
		}
	}
}
