// Whether the instance still answers.
//
// A request that waits for an answer blocks on a dead link, and TCP's own
// keepalive does not fire while data is unacknowledged; so each request is raced
// against a timer, and the connection is closed from outside.

package remote

import (
	"fmt"
	"time"
)

// HealthState is whether an instance answers.
type HealthState int

const (
	Alive   HealthState = iota
	Stalled             // no answer for a few seconds; it may come back
	Dead                // the connection has ended
)

func (s HealthState) String() string { return [...]string{"alive", "stalled", "dead"}[s] }

// Health is the state of a connection.
type Health struct {
	State HealthState
	Since time.Time     // when State began, by DialOptions.Now
	RTT   time.Duration // the last round trip; 0: not measured
	Err   error         // why it is Dead
}

// Keepalive says how often to ask and how long to wait. The zero value asks 2 s
// after the last answer, says stalled after 3 s and gives up after 15 s.
type Keepalive struct {
	Interval   time.Duration // between an answer and the next question
	StallAfter time.Duration // without an answer
	DeadAfter  time.Duration // of silence
	WakeAfter  time.Duration // of silence, where this computer has just slept
}

func (k Keepalive) orDefaults() Keepalive {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&k.Interval, 2*time.Second)
	set(&k.StallAfter, 3*time.Second)
	set(&k.DeadAfter, 15*time.Second)
	set(&k.WakeAfter, 5*time.Second)
	return k
}

// Health is the present state.
func (c *Conn) Health() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// Probe asks the instance for a sign of life now: after a key press, or when the
// network came back.
func (c *Conn) Probe() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Conn) setHealth(s HealthState, rtt time.Duration, err error) {
	c.mu.Lock()
	if c.health.State == Dead || s == Stalled && c.health.State == Stalled {
		c.mu.Unlock()
		return
	}
	if s != c.health.State {
		c.health.Since = c.o.Now()
	}
	c.health.State, c.health.Err = s, err
	if rtt > 0 {
		c.health.RTT = rtt
	}
	h := c.health
	c.mu.Unlock()
	if c.o.OnHealth != nil {
		c.o.OnHealth(h)
	}
}

// keepalive runs until the connection ends.
func (c *Conn) keepalive() {
	k := c.o.Keepalive.orDefaults()
	timer := time.NewTimer(0)
	defer timer.Stop()
	clock := wallClock{now: c.o.Now}
	clock.jumped()
	for {
		asked := time.Now()
		answer := make(chan struct{}, 1)
		go func() { // ends with the answer or with the connection
			if _, _, err := c.Client().SendRequest("keepalive@openssh.com", true, nil); err == nil {
				answer <- struct{}{}
			}
		}()
		limit := k.DeadAfter
		for waiting := true; waiting; {
			silent := c.last.silence(asked)
			next := k.StallAfter - silent
			if silent >= k.StallAfter {
				c.setHealth(Stalled, 0, nil)
				next = min(limit-silent, k.StallAfter)
			} else if c.Health().State == Stalled && c.last.silence(time.Time{}) < k.StallAfter {
				c.setHealth(Alive, 0, nil) // no answer yet, but bytes come: a slow link that is busy
			}
			if silent >= limit {
				c.end(&DialError{Address: c.info.Address, Text: fmt.Sprintf("nothing was heard for %.0f s, the connection is lost", silent.Seconds()), Err: errConnectTimeout})
				return
			}
			timer.Reset(max(next, time.Millisecond))
			select {
			case <-answer:
				waiting = false
				c.setHealth(Alive, time.Since(asked), nil)
			case <-timer.C:
				if clock.jumped() {
					limit = k.WakeAfter
				}
			case <-c.wake: // a question is under way already
			case <-c.done:
				return
			}
		}
		slept, ended := c.pause(timer, &clock, asked, k.Interval)
		if ended {
			return
		}
		if slept {
			k.DeadAfter = min(k.DeadAfter, k.WakeAfter)
		} else {
			k = c.o.Keepalive.orDefaults()
		}
	}
}

// measureEvery is how old a round trip time may be while samples come in.
const measureEvery = 10 * time.Second

// pause waits until it is time to ask again: an interval after the last bytes came
// in, so that a connection with samples on it is not asked for signs of life that
// it gives anyway. It says whether the computer slept meanwhile.
func (c *Conn) pause(timer *time.Timer, clock *wallClock, asked time.Time, interval time.Duration) (slept, ended bool) {
	for next := interval; ; {
		timer.Reset(next)
		woken := false
		select {
		case <-timer.C:
		case <-c.wake:
			woken = true
		case <-c.done:
			return false, true
		}
		if clock.jumped() {
			return true, false
		}
		silent := c.last.silence(time.Time{})
		if woken || silent >= interval || time.Since(asked) >= measureEvery {
			return false, false
		}
		next = interval - silent
	}
}

// wallClock notices that the computer slept: the wall clock went on, the
// monotonic one did not.
type wallClock struct {
	now        func() time.Time
	wall, mono time.Time
}

func (w *wallClock) jumped() bool {
	wall, mono := w.now().Round(0), time.Now()
	jump := !w.wall.IsZero() && wall.Sub(w.wall)-mono.Sub(w.mono) > 3*time.Second
	w.wall, w.mono = wall, mono
	return jump
}
