//go:build linux

package nvml

import (
	"context"
	stdsync "sync"
	"time"
)

// batch is one round's orders. One worker carries them out in turn, which costs
// fewer wake-ups than a goroutine for each GPU; where a call does not come back,
// the hub takes the rest away from that worker and gives it to a new one.
type batch struct {
	mu    stdsync.Mutex // guards all below
	todo  []task
	now   *lane     // being read; nil: none
	since time.Time // when that began
	gone  bool      // the rest was taken away: its worker ends with the call
}

type task struct {
	lane *lane
	order
}

// next begins the next task.
func (b *batch) next(now time.Time) (task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now = nil; len(b.todo) == 0 {
		return task{}, false
	}
	t := b.todo[0]
	b.todo, b.now, b.since = b.todo[1:], t.lane, now
	return t, true
}

// takeAway gives what a worker that has been in one reading for so long has not
// begun, and which lane it is stuck in.
func (b *batch) takeAway(now time.Time, after time.Duration) (rest []task, stuck *lane, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil || b.gone || now.Sub(b.since) < after {
		return nil, nil, time.Time{}
	}
	rest, b.todo, b.gone = b.todo, nil, true
	return rest, b.now, b.since
}

func (b *batch) taken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}

// worker carries batches out until ctx ends or one is taken away from it.
func worker(ctx context.Context, work <-chan *batch, now func() time.Time, out chan<- report) {
	for {
		select {
		case b := <-work:
			for t, ok := b.next(now()); ok; t, ok = b.next(now()) {
				select {
				case out <- t.lane.read(t.order):
				case <-ctx.Done():
					return
				}
			}
			if b.taken() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
