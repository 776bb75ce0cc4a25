package sshtest

// A bad network in a box: a TCP proxy that cuts, stalls and delays.

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Cut is how a connection is broken.
type Cut int

const (
	RST  Cut = iota // reset, both ways
	FIN             // orderly close, both ways
	Hole            // nothing arrives any more, nobody is told; lasts until Heal
)

// Direction of bytes through a Proxy.
type Direction int

const (
	ToServer Direction = iota
	ToClient
)

// Proxy forwards connections to a server, and breaks them as told.
type Proxy struct {
	Addr string

	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	wake   *sync.Cond // state below changed
	closed bool
	hole   bool
	delay  time.Duration
	armed  bool
	dir    Direction
	left   int64
	how    Cut
	fired  int
	passed [2]int64
	pairs  map[*pair]struct{}
}

type pair struct{ client, server net.Conn }

// NewProxy starts a proxy to target that ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &Proxy{Addr: ln.Addr().String(), target: target, ln: ln, pairs: map[*pair]struct{}{}}
	p.wake = sync.NewCond(&p.mu)
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.Close)
	return p
}

// CutAfter breaks the connection that carries the n-th byte from now on in
// direction dir (n 0: the next byte), once; bytes before it pass.
func (p *Proxy) CutAfter(dir Direction, n int64, how Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.dir, p.left, p.how = true, dir, n, how
}

// CutNow breaks all present connections; new ones pass (not for Hole).
func (p *Proxy) CutNow(how Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired++
	if how == Hole {
		p.hole = true
		return
	}
	for c := range p.pairs {
		c.cut(how)
	}
}

// Delay holds every byte back for d in each direction.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Heal ends a Hole, a Delay and an armed cut. Bytes held in a hole arrive.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole, p.armed, p.delay = false, false, 0
	p.wake.Broadcast()
}

// Fired counts the cuts so far.
func (p *Proxy) Fired() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// Passed counts the bytes forwarded so far in direction dir.
func (p *Proxy) Passed(dir Direction) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed[dir]
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.pairs {
		c.cut(RST)
	}
	p.wake.Broadcast()
	p.mu.Unlock()
	p.ln.Close()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
		if err != nil {
			(&pair{client, client}).cut(RST)
			continue
		}
		c := &pair{client, server}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			c.cut(RST)
			return
		}
		p.pairs[c] = struct{}{}
		p.mu.Unlock()
		p.wg.Add(2)
		go p.pump(c, client, server, ToServer)
		go p.pump(c, server, client, ToClient)
	}
}

type chunk struct {
	due  time.Time
	data []byte
}

// pump moves one direction: a reader stamps chunks, a writer waits until each
// is due, so a delay does not lower the throughput.
func (p *Proxy) pump(c *pair, from, to net.Conn, dir Direction) {
	defer p.wg.Done()
	queue := make(chan chunk, 256)
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		defer close(queue)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				p.mu.Lock()
				due := time.Now().Add(p.delay)
				p.mu.Unlock()
				queue <- chunk{due, b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	broken := false
	for k := range queue {
		if broken {
			continue // drained, so that the reader ends
		}
		if wait := time.Until(k.due); wait > 0 {
			time.Sleep(wait)
		}
		data, cut, how := p.admit(k.data, dir)
		if len(data) > 0 {
			n, err := to.Write(data)
			p.mu.Lock()
			p.passed[dir] += int64(n)
			p.mu.Unlock()
			if err != nil {
				broken = true
				c.cut(FIN)
			}
		}
		if cut {
			broken = true
			c.cut(how)
		}
	}
	if t, ok := to.(*net.TCPConn); ok {
		t.CloseWrite() // half-closed, as a router would pass it on
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, first := p.pairs[c]; first {
		delete(p.pairs, c) // the other direction is the last one out
		return
	}
	c.cut(FIN)
}

// admit waits out a hole and says how much of data may pass and whether the
// connection is to be cut after it.
func (p *Proxy) admit(data []byte, dir Direction) (pass []byte, cut bool, how Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.hole && !p.closed {
		p.wake.Wait()
	}
	if p.armed && p.dir == dir {
		if int64(len(data)) > p.left {
			data, cut, how = data[:p.left], true, p.how
			p.armed = false
			p.fired++
			if how == Hole {
				p.hole, cut = true, false
			}
		} else {
			p.left -= int64(len(data))
		}
	}
	return data, cut, how
}

func (c *pair) cut(how Cut) {
	for _, n := range []net.Conn{c.client, c.server} {
		if t, ok := n.(*net.TCPConn); ok && how == RST {
			t.SetLinger(0)
		}
		n.Close()
	}
}
