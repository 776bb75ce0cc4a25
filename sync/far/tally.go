package far

import (
	"sync"
	"time"
)

// This file counts content as moved once it has come to the other side: what was
// read, packed or queued here may still be lost.

// countEvery is how often it is looked what has come.
const countEvery = 50 * time.Millisecond

// tally is what was sent and not yet counted.
type tally struct {
	mu   sync.Mutex // protects list
	list []counted
}

// counted is content that is there once the call's first upTo bytes have come.
type counted struct{ upTo, raw, reused int64 }

// left notes that content was sent.
func (s *sender) left(raw, reused int64) {
	if raw == 0 && reused == 0 {
		return
	}
	s.tally.mu.Lock()
	s.tally.list = append(s.tally.list, counted{s.k.sentSoFar(), raw, reused})
	s.tally.mu.Unlock()
	s.came()
}

// came counts what has come by now.
func (s *sender) came() { s.count(s.k.arrived()) }

func (s *sender) count(upTo int64) {
	t := &s.tally
	t.mu.Lock()
	var raw, reused int64
	n := 0
	for n < len(t.list) && t.list[n].upTo <= upTo {
		raw, reused = raw+t.list[n].raw, reused+t.list[n].reused
		n++
	}
	t.list = t.list[n:]
	t.mu.Unlock()
	if raw > 0 {
		s.content(raw)
	}
	if reused > 0 {
		s.reused(reused)
	}
}

// counting counts until the call is over.
func (s *sender) counting() {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.came()
		case <-s.k.ctx.Done():
			s.came()
			return
		}
	}
}
