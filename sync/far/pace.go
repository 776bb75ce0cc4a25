package far

import (
	"sync"
	"time"

	"rentop/remote/agent/link"
	"rentop/sync/codec"
)

// This file keeps little waiting for the link: what is packed later is packed with
// more knowledge of it, a cut loses less, and the person sees what has arrived. A slow
// link holds three seconds, a fast one as much as it needs to stay busy.

const (
	// firstAhead is how many bytes leave before anything is known of the link. Until
	// its rate is known as much more may be on its way as has arrived, as TCP begins.
	firstAhead = 1 << 20
	// tellsRate is how many bytes must have arrived before the link's rate is believed.
	tellsRate = 64 << 10
	// lookEvery is how often the link's own figures are asked for.
	lookEvery = 20 * time.Millisecond
	// waitFor is how long a full link is left alone.
	waitFor = 2 * time.Millisecond
)

// observed is a link that measures itself.
type observed interface{ Stats() link.Stats }

// pace is what the sender has seen of the link.
type pace struct {
	mu       sync.Mutex // protects what follows
	looked   time.Time
	measures bool    // the link does
	begun    int64   // bytes that had arrived before
	known    bool    // the link's rate
	holds    int64   // bytes that the link holds by itself: rate × round trip
	rate     float64 // bytes a second
	least    bool    // the line could carry more
	rtt      time.Duration
}

// From this round trip on a link is far away, and its rate is learnt slowly: the
// first bytes that leave are packed better than a near link would want.
const (
	farAway    = 10 * time.Millisecond
	veryFar    = 60 * time.Millisecond
	veryNear   = 2 * time.Millisecond
	nearRate   = 40e6 // bytes a second
	firstBlock = 1 << 20
	// A link of slowRate bytes/s for which someWait bytes wait, and a quarter of what
	// may, leaves time for more; a shorter queue is that of cores that are busy.
	slowRate  = 30e6
	someWait  = 256 << 10
	slowBlock = 2 << 20
	fastRate  = 150e6 // bytes/s that a far link must carry for raw text
)

// choose is how hard to pack the next block, and its raw length.
func (s *sender) choose() (codec.Level, int) {
	level, n := s.gov.Next()
	waiting, ahead := s.look()
	s.pace.mu.Lock()
	defer s.pace.mu.Unlock()
	// So near, what seems a slow link is busy cores, or many small files, and packing would
	// make them busier; only what stays slower than any disk while much waits is a link.
	slow := s.pace.known && s.pace.rate < nearRate && waiting > someWait && s.gov.Settled()
	if s.pace.rtt > 0 && s.pace.rtt < veryNear && !slow {
		return codec.LevelNone, codec.LevelNone.BlockSize()
	}
	if level >= codec.LevelBetter {
		return level, n
	}
	far := s.pace.rtt == 0 || s.pace.rtt >= farAway // until the first round trip all may be
	if far && !s.pace.known && s.pace.measures && s.k.sentSoFar() < firstAhead {
		return codec.LevelBetter, firstBlock
	}
	// So far away a rate grows for a while, with the windows.
	grown := !s.pace.least && (s.pace.rtt < veryFar || s.gov.Settled())
	if far && s.pace.known && grown && s.pace.rate < slowRate && waiting > max(someWait, int64(ahead)/4) {
		return codec.LevelBetter, slowBlock
	}
	// Cores that run dry are wanted for SSH too, on both ends: more bytes are no relief.
	if far && level == codec.LevelNone && s.pace.rate < fastRate {
		return codec.LevelQuick, codec.LevelQuick.BlockSize()
	}
	return level, n
}

// fit is the raw length of the next block where left bytes are to come and n is
// wanted: the last blocks are shorter, so that no core waits for another's long one.
func fit(n int, left int64) int {
	if left < 2*int64(n) && left > 2*firstBlock {
		n = int(left / 2)
	}
	return int(min(int64(n), left))
}

// room waits until the next block may be packed, and tells the governor how the
// link keeps up.
func (s *sender) room() error {
	for first := true; ; first = false {
		waiting, ahead := s.look()
		if first {
			s.gov.Queue(int(max(0, waiting)), ahead)
		}
		if waiting <= int64(ahead) {
			return nil
		}
		select {
		case <-time.After(waitFor):
		case <-s.k.ctx.Done():
			return s.k.why()
		}
	}
}

// look is how many bytes wait for the link beyond what it holds by itself, and
// how many may.
func (s *sender) look() (waiting int64, ahead int) {
	p := &s.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	inflight, acked := s.k.flight()
	if l, ok := s.k.c.l.(observed); ok {
		st := l.Stats()
		if !p.measures {
			p.measures, p.begun = true, st.Arrived
		}
		p.rtt = st.RTT
		inflight = int64(st.Queued) + st.Sent - st.Arrived
		// The few bytes before content say nothing of the link.
		if st.SendRate > 0 && st.Arrived-p.begun >= tellsRate { // 0 where the link has had nothing to carry
			p.known, p.rate, p.least = true, st.SendRate, st.Windowed()
			p.holds = int64(1.25 * st.SendRate * st.RTT.Seconds()) // and what is told of it comes late
			if now := time.Now(); now.Sub(p.looked) >= lookEvery {
				p.looked = now
				s.gov.Link(st.SendRate, p.least)
			}
		}
	}
	ahead = s.gov.Ahead()
	if !p.known {
		ahead = max(ahead, int(min(firstAhead+acked, window)))
		if p.measures && p.rtt == 0 {
			ahead = firstAhead / 2 // more than grantAt, which may be consumed and untold
		}
	}
	return inflight - p.holds, ahead
}
