package far

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"sync"
	"time"

	"rentop/sync/codec"
)

// This file is the pump that sends content: the client's in a push, the
// server's in a pull. Who feeds it names files in an order; small ones are read,
// hashed and packed a batch at a time by several workers and leave in that order,
// large ones leave beside them, block by block.

// sender sends files of p over k.
type sender struct {
	k       *call
	p       *place
	codec   *codec.Codec
	gov     *codec.Governor
	workers int
	named   bool // a push: messages carry names

	// What the owner hears, from several goroutines.
	content func(n int64)                 // bytes of files have come to the receiver
	reused  func(n int64)                 // of these, that it had
	reading func(n int64)                 // bytes of files were read here
	read    func(index uint32, is source) // a file was read whole and is about to leave
	failed  func(index uint32, err error) // a file cannot be read; it does not come
	current func(index uint32)            // a large file's turn, or a batch's first
	kept    func(n int64)                 // of a large file that was cut: what the receiver has

	work  chan func()
	order chan *ticket
	ahead chan struct{} // a token for each large file that is announced

	items  []byte // msgItems to be, before what follows
	itemsF front
	group  []smallJob
	held   int64 // bytes in group, as listed
	level  codec.Level
	limit  int64 // bytes of a group
	pace   pace
	tally  tally

	mu    sync.Mutex // protects what follows
	turns []*outgoing
	more  chan struct{} // signals turns
	outs  map[uint32]*outgoing
	ended bool // no more turns will come

	pumps   sync.WaitGroup
	packers sync.WaitGroup // needed until the pumps have ended
}

// source is a file as it was read.
type source struct {
	size int64
	time time.Time
	sum  [sha256.Size]byte
}

// smallJob is one file of a group.
type smallJob struct {
	index uint32
	from  string // under the sender's root
	path  string // under the receiver's
	perm  fs.FileMode
	size  int64 // as listed
}

// ticket is a place in the order of messages.
type ticket struct {
	ready  chan struct{} // closed once parts are there; nil: they are
	what   byte
	parts  [][]byte
	upTo   int64       // of a large file: how far it reaches
	raw    int64       // of small files: their content
	reused int64       // of a large file: what the receiver has
	after  func()      // called once it was sent
	when   func() bool // asked before it is sent; nil: it is
}

func newSender(k *call, p *place, c *codec.Codec, n int) *sender {
	s := &sender{k: k, p: p, codec: c, gov: codec.NewGovernor(n), workers: n,
		work: make(chan func()), order: make(chan *ticket, 2*n), ahead: make(chan struct{}, maxAnnounced), more: make(chan struct{}, 1), outs: map[uint32]*outgoing{}}
	s.content = func(int64) {}
	s.reused = func(int64) {}
	s.reading = func(int64) {}
	s.current = func(uint32) {}
	s.kept = func(int64) {}
	s.next()
	return s
}

// start runs the workers; stop waits for them. After an error of the link or the
// call's end all of them end.
func (s *sender) start() {
	for range s.workers {
		s.packers.Go(func() {
			for {
				select {
				case do, ok := <-s.work:
					if !ok {
						return
					}
					do()
				case <-s.k.ctx.Done():
					return
				}
			}
		})
	}
	s.pumps.Go(s.emit)
	s.pumps.Go(s.largeOnes)
}

// emit sends tickets in their order.
func (s *sender) emit() {
	for {
		var t *ticket
		var ok bool
		select {
		case t, ok = <-s.order:
		case <-s.k.ctx.Done():
			return
		}
		if !ok {
			s.endTurns()
			return
		}
		if t.ready != nil {
			select {
			case <-t.ready:
			case <-s.k.ctx.Done():
				return
			}
		}
		if len(t.parts) > 0 && (t.when == nil || t.when()) {
			if err := s.k.send(t.what, t.parts...); err != nil {
				s.k.cancel(err)
				return
			}
			s.left(t.raw, 0)
		}
		if t.after != nil {
			t.after()
		}
	}
}

// put gives a ticket its place.
func (s *sender) put(t *ticket) error {
	select {
	case s.order <- t:
		return nil
	case <-s.k.ctx.Done():
		return s.k.why()
	}
}

// do has a worker run f.
func (s *sender) do(f func()) error {
	select {
	case s.work <- f:
		return nil
	case <-s.k.ctx.Done():
		return s.k.why()
	}
}

// next asks how hard to pack the next group, and how long it may be.
func (s *sender) next() {
	l, n := s.choose()
	s.level, s.limit = l, min(int64(n), codec.MaxBlock-(1<<20))
}

// small takes one small file; it leaves with its group.
func (s *sender) small(j smallJob) error {
	if len(s.group) > 0 && s.held+j.size > s.limit {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.group = append(s.group, j)
	if s.held += j.size; s.held >= s.limit || len(s.group) == maxBatchFiles {
		return s.flush()
	}
	return nil
}

// flush sends the group that was gathered so far.
func (s *sender) flush() error {
	if len(s.group) == 0 {
		return nil
	}
	if err := s.flushItems(); err != nil {
		return err
	}
	if err := s.room(); err != nil {
		return err
	}
	g, level := s.group, s.level
	s.group, s.held = nil, 0
	s.next()
	t := &ticket{ready: make(chan struct{}), what: msgBatch}
	if err := s.put(t); err != nil {
		return err
	}
	return s.do(func() {
		s.pack(t, g, level)
		close(t.ready)
	})
}

// item takes what is not content; it is done before what is taken afterwards.
func (s *sender) item(index uint32, it *Item) error {
	s.items = binary.AppendUvarint(s.items, uint64(index))
	if s.items = s.itemsF.appendItem(s.items, it); len(s.items) >= goodList {
		return s.flushItems()
	}
	return nil
}

func (s *sender) flushItems() error {
	if len(s.items) == 0 {
		return nil
	}
	t := &ticket{what: msgItems, parts: [][]byte{packList(s.codec, s.items)}}
	s.items, s.itemsF = s.items[:0], front{}
	return s.put(t)
}

// flushAll sends all that was taken so far.
func (s *sender) flushAll() error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.flushItems()
}

// large takes one large file. Its turn comes after all that was put before.
func (s *sender) large(o *outgoing) error {
	if err := s.flushItems(); err != nil {
		return err
	}
	select {
	case s.ahead <- struct{}{}:
		o.ahead = true
	case <-s.k.ctx.Done():
		return s.k.why()
	}
	s.expect(o)
	t := &ticket{after: func() { s.turn(o) }}
	if s.named {
		t.what, t.parts = msgAnnounce, [][]byte{appendAnnounce(nil, &o.announced)}
	}
	return s.put(t)
}

// expect has answers about a large file find it.
func (s *sender) expect(o *outgoing) {
	s.mu.Lock()
	s.outs[o.index] = o
	s.mu.Unlock()
}

func (s *sender) turn(o *outgoing) {
	s.mu.Lock()
	s.turns = append(s.turns, o)
	s.mu.Unlock()
	signal(s.more)
}

func (s *sender) endTurns() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	signal(s.more)
}

// out finds a large file that has not ended.
func (s *sender) out(index uint32) *outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outs[index]
}

// largeOnes sends large files one after the other.
func (s *sender) largeOnes() {
	for {
		s.mu.Lock()
		if len(s.turns) > 0 {
			o := s.turns[0]
			s.turns[0] = nil
			s.turns = s.turns[1:]
			s.mu.Unlock()
			err := s.sendLarge(o)
			s.mu.Lock()
			delete(s.outs, o.index)
			s.mu.Unlock()
			if o.ahead {
				<-s.ahead
			}
			if err != nil {
				s.k.cancel(err)
				return
			}
			continue
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-s.more:
		case <-s.k.ctx.Done():
			return
		}
	}
}

// finish flushes and waits until all has left. Nothing may be put afterwards.
func (s *sender) finish() error {
	err := s.flushAll()
	s.stop()
	if err == nil && s.k.ctx.Err() != nil {
		err = s.k.why()
	}
	return err
}

// stop ends the pump once its queues are empty, or the call is over.
func (s *sender) stop() {
	close(s.order)
	s.pumps.Wait()
	close(s.work)
	s.packers.Wait()
}

// fail tells the receiver that a file does not come.
func (s *sender) fail(index uint32, err error) error {
	return s.k.send(msgFail, appendError(binary.AppendUvarint(nil, uint64(index)), err))
}
