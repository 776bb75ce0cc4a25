package remote

import (
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote/sshtest"
)

// healths notes each change of state and when it came.
type healths struct {
	mu   sync.Mutex
	list []Health
	at   []time.Time
}

func (h *healths) add(x Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.list); n == 0 || h.list[n-1].State != x.State {
		h.list = append(h.list, x)
		h.at = append(h.at, time.Now())
	}
}

func (h *healths) wait(t *testing.T, s HealthState, within time.Duration) time.Time {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		h.mu.Lock()
		for i := len(h.list) - 1; i >= 0; i-- {
			if h.list[i].State == s {
				defer h.mu.Unlock()
				return h.at[i]
			}
		}
		h.mu.Unlock()
	}
	t.Fatalf("not %v within %v", s, within)
	return time.Time{}
}

func TestStalledWithinSixSecondsThenDead(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	link := sshtest.NewProxy(t, s.Addr)
	var h healths
	o := testOptions(t, &person{answer: yes("", "")})
	o.OnHealth = h.add
	c := mustDial(t, serverEndpoint(s, link.Addr), o)
	time.Sleep(500 * time.Millisecond) // between two questions
	if c.Health().RTT <= 0 || c.Health().RTT > time.Second {
		t.Error("round trip", c.Health().RTT)
	}
	cut := time.Now()
	link.CutNow(sshtest.Hole)
	took := h.wait(t, Stalled, 7*time.Second).Sub(cut)
	t.Logf("stalled after %v", took)
	if took > 6*time.Second {
		t.Errorf("stalled after %v", took)
	}
	select {
	case <-c.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("never given up")
	}
	took = time.Since(cut)
	t.Logf("dead after %v: %v", took, c.Err())
	if took < 12*time.Second || took > 19*time.Second || !strings.Contains(c.Err().Error(), "nothing was heard for") || c.Health().State != Dead || c.Health().Err == nil {
		t.Error(took, c.Err(), c.Health())
	}
}

func fast() Keepalive {
	return Keepalive{Interval: 50 * time.Millisecond, StallAfter: 150 * time.Millisecond, DeadAfter: 2 * time.Second, WakeAfter: 400 * time.Millisecond}
}

func TestComesBackAfterAStall(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{Dropbear: true})
	link := sshtest.NewProxy(t, s.Addr)
	var h healths
	o := testOptions(t, &person{answer: yes("", "")})
	o.OnHealth, o.Keepalive = h.add, fast()
	c := mustDial(t, serverEndpoint(s, link.Addr), o)
	link.CutNow(sshtest.Hole)
	h.wait(t, Stalled, time.Second)
	link.Heal()
	for end := time.Now().Add(time.Second); c.Health().State != Alive; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("stayed", c.Health())
		}
	}
	if whoami(t, c) != s.User {
		t.Error("it does not work any more")
	}
}

// Bytes that arrive are a sign of life even where an answer waits behind them.
func TestBusyLinkIsNotStalled(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	var h healths
	o := testOptions(t, &person{answer: yes("", "")})
	o.OnHealth = h.add
	o.Keepalive = Keepalive{StallAfter: 200 * time.Millisecond}
	c := mustDial(t, serverEndpoint(s, ""), o)
	sess, err := c.Client().NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sess.Output("i=0; while [ $i -lt 20 ]; do echo $i; sleep 0.05; i=$((i+1)); done"); err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.list {
		if x.State != Alive {
			t.Error(x)
		}
	}
}

func TestEndsWithTheServer(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	c := mustDial(t, serverEndpoint(s, ""), testOptions(t, &person{answer: yes("", "")}))
	s.KillSessions9()
	select {
	case <-c.Done():
	case <-time.After(3 * time.Second):
		t.Fatal("not noticed")
	}
	if c.Err() == nil || c.Err() == ErrClosed {
		t.Error(c.Err())
	}
	c.Close()
}

// A computer that slept finds a dead link at once, not after 15 s.
func TestSleepIsNoticed(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	link := sshtest.NewProxy(t, s.Addr)
	var mu sync.Mutex
	var ahead time.Duration
	o := testOptions(t, &person{answer: yes("", "")})
	o.Keepalive = fast()
	o.Keepalive.DeadAfter = time.Hour
	o.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	c := mustDial(t, serverEndpoint(s, link.Addr), o)
	link.CutNow(sshtest.Hole)
	time.Sleep(300 * time.Millisecond)
	select {
	case <-c.Done():
		t.Fatal("given up without a sleep")
	default:
	}
	mu.Lock()
	ahead = time.Hour
	mu.Unlock()
	select {
	case <-c.Done():
	case <-time.After(3 * time.Second):
		t.Fatal("the sleep was not noticed")
	}
}

func TestCloseOnADeadLinkIsQuick(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	link := sshtest.NewProxy(t, s.Addr)
	c := mustDial(t, serverEndpoint(s, link.Addr), testOptions(t, &person{answer: yes("", "")}))
	link.CutNow(sshtest.Hole)
	start := time.Now()
	c.Close()
	if took := time.Since(start); took > time.Second {
		t.Error("took", took)
	}
}
