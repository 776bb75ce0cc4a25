package far

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"rentop/sync/tree"
)

// This file is the client's account of a transfer: what is on its way, what is
// tried again, and what must wait for the rest.

// Options of a Push or Pull. Any function may be nil.
type Options struct {
	// Done hears of each item once, from one goroutine at a time: with nil and, for
	// a Send, the size, time and SHA-256 that arrived; or with the reason. A hard
	// link that was made as one has no SHA-256 of its own.
	Done    func(Item, error)
	Content func(n int64)     // bytes of files, as they have come there or are written here
	Reused  func(n int64)     // of these, what the destination had
	Wire    func(n int64)     // bytes of messages
	Current func(path string) // a large file's turn, or a batch's first
	Kept    func(n int64)     // of a large file that was cut: bytes that the next run finds there
	Reading func(n int64)     // bytes of files, as a push reads them here
	Retry   bool              // what changed while it was read is sent once more
}

// flow is the account.
type flow struct {
	o     Options
	first *Item // comes before what run is given

	mu      sync.Mutex // protects what follows
	last    uint32
	pending map[uint32]*underway
	again   []*underway
	settled chan struct{} // signals changes
	retries int           // so far
	asked   bool          // nothing follows but what is tried again

	telling sync.Mutex // held while Done is called
}

// underway is one item on its way.
type underway struct {
	it     Item
	is     source
	read   bool // is holds what was read
	linked bool // tried as a hard link
	tries  int
}

// driver is what a push and a pull do differently.
type driver interface {
	op(index uint32, it *Item) error   // not a Send
	send(index uint32, it *Item) error // a Send
	flush() error                      // what was gathered leaves
	// last is called when nothing follows unless something fails; still says, later,
	// whether nothing was tried again since.
	last(still func() bool) error
}

// first waits for an item: where none comes there is no call to make, nor its round
// trip. It is nil where items ended without one.
func first(ctx context.Context, items <-chan Item) (*Item, error) {
	select {
	case it, ok := <-items:
		if !ok {
			return nil, context.Cause(ctx) // whoever gave up may have ended items too
		}
		return &it, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func newFlow(o Options, first *Item) *flow {
	nobody := func(int64) {}
	for _, hears := range []*func(int64){&o.Content, &o.Reused, &o.Kept, &o.Reading, &o.Wire} {
		if *hears == nil {
			*hears = nobody
		}
	}
	if o.Current == nil {
		o.Current = func(string) {}
	}
	if o.Done == nil {
		o.Done = func(Item, error) {}
	}
	return &flow{o: o, first: first, pending: map[uint32]*underway{}, settled: make(chan struct{}, 1)}
}

// idle is how long nothing may follow before what was gathered is sent.
const idle = 3 * time.Millisecond

// run feeds d with what comes until in is closed and all is settled.
func (f *flow) run(k *call, in <-chan Item, d driver) error {
	var links, narrow []Item // wait for the rest
	gathered := true         // something may wait to be flushed
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		n, again := f.state()
		for _, u := range again {
			gathered = true
			if err := f.begin(u, d); err != nil {
				return err
			}
		}
		next := in
		if n >= maxPending {
			next = nil
		}
		var it Item
		ok, got := true, false
		if f.first != nil {
			it, got, f.first = *f.first, true, nil
		} else {
			select {
			case it, ok = <-next:
				got = true
			default:
			}
		}
		if !got {
			var timeout <-chan time.Time
			switch {
			case in == nil && gathered:
				pause.Reset(0)
				timeout = pause.C
			case gathered || n == 0 && len(links)+len(narrow) > 0:
				pause.Reset(idle)
				timeout = pause.C
			case n == 0 && in == nil:
				return nil
			}
			select {
			case it, ok = <-next:
				got = true
			case <-f.settled:
				continue
			case <-timeout:
				if gathered {
					gathered = false
					if err := d.flush(); err != nil {
						return err
					}
					if in == nil && len(links)+len(narrow) == 0 {
						if err := d.last(f.ask()); err != nil {
							return err
						}
					}
					continue
				}
				// all else is done, and nothing follows for now
				gathered = true
				for _, it := range links {
					if err := f.begin(&underway{it: it, linked: true}, d); err != nil {
						return err
					}
				}
				if len(links) == 0 {
					for i := range narrow { // the deepest first
						if err := f.begin(&underway{it: narrow[len(narrow)-1-i]}, d); err != nil {
							return err
						}
					}
					narrow = nil
				}
				links = nil
				continue
			case <-k.ctx.Done():
				if f.over() {
					return nil
				}
				return k.why()
			}
		}
		switch {
		case !ok:
			in = nil
		case it.Op == Send && it.Entry.Link != "":
			links = append(links, it)
		case it.Op == Attr && it.Entry.Mode.IsDir() && it.Entry.Mode.Perm()&0o700 != 0o700:
			narrow = append(narrow, it)
		default:
			gathered = true
			if err := f.begin(&underway{it: it}, d); err != nil {
				return err
			}
		}
	}
}

// ask notes that nothing follows; the result says whether that still holds.
func (f *flow) ask() (still func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = true
	n := f.retries
	if len(f.again) > 0 {
		n = -1
	}
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.retries == n
	}
}

// over says whether all is settled and nothing follows.
func (f *flow) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked && len(f.pending)+len(f.again) == 0
}

// state is how much is on its way, and what is to be tried again.
func (f *flow) state() (int, []*underway) {
	f.mu.Lock()
	defer f.mu.Unlock()
	again := f.again
	f.again = nil
	return len(f.pending), again
}

func (f *flow) begin(u *underway, d driver) error {
	f.mu.Lock()
	f.last++
	index := f.last
	f.pending[index] = u
	f.mu.Unlock()
	if err := checkItem(&u.it); err != nil {
		f.finish(index, nil, err)
		return nil
	}
	switch {
	case u.linked:
		it := u.it
		it.Op = hardLink
		return d.op(index, &it)
	case u.it.Op == Send:
		return d.send(index, &u.it)
	}
	return d.op(index, &u.it)
}

// checkItem refuses what the other side would take for a broken protocol.
func checkItem(it *Item) error {
	e := &it.Entry
	if err := tree.CheckPath(e.Path); err != nil {
		return err
	}
	if it.Op == Move {
		return tree.CheckPath(it.To)
	}
	if max(len(e.Target), len(e.From), len(e.Link)) > tree.MaxPath {
		return errors.New("name too long")
	}
	if e.From != "" {
		return tree.CheckPath(e.From)
	}
	return nil
}

// find is an item on its way.
func (f *flow) find(index uint32) (*underway, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u, ok := f.pending[index]
	return u, ok
}

// readAs notes what was read of a file.
func (f *flow) readAs(index uint32, is source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.pending[index]; u != nil {
		u.is, u.read = is, true
	}
}

// finish settles an item; false where none has this index.
func (f *flow) finish(index uint32, is *source, err error) bool {
	f.mu.Lock()
	u := f.pending[index]
	if u == nil || err == nil && is == nil && u.it.Op == Send && !u.linked && !u.read {
		f.mu.Unlock()
		return false
	}
	delete(f.pending, index)
	if is != nil {
		u.is = *is
	}
	retry := false
	if err != nil {
		switch c := classify(err).Class; {
		case u.linked: // sent, then
			u.linked, retry = false, true
			u.it.Entry.Link = ""
		case f.o.Retry && u.tries == 0 && (c == Changed || c == Differs):
			u.tries++
			u.read, retry = false, true
			if c == Differs { // what it was made from may have changed meanwhile
				u.it.Fresh, u.it.Basis = true, nil
			}
		}
	}
	if retry {
		f.retries++
		f.again = append(f.again, u)
	}
	f.mu.Unlock()
	if !retry {
		it := u.it
		if err == nil && it.Op == Send && !u.linked {
			it.Entry.Size, it.Entry.ModTime, it.Entry.SHA256 = u.is.size, u.is.time, hex.EncodeToString(u.is.sum[:])
		}
		f.telling.Lock()
		f.o.Done(it, err)
		f.telling.Unlock()
	}
	signal(f.settled)
	return true
}

// current shows what is under way.
func (f *flow) current(index uint32) {
	path := ""
	if u, ok := f.find(index); ok {
		path = u.it.Entry.Path
	}
	f.o.Current(path)
}

// overBy is the reason for which a call ended, rather than what followed from it.
func (k *call) overBy(err error) error {
	if err != nil && k.ctx.Err() != nil {
		return k.why()
	}
	return err
}
