package link

// What the link knows of itself: the round trip, by pings of its own, the rate at
// which the other side receives, which it says in its answers, and the rate at
// which we do. A stripe is an SSH channel with a window of 2 MiB, so it carries
// 2 MiB a round trip and no more: where rate × round trip comes near to that, more
// stripes carry more.

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

const (
	window  = 2 << 20
	nearly  = 0.6                  // of all windows: when to grow
	growBy  = 4                    // stripes become so many times as many
	farAway = 5 * time.Millisecond // below it, no window is what limits
	// A stripe takes three round trips to come, and a rate two to be known: so far away
	// the first growth does not wait for it, once much was carried. Where it was not wanted
	// it cost some KB.
	veryFar     = 60 * time.Millisecond
	much        = 512 << 10
	firstPings  = 3                // before the round trip counts as known
	lostAfter   = 30 * time.Second // a ping without an answer is forgotten
	maxPings    = 64               // under way at once
	shortest    = 10 * time.Millisecond
	longest     = 250 * time.Millisecond
	minInterval = 100 * time.Millisecond // a rate is measured over at least so long
	// little is what comes and goes without being measured or told of: a helper that
	// sends a sample a second is not woken twice more for it.
	little = 4 << 10
)

// Stats is what a link measured of itself.
type Stats struct {
	RTT      time.Duration // the shortest so far; 0: not known yet
	SendRate float64       // bytes a second that the other side received lately
	RecvRate float64       // bytes a second that came lately
	Stripes  int
	Sent     int64 // bytes of messages and frames, since the link began
	Received int64 // likewise
	Arrived  int64 // of Sent, as the other side has said
	Queued   int   // bytes that wait to be sent
}

// Windowed says that the stripes' windows bound the rates, or nearly: the line could carry more.
func (s Stats) Windowed() bool {
	return max(s.SendRate, s.RecvRate)*s.RTT.Seconds() >= nearly*window*float64(s.Stripes)
}

type meter struct {
	began  time.Time
	dozing atomic.Bool
	woken  chan struct{}

	mu      sync.Mutex // guards the fields below
	rtt     time.Duration
	pongs   int
	number  uint64
	pings   map[uint64]time.Time
	out, in speed
	arrived int64 // as the other side has said
	told    time.Time
	came    int64 // when told
}

func (m *meter) init(now time.Time) {
	m.began, m.woken, m.pings = now, make(chan struct{}, 1), map[uint64]time.Time{}
}

// wake makes measuring go on; it costs next to nothing where it does.
func (m *meter) wake() {
	if m.dozing.Load() && m.dozing.CompareAndSwap(true, false) {
		select {
		case m.woken <- struct{}{}:
		default:
		}
	}
}

// restart forgets rates: a stripe was added.
func (m *meter) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out, m.in = speed{}, speed{}
}

// speed is a count's growth over the last while.
type speed struct {
	at    [32]time.Duration
	count [32]int64
	n     int // samples so far
	rate  float64
	known bool // over a whole interval
}

// add takes a sample; over is the interval that makes a rate.
func (s *speed) add(at time.Duration, count int64, over time.Duration) {
	if s.n > 0 && at <= s.at[(s.n-1)%len(s.at)] {
		return // an answer that was overtaken
	}
	s.at[s.n%len(s.at)], s.count[s.n%len(s.at)] = at, count
	s.n++
	for i := s.n - 2; i >= max(0, s.n-len(s.at)); i-- {
		k := i % len(s.at)
		if d := at - s.at[k]; d >= over || i == max(0, s.n-len(s.at)) && s.n > len(s.at) {
			s.rate, s.known = float64(count-s.count[k])/d.Seconds(), true
			return
		}
	}
}

// measure runs while the link does.
func (l *Carrier) measure() {
	t := time.NewTimer(0)
	defer t.Stop()
	var moved int64
	asked := 0
	for turn := 0; ; turn++ {
		select {
		case <-l.life.Done():
			return
		case <-l.meter.woken:
		case <-t.C:
		}
		now := l.moved()
		if now-moved < little && l.meter.known() && l.told() { // nothing to measure: no more pings
			if !l.meter.settled() {
				t.Reset(longest)
				continue
			}
			t.Stop()
			l.meter.dozing.Store(true)
			if l.moved() != now { // since we looked
				l.meter.wake()
			}
			continue
		}
		interval := l.ping(turn)
		asked = l.grow(asked)
		moved = now
		t.Reset(interval)
	}
}

// moved grows with all that is sent and received.
func (l *Carrier) moved() int64 {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.out.sent + int64(l.out.bytes) + l.received.Load()
}

// told tells whether the other side has said of all that was sent that it came, or of
// nearly all. A ping overtakes what is queued: the last may be answered before that has come,
// and who waits for room would wait for ever.
func (l *Carrier) told() bool {
	s := l.Stats()
	return s.Sent+int64(s.Queued)-s.Arrived < little
}

// known tells whether the round trip is.
func (m *meter) known() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pongs >= firstPings
}

// settled tells whether no answer is awaited.
func (m *meter) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pings) == 0
}

// ping sends one on the stripe whose turn it is, and says when the next is due.
func (l *Carrier) ping(turn int) time.Duration {
	l.mu.Lock()
	s := l.stripes[turn%len(l.stripes)]
	l.mu.Unlock()
	now := l.o.Now()
	m := &l.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.in.add(now.Sub(m.began), l.received.Load(), m.interval())
	for n, at := range m.pings {
		if now.Sub(at) > lostAfter {
			delete(m.pings, n)
		}
	}
	if len(m.pings) < maxPings && (m.pongs >= firstPings || len(m.pings) == 0) {
		m.number++
		m.pings[m.number] = now
		l.out.tell(s, header{typ: framePing, number: m.number}, nil)
	}
	return min(max(m.rtt/4, shortest), longest)
}

// interval is what a rate is measured over; it needs mu.
func (m *meter) interval() time.Duration { return max(2*m.rtt, minInterval) }

// unasked is the number of an answer to no ping.
const unasked = 0

// report says now and then what has come, without being asked: a ping waits behind
// all that is on its way, on a slow link for seconds.
func (l *Carrier) report(s *stripe) {
	now, came, m := l.o.Now(), l.received.Load(), &l.meter
	m.mu.Lock()
	due := came-m.came >= little && now.Sub(m.told) >= reportEvery
	if due {
		m.told, m.came = now, came
	}
	m.mu.Unlock()
	if due {
		l.answer(s, unasked)
	}
}

const reportEvery = 50 * time.Millisecond

// answer says what has come by now.
func (l *Carrier) answer(s *stripe, number uint64) {
	var body [pongSize]byte
	binary.BigEndian.PutUint64(body[:], uint64(l.received.Load()))
	binary.BigEndian.PutUint64(body[8:], uint64(l.o.Now().Sub(l.meter.began)))
	l.out.tell(s, header{typ: framePong, number: number}, body[:])
}

// pong takes an answer.
func (l *Carrier) pong(number, arrived, clock uint64) error {
	l.out.mu.Lock()
	sent := l.out.sent
	l.out.mu.Unlock()
	if arrived > uint64(sent) || clock > 1<<62 {
		return protocolError("an answer that says that %d bytes arrived of %d", arrived, sent)
	}
	m := &l.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrived = max(m.arrived, int64(arrived))
	if number == unasked {
		m.out.add(time.Duration(clock), int64(arrived), m.interval())
		return nil
	}
	at, is := m.pings[number]
	if !is {
		return nil // of one that was given up
	}
	delete(m.pings, number)
	rtt := max(l.o.Now().Sub(at), time.Microsecond)
	if m.pongs == 0 || rtt < m.rtt {
		m.rtt = rtt
	}
	m.pongs++
	m.out.add(time.Duration(clock), int64(arrived), m.interval())
	return nil
}

// grow asks for more stripes where they would help; asked is with how many it
// asked last.
func (l *Carrier) grow(asked int) int {
	if l.o.Grow == nil {
		return asked
	}
	s := l.Stats()
	if s.Stripes >= l.o.MaxStripes || s.Stripes <= asked || s.RTT < farAway || !l.meter.known() {
		return asked
	}
	early := s.Stripes == 1 && s.RTT >= veryFar && s.Sent+s.Received >= much
	if !early && !s.Windowed() {
		return asked
	}
	l.o.Grow(min(s.Stripes*growBy, l.o.MaxStripes))
	return s.Stripes
}

// Stats says what the link measured.
func (l *Carrier) Stats() Stats {
	s := Stats{Received: l.received.Load()}
	l.mu.Lock()
	s.Stripes = len(l.stripes)
	l.mu.Unlock()
	m := &l.meter
	m.mu.Lock()
	s.RTT, s.Arrived = m.rtt, m.arrived
	if m.out.known {
		s.SendRate = m.out.rate
	}
	if m.in.known {
		s.RecvRate = m.in.rate
	}
	m.mu.Unlock()
	l.out.mu.Lock()
	s.Sent, s.Queued = l.out.sent, l.out.bytes
	l.out.mu.Unlock()
	return s
}
