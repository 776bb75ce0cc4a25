package far

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"rentop/sync/codec"
	"rentop/sync/delta"
	"rentop/sync/tree"
)

// This file sends one large file: only what the receiver does not have.

// outgoing is a large file on its way.
type outgoing struct {
	announced
	from string // under the sender's root
	wait bool   // the receiver says what it has of it

	// ahead: it was announced before its turn, and holds a token of sender.ahead.
	ahead bool

	stop atomic.Bool // the receiver has given it up

	mu    sync.Mutex // protects have
	have  have
	heard chan struct{} // signals have
}

// have is what the receiver has of a file, as far as it has said.
type have struct {
	known  bool
	part   int64         // length of the part of an earlier run
	sums   []uint64      // of the part's blocks
	bases  int           // files that hold some of it, from 1
	chunks []signedChunk // of the bases, not yet taken
	taken  int           // chunks in all
	signed int64         // bytes that they tell of
	ended  bool          // no more sums or chunks come
}

// signedChunk is a batch of a signature.
type signedChunk struct {
	basis  int
	chunks []delta.Chunk
}

// partBlock is the unit in which a part is compared.
const partBlock = 256 << 10

func newOutgoing(a announced) *outgoing {
	return &outgoing{announced: a, heard: make(chan struct{}, 1)}
}

// late sends a file that was not known to be large when its turn was given.
func (s *sender) late(o *outgoing) {
	s.expect(o)
	s.turn(o)
}

// hear changes what is known of what the receiver has.
func (o *outgoing) hear(change func(*have)) {
	o.mu.Lock()
	change(&o.have)
	o.mu.Unlock()
	signal(o.heard)
}

// until waits until ok of what the receiver has.
func (s *sender) until(o *outgoing, ok func(*have) bool) error {
	for {
		o.mu.Lock()
		yes := ok(&o.have)
		o.mu.Unlock()
		if yes || o.stop.Load() {
			return nil
		}
		select {
		case <-o.heard:
		case <-s.k.ctx.Done():
			return s.k.why()
		}
	}
}

// sendLarge sends one file. An error ends the call; what concerns the file alone
// is told to the owner and the receiver.
func (s *sender) sendLarge(o *outgoing) error {
	if s.named && !o.ahead {
		if err := s.k.send(msgAnnounce, appendAnnounce(nil, &o.announced)); err != nil {
			return err
		}
	}
	s.current(o.index)
	f, fi, err := s.p.openSource(o.from)
	if err != nil {
		s.failed(o.index, err)
		return s.fail(o.index, err)
	}
	defer f.Close()
	if o.wait && !o.fresh {
		if err := s.until(o, func(h *have) bool { return h.known }); err != nil {
			return err
		}
	}
	start := binary.AppendUvarint(nil, uint64(o.index))
	start = binary.AppendUvarint(start, uint64(fi.Size()))
	if err := s.k.send(msgStart, appendTime(start, fi.ModTime())); err != nil {
		return err
	}
	l := &largeFile{s: s, o: o, r: tree.Contents(f, fi), size: fi.Size(), queue: make(chan *ticket, s.workers+1), hash: newHasher()}
	sum, err := l.run()
	switch {
	case s.k.ctx.Err() != nil:
		if fi.Size() >= partFrom {
			s.kept(l.arrived())
		}
		return s.k.why()
	case o.stop.Load():
		return s.fail(o.index, errChanged)
	case err == nil:
		err = unchanged(f, fi)
	}
	if err != nil {
		s.failed(o.index, err)
		return s.fail(o.index, err)
	}
	s.read(o.index, source{size: fi.Size(), time: fi.ModTime(), sum: sum})
	return s.k.send(msgEnd, binary.AppendUvarint(nil, uint64(o.index)), sum[:])
}

// largeFile reads a file once, in order, and sends its blocks in order.
type largeFile struct {
	s     *sender
	o     *outgoing
	r     io.Reader
	size  int64
	queue chan *ticket
	hash  *hasher
	kinds []codec.Range // what its ranges hold
	marks []mark        // the emitting goroutine's own while it runs
	upTo  int64         // how much was sent; likewise
}

// mark says how much of the file is with the receiver once it has consumed so
// many bytes of the call.
type mark struct{ sent, upTo int64 }

// mark notes that all up to upTo has been sent, and forgets what has long arrived.
func (l *largeFile) mark(upTo int64) {
	_, acked := l.s.k.flight()
	for len(l.marks) > 1 && l.marks[1].sent <= acked {
		l.marks = l.marks[1:]
	}
	if upTo > 0 {
		l.marks = append(l.marks, mark{l.s.k.sentSoFar(), upTo})
	}
}

// arrived is how much of the file the receiver has.
func (l *largeFile) arrived() int64 {
	_, acked := l.s.k.flight()
	n := int64(0)
	for _, m := range l.marks {
		if m.sent <= acked {
			n = m.upTo
		}
	}
	return n
}

func (l *largeFile) run() (sum [sha256.Size]byte, err error) {
	var emitting sync.WaitGroup
	emitting.Go(l.emit)
	l.o.mu.Lock()
	bases := l.o.have.bases
	l.o.mu.Unlock()
	if bases > 0 {
		err = l.diff()
	} else {
		err = l.read()
	}
	sum = l.hash.sum()
	close(l.queue)
	emitting.Wait()
	return sum, err
}

func (l *largeFile) emit() {
	for t := range l.queue {
		if l.s.k.ctx.Err() != nil {
			continue
		}
		if t.ready != nil {
			select {
			case <-t.ready:
			case <-l.s.k.ctx.Done():
				continue
			}
		}
		if err := l.s.k.send(t.what, t.parts...); err != nil {
			l.s.k.cancel(err)
			continue
		}
		l.mark(t.upTo)
		l.s.left(max(0, t.upTo-l.upTo), t.reused)
		l.upTo = max(l.upTo, t.upTo)
		if t.after != nil {
			t.after()
		}
	}
}

func (l *largeFile) put(t *ticket) error {
	select {
	case l.queue <- t:
		return nil
	case <-l.s.k.ctx.Done():
		return l.s.k.why()
	}
}

func (l *largeFile) read() error {
	asked := !l.o.wait || !l.o.fresh
	for off := int64(0); off < l.size; {
		if l.o.stop.Load() {
			return nil
		}
		if !asked && off >= partFrom {
			// an answer that has not come by now is worth waiting for
			if err := l.s.until(l.o, func(h *have) bool { return h.known }); err != nil {
				return err
			}
			asked = true
		}
		if err := l.s.room(); err != nil {
			return err
		}
		level, n := l.s.choose()
		n = fit(n, l.size-off)
		buf := getBuffer(n)
		got, err := io.ReadFull(l.r, buf)
		l.s.reading(int64(got))
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return errChanged
		}
		if err != nil {
			return err
		}
		if off == 0 {
			l.kinds = codec.Sniff(buf[:min(len(buf), codec.MaxHead)], l.size)
		}
		if err := l.blocks(buf, off, level); err != nil {
			return err
		}
		off += int64(n)
	}
	// One byte more than there was is a change that the time may not show yet.
	if n, _ := l.r.Read(make([]byte, 1)); n > 0 {
		return errChanged
	}
	return nil
}

// blocks sends buf, which is the file's content at off, but for what the
// receiver's part holds at the same place.
func (l *largeFile) blocks(buf []byte, off int64, level codec.Level) error {
	var left atomic.Int32 // users of buf: the hash, this function, and each piece
	left.Store(2)
	done := func() {
		if left.Add(-1) == 0 {
			putBuffer(buf)
		}
	}
	defer done()
	l.hash.add(buf, done)
	for at := 0; at < len(buf); {
		kept, err := l.kept(buf[at:], off+int64(at))
		if err != nil {
			return err
		}
		if kept > 0 {
			m := binary.AppendUvarint(nil, uint64(l.o.index))
			m = appendSpan(m, span{off: off + int64(at), len: int64(kept)})
			if err := l.put(&ticket{what: msgCopy, parts: [][]byte{m}, upTo: off + int64(at+kept), reused: int64(kept)}); err != nil {
				return err
			}
			at += kept
			continue
		}
		end := at
		for end < len(buf) && (end == at || kept == 0) {
			end = min(len(buf), end+partBlock)
			if kept, err = l.kept(buf[end:], off+int64(end)); err != nil {
				return err
			}
		}
		left.Add(1)
		hint := codec.HintAt(l.kinds, off+int64(at), end-at)
		hint.Level = level
		if err := l.data(msgData, buf[at:end], off+int64(end), 0, hint, done); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// kept is how much of the beginning of b, which lies at off, the part holds at
// the same place.
func (l *largeFile) kept(b []byte, off int64) (int, error) {
	o := l.o
	o.mu.Lock()
	part := o.have.part
	o.mu.Unlock()
	n := 0
	for off%partBlock == 0 && off+partBlock <= part && len(b)-n >= partBlock {
		i := int(off / partBlock)
		if err := l.s.until(o, func(h *have) bool { return h.ended || len(h.sums) > i }); err != nil {
			return 0, err
		}
		o.mu.Lock()
		same := i < len(o.have.sums) && o.have.sums[i] == xxh3.Hash(b[n:n+partBlock])
		o.mu.Unlock()
		if !same {
			break
		}
		n += partBlock
		off += partBlock
	}
	return n, nil
}

// data sends b packed, which is the file up to upTo, reused bytes of it from what is
// there; done is called once b is no longer needed.
func (l *largeFile) data(what byte, b []byte, upTo, reused int64, hint codec.Hint, done func()) error {
	t := &ticket{ready: make(chan struct{}), what: what, upTo: upTo, reused: reused}
	if err := l.put(t); err != nil {
		return err
	}
	return l.s.do(func() {
		block, packed := l.s.encode(b, hint)
		t.parts = [][]byte{binary.AppendUvarint(nil, uint64(l.o.index)), block, packed}
		t.after = func() {
			if &packed[0] != &b[0] {
				putBuffer(packed)
			}
			done()
		}
		close(t.ready)
	})
}
