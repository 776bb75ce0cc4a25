package link

import (
	"net"
	"testing"
	"time"
)

// A link that carries a message now and then measures now and then: a helper that
// sends a sample a second must not wake a hundred times for it.
func TestDozesBetweenMessages(t *testing.T) {
	a, b := net.Pipe()
	x, y := New(a, Options{}), New(b, Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := y.Recv(); err != nil {
				return
			}
		}
	}()
	time.Sleep(100 * time.Millisecond) // the first pings
	number := func() uint64 {
		x.meter.mu.Lock()
		defer x.meter.mu.Unlock()
		return x.meter.number
	}
	heard := func() int64 { return y.received.Load() + x.received.Load() }
	before := number()
	const n = 10
	for range n {
		if err := x.Send('s', make([]byte, 200)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if pings := number() - before; pings != 0 || heard() == 0 {
		t.Errorf("%d pings for %d small messages, of which %d bytes came", pings, n, heard())
	}
	for range n {
		if err := x.Send('s', make([]byte, little)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if pings := number() - before; pings < 1 || pings > 3*n {
		t.Errorf("%d pings for %d messages that are worth them", pings, n)
	}
	go y.Close()
	x.Close()
	<-ended
}
