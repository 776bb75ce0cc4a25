package far

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"rentop/sync/codec"
)

// This file is the pump that writes content: the server's in a push, the
// client's in a pull. One goroutine takes messages in order; batches are
// unpacked and written by several, and each large file has a writer of its own.

// receiver writes what comes over k to p.
type receiver struct {
	k       *call
	p       *place
	codec   *codec.Codec
	workers int
	named   bool // a push: messages carry names

	// lookup says what a file of a pull is and how long it may be.
	lookup func(index uint32) (path string, perm fs.FileMode, limit int64, ok bool)
	// done hears of each file once it has its name, or why it does not; from
	// several goroutines.
	done    func(index uint32, is source, err error)
	content func(n int64)
	reused  func(n int64) // of these, what was here
	kept    func(n int64) // of a file that was cut: what the next run finds
	current func(index uint32)

	work    chan func()
	working sync.WaitGroup
	writers sync.WaitGroup // of large files
	haves   chan struct{}  // turns for telling what there is of a file
	looking chan struct{}  // a token for each file whose bases are open
	beside  atomic.Int32   // small files that are written beside others

	mu      sync.Mutex // protects files
	files   map[uint32]*incoming
	writing chan struct{} // a token for each large file that is open
	begun   int           // of files; the taking goroutine's own
	batches sync.WaitGroup
	failed  atomic.Bool // something has, since the sender last said that nothing follows

	// life is that of the writers of large files. It is longer than the call's: what
	// has come when a connection is cut is written, so that the next run has it.
	life context.Context
	end  context.CancelCauseFunc
}

func newReceiver(k *call, p *place, c *codec.Codec, n int) *receiver {
	life, end := context.WithCancelCause(context.Background())
	return &receiver{life: life, end: end, k: k, p: p, codec: c, workers: n, work: make(chan func()), haves: make(chan struct{}, 2), looking: make(chan struct{}, maxAnnounced), files: map[uint32]*incoming{}, writing: make(chan struct{}, maxWriting),
		content: func(int64) {}, reused: func(int64) {}, kept: func(int64) {}, current: func(uint32) {}}
}

// What a sender may make us hold: large files that are announced, and those that
// have begun, of which an honest one sends one at a time.
const (
	maxLarge = 4 * maxPending
	maxBegun = 4
)

// maxWriting bounds the large files that are open: the last ones may wait for the disk.
const maxWriting = 64

// lastWords is how long what has come is written once the call is over.
const lastWords = time.Second

// over is called when the call's context has ended.
func (r *receiver) over() {
	var p *ProtocolError
	if errors.As(r.k.why(), &p) {
		r.end(p)
		return
	}
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-t.C:
		r.end(r.k.why())
	case <-r.life.Done():
	}
}

// broke ends the call, and with it all writing: the sender does not keep to the protocol.
func (r *receiver) broke(err error) {
	r.k.cancel(err)
	r.end(err)
}

// rescue writes what has come of large files.
func (r *receiver) rescue() {
	for r.life.Err() == nil {
		m, ok := r.k.left()
		if !ok {
			return
		}
		switch m.what {
		case msgData, msgSteps, msgCopy, msgEnd:
			d := decoder{b: m.body}
			if in := r.file(d.index()); d.err == nil && in != nil && in.begun {
				if err := r.large(m); err != nil {
					r.end(err)
					return
				}
				continue
			}
		}
		m.free()
	}
}

// run takes messages until the sender's end and all is written.
func (r *receiver) run() error {
	defer r.end(nil)
	defer context.AfterFunc(r.k.ctx, r.over)()
	for range r.workers {
		r.working.Go(func() {
			for do := range r.work {
				do()
			}
		})
	}
	err := r.take()
	if err != nil {
		r.k.cancel(err)
		var p *ProtocolError
		if errors.As(err, &p) {
			r.end(err)
		}
		r.rescue()
	}
	close(r.work)
	r.mu.Lock()
	for _, in := range r.files {
		in.abandon()
	}
	r.mu.Unlock()
	r.working.Wait()
	r.writers.Wait()
	if err == nil && r.k.ctx.Err() != nil {
		err = r.k.why()
	}
	return err
}

func (r *receiver) take() error {
	for {
		m, err := r.k.recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch m.what {
		case msgBatch:
			r.batches.Add(1)
			if err = r.do(func() { defer r.batches.Done(); r.batch(m) }); err != nil {
				r.batches.Done()
			}
		case msgLast:
			r.free(m)
			if r.allDone() {
				return nil
			}
		case msgItems:
			err = r.items(m)
		case msgAnnounce, msgStart, msgData, msgCopy, msgSteps, msgEnd, msgFail:
			err = r.large(m)
		default:
			err = broken("a message of kind %d among content", m.what)
		}
		if err != nil {
			return err
		}
	}
}

// allDone waits for what has come and says whether that is all there will be: where
// something has failed it may be sent again.
func (r *receiver) allDone() bool {
	r.mu.Lock()
	n := len(r.files)
	r.mu.Unlock()
	if n > 0 || !r.named {
		return false
	}
	r.batches.Wait()
	r.writers.Wait()
	return !r.failed.Swap(false) && r.k.ctx.Err() == nil
}

// free gives a message's room and memory back.
func (r *receiver) free(m frame) {
	r.k.release(m.size())
	m.free()
}

func (r *receiver) do(f func()) error {
	select {
	case r.work <- f:
		return nil
	case <-r.life.Done():
		return context.Cause(r.life)
	}
}

// items carries out what is not content, in order.
func (r *receiver) items(m frame) error {
	if !r.named {
		return broken("operations in a pull")
	}
	d, err := unpackList(r.codec, m.body)
	if err != nil {
		return err
	}
	r.free(m)
	for f := (front{}); len(d.b) > 0; {
		index := d.index()
		it := f.item(d)
		if d.err != nil {
			return d.err
		}
		r.done(index, source{}, r.p.apply(&it))
	}
	return nil
}
