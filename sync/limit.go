package sync

import (
	"fmt"
	"strconv"
	"strings"
	stdsync "sync"
	"time"

	"rentop/remote"
)

// This file slows transfers down to a rate that a person chose: a token bucket
// for each way, under the connection, so that every transport keeps to it.

// LeastLimit is the lowest rate in bytes a second: below it a connection that
// is full of data could not answer in time that it lives.
const LeastLimit = 32 << 10

// Limit is a rate for each of the two ways, shared by all connections that have
// it. Nil limits nothing. It is safe for concurrent use.
type Limit struct {
	parent   *Limit
	up, down bucket
}

var _ remote.Throttle = (*Limit)(nil)

// NewLimit makes a limit that lets everything through until Set. What parent
// allows is kept to as well; it may be nil.
func NewLimit(parent *Limit) *Limit { return &Limit{parent: parent} }

// Set changes the rate, in bytes a second, also for what is moving now. 0 is
// no limit.
func (l *Limit) Set(bytesPerSecond int64) {
	if bytesPerSecond > 0 {
		bytesPerSecond = max(bytesPerSecond, LeastLimit)
	}
	l.up.set(bytesPerSecond)
	l.down.set(bytesPerSecond)
}

// Own is the rate that Set gave, 0 where there is none.
func (l *Limit) Own() int64 {
	if l == nil {
		return 0
	}
	return l.up.now()
}

// Rate is what holds: the lowest of its own and its parents', 0 for none.
func (l *Limit) Rate() int64 {
	least := int64(0)
	for ; l != nil; l = l.parent {
		if r := l.up.now(); r > 0 && (least == 0 || r < least) {
			least = r
		}
	}
	return least
}

// Up implements remote.Throttle.
func (l *Limit) Up(n int, end <-chan struct{}) {
	for ; l != nil; l = l.parent {
		l.up.take(n, end)
	}
}

// Down implements remote.Throttle.
func (l *Limit) Down(n int, end <-chan struct{}) {
	for ; l != nil; l = l.parent {
		l.down.take(n, end)
	}
}

// bucket fills with rate bytes a second, and holds what a twentieth of a second
// brings: enough to be smooth, too little for a burst to be felt.
type bucket struct {
	mu      stdsync.Mutex // protects what follows
	rate    int64
	have    float64 // below 0: taken in advance
	at      time.Time
	changed chan struct{}
}

func (b *bucket) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rate
}

func (b *bucket) set(rate int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.rate = rate
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// fill brings have up to date; b.mu is held.
func (b *bucket) fill() {
	now := time.Now()
	if b.rate > 0 && !b.at.IsZero() {
		b.have = min(b.have+now.Sub(b.at).Seconds()*float64(b.rate), float64(b.rate)/20)
	}
	if b.rate == 0 {
		b.have = 0
	}
	b.at = now
}

// take waits until what was taken before has been paid for, then takes n.
func (b *bucket) take(n int, end <-chan struct{}) {
	for {
		b.mu.Lock()
		b.fill()
		if b.rate == 0 || b.have >= 0 {
			b.have -= float64(n)
			b.mu.Unlock()
			return
		}
		wait := time.Duration(-b.have / float64(b.rate) * float64(time.Second))
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		timer := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-timer.C:
		case <-changed:
		case <-end:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// ParseLimit reads a rate such as 20M, 1.5MiB, 800K or 500000 (bytes a second; K,
// M and G are powers of 1024). "", "0" and "off" are no limit.
func ParseLimit(text string) (int64, error) {
	s := strings.ToUpper(strings.TrimSpace(text))
	for _, end := range []string{"/S", "PS", "B", "I"} {
		s = strings.TrimSuffix(s, end)
	}
	if s == "" && strings.TrimSpace(text) == "" || s == "0" || s == "OFF" {
		return 0, nil
	}
	unit := 1.0
	if n := len(s); n > 0 {
		if i := strings.IndexByte("KMG", s[n-1]); i >= 0 {
			s = s[:n-1]
			for range i + 1 {
				unit *= 1024
			}
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v != v || v <= 0 || v*unit > 1<<50 {
		return 0, fmt.Errorf("%q is no rate: write bytes a second as in 20M, 800K or 500000, or 0 for no limit", remote.Short(text, 40))
	}
	if v*unit < LeastLimit {
		return 0, fmt.Errorf("%s a second is less than a connection needs to stay alive: %s is the least", Size(int64(v*unit)), Size(LeastLimit))
	}
	return int64(v * unit), nil
}
