package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pair is a link between two ends in this process, over n stripes.
func pair(t testing.TB, n int, wrap func(io.ReadWriteCloser) io.ReadWriteCloser) (a, b *Carrier) {
	t.Helper()
	if wrap == nil {
		wrap = func(c io.ReadWriteCloser) io.ReadWriteCloser { return c }
	}
	for i := range n {
		x, y := net.Pipe()
		if i == 0 {
			a, b = New(wrap(x), Options{}), New(wrap(y), Options{})
			continue
		}
		a.Add(wrap(x))
		b.Add(wrap(y))
	}
	t.Cleanup(func() { a.fail(ErrClosed); b.fail(ErrClosed); a.Close(); b.Close() })
	return a, b
}

// stalling is a stripe that now and then stands still, and may be cut.
type stalling struct {
	io.ReadWriteCloser
	mu   sync.Mutex
	rnd  *rand.Rand
	left atomic.Int64 // bytes until it is cut; negative: never
}

func (s *stalling) pause() {
	s.mu.Lock()
	var d time.Duration
	if s.rnd.IntN(40) == 0 {
		d = time.Duration(s.rnd.IntN(3000)) * time.Microsecond
	}
	s.mu.Unlock()
	time.Sleep(d)
}

func (s *stalling) Write(p []byte) (int, error) {
	s.pause()
	if left := s.left.Load(); left >= 0 {
		if s.left.Add(-int64(len(p))) < 0 {
			n, _ := s.ReadWriteCloser.Write(p[:min(left, int64(len(p)))])
			s.Close()
			return n, io.ErrClosedPipe
		}
	}
	return s.ReadWriteCloser.Write(p)
}

func (s *stalling) Read(p []byte) (int, error) {
	s.pause()
	return s.ReadWriteCloser.Read(p)
}

// numbered is a message that says its place and proves its content.
func numbered(rnd *rand.Rand, i int) (byte, [][]byte) {
	n := 0
	switch rnd.IntN(10) {
	case 0:
		n = rnd.IntN(1 << 20)
	case 1:
		n = maxBody - 12 + rnd.IntN(24)
	default:
		n = rnd.IntN(300)
	}
	body := make([]byte, n)
	for j := range body {
		body[j] = byte(i + j*7)
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(i))
	head = binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(body))
	k := 0
	if n > 0 {
		k = rnd.IntN(n)
	}
	return byte(i), [][]byte{head, nil, body[:k], body[k:]}
}

func check(m Message, i int) error {
	if m.Kind != byte(i) || len(m.Payload) < 12 || binary.BigEndian.Uint64(m.Payload) != uint64(i) ||
		binary.BigEndian.Uint32(m.Payload[8:]) != crc32.ChecksumIEEE(m.Payload[12:]) {
		return fmt.Errorf("message %d: kind %d, %d bytes, % x", i, m.Kind, len(m.Payload), m.Payload[:min(12, len(m.Payload))])
	}
	return nil
}

func TestOrderBothWays(t *testing.T) {
	for _, n := range []int{1, 3, 8} {
		t.Run(fmt.Sprint(n, " stripes"), func(t *testing.T) {
			seed := uint64(0)
			a, b := pair(t, n, func(c io.ReadWriteCloser) io.ReadWriteCloser {
				seed++
				s := &stalling{ReadWriteCloser: c, rnd: rand.New(rand.NewPCG(seed, 1))}
				s.left.Store(-1)
				return s
			})
			const count = 1500
			var wg sync.WaitGroup
			for i, l := range []*Carrier{a, b} {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(i), 2))
					for j := range count {
						kind, parts := numbered(rnd, j)
						if err := l.Send(kind, parts...); err != nil {
							t.Error(err)
							return
						}
					}
				})
				wg.Go(func() {
					for j := range count {
						m, err := l.Recv()
						if err == nil {
							err = check(m, j)
						}
						if err != nil {
							t.Error(err)
							a.fail(err)
							b.fail(err)
							return
						}
						m.Free()
					}
				})
			}
			wg.Wait()
			if s := a.Stats(); s.RTT == 0 || s.Stripes != n || s.Sent == 0 || s.Received == 0 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// TestEnd: what was sent before Close arrives, then io.EOF, for every number of
// stripes; and Close comes back.
func TestEnd(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		for _, count := range []int{0, 1, 200} {
			a, b := pair(t, n, nil)
			closed := make(chan error, 1)
			go func() {
				for i := range count {
					a.Send(byte(i), make([]byte, i*500))
				}
				closed <- a.Close()
			}()
			for i := range count {
				if m, err := b.Recv(); err != nil || m.Kind != byte(i) || len(m.Payload) != i*500 {
					t.Fatal(n, count, i, m.Kind, len(m.Payload), err)
				}
			}
			if _, err := b.Recv(); err != io.EOF {
				t.Fatal(n, count, err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(n, count, err)
			}
			if err := <-closed; err != nil {
				t.Fatal(n, count, err)
			}
			if err := a.Send(1); !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
			if _, err := a.Recv(); !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
		}
	}
}

// TestCloseInside: a Close in the middle of a Send lets the message out whole.
func TestCloseInside(t *testing.T) {
	a, b := pair(t, 2, nil)
	sent := make(chan error, 1)
	go func() { sent <- a.Send(1, make([]byte, MaxPayload)) }()
	for a.Stats().Queued == 0 {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	time.Sleep(20 * time.Millisecond)
	if m, err := b.Recv(); err != nil || len(m.Payload) != MaxPayload {
		t.Error(len(m.Payload), err)
	}
	if _, err := b.Recv(); err != io.EOF {
		t.Error(err)
	}
	b.Close()
	if err := errors.Join(<-sent, <-closed); err != nil {
		t.Error(err)
	}
}

// TestCloseAlone: Close comes back where the other side goes on sending, or says
// nothing at all.
func TestCloseAlone(t *testing.T) {
	a, b := pair(t, 3, nil)
	go func() {
		for b.Send(1, make([]byte, 100<<10)) == nil {
		}
	}()
	if _, err := a.Recv(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := a.Close(); err != nil || time.Since(began) > linger+3*time.Second {
		t.Error(err, time.Since(began))
	}
	for {
		if _, err := b.Recv(); err != nil {
			break
		}
	}
}

// TestCut: a stripe that ends at any byte ends the link on both sides, with an
// error that says so, after whole messages in order.
func TestCut(t *testing.T) {
	for round := range uint64(30) {
		var stripes []*stalling
		a, b := pair(t, 1+int(round%4), func(c io.ReadWriteCloser) io.ReadWriteCloser {
			s := &stalling{ReadWriteCloser: c, rnd: rand.New(rand.NewPCG(round, uint64(len(stripes))))}
			s.left.Store(-1)
			stripes = append(stripes, s)
			return s
		})
		rnd := rand.New(rand.NewPCG(round, 99))
		stripes[rnd.IntN(len(stripes))].left.Store(rnd.Int64N(200 << 10))
		var wg sync.WaitGroup
		for _, l := range []*Carrier{a, b} {
			rnd := rand.New(rand.NewPCG(round, 3))
			wg.Go(func() {
				for j := 0; ; j++ {
					kind, parts := numbered(rnd, j)
					if err := l.Send(kind, parts...); err != nil {
						if !errors.Is(err, ErrCut) {
							t.Error("send:", err)
						}
						return
					}
				}
			})
			wg.Go(func() {
				for j := 0; ; j++ {
					m, err := l.Recv()
					if err != nil {
						if !errors.Is(err, ErrCut) {
							t.Error("recv:", err)
						}
						return
					}
					if err := check(m, j); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		a.Close()
		b.Close()
	}
}

// TestJoinLater: stripes join in the middle of traffic.
func TestJoinLater(t *testing.T) {
	a, b := pair(t, 1, nil)
	done := make(chan error, 1)
	const count = 3000
	go func() {
		for i := range count {
			m, err := b.Recv()
			if err == nil {
				err = check(m, i)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	rnd := rand.New(rand.NewPCG(4, 4))
	for i := range count {
		if i%500 == 250 {
			x, y := net.Pipe()
			b.Add(y)
			a.Add(x)
		}
		kind, parts := numbered(rnd, i)
		if err := a.Send(kind, parts...); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := a.Stats(); s.Stripes != 7 {
		t.Error(s.Stripes)
	}
}

// counted counts what is read from it.
type counted struct {
	io.ReadWriteCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestMemoryIsBounded: messages that nobody takes, and frames ahead of a slow
// stripe, stop the reading.
func TestMemoryIsBounded(t *testing.T) {
	var n atomic.Int64
	x, y := net.Pipe()
	l := New(counted{x, &n}, Options{})
	defer l.Close()
	x2, y2 := net.Pipe()
	l.Add(counted{x2, &n})
	go io.Copy(io.Discard, y)
	go io.Copy(io.Discard, y2)
	body := make([]byte, maxBody)
	go func() { // everything but frame 0, on the second stripe
		for i := uint64(1); ; i++ {
			var b [headerSize]byte
			header{typ: frameFirst, number: i, size: maxBody, total: maxBody}.put(b[:])
			if _, err := y2.Write(append(b[:], body...)); err != nil {
				return
			}
		}
	}()
	settle := func() int64 {
		for last := int64(-1); ; time.Sleep(100 * time.Millisecond) {
			if now := n.Load(); now == last {
				return now
			} else {
				last = now
			}
		}
	}
	if got := settle(); got < maxHeld || got > maxHeld+2<<20 {
		t.Errorf("%d bytes were read ahead of a missing frame", got)
	}
	var b [headerSize]byte
	header{typ: frameFirst}.put(b[:])
	y.Write(b[:]) // frame 0 comes: all that is held has its turn
	before := n.Load()
	if got := settle(); got > before+maxReady+2<<20 {
		t.Errorf("%d bytes were read though nobody takes messages", got-before)
	}
	for i := range 1000 { // and all of it is there
		m, err := l.Recv()
		if err != nil || i > 0 && len(m.Payload) != maxBody {
			t.Fatal(i, len(m.Payload), err)
		}
		m.Free()
	}
}

func TestTooLong(t *testing.T) {
	a, b := pair(t, 1, nil)
	if err := a.Send(1, make([]byte, MaxPayload+1)); err == nil {
		t.Error("a message above the bound was sent")
	}
	go a.Send(2, bytes.Repeat([]byte("x"), MaxPayload))
	if m, err := b.Recv(); err != nil || len(m.Payload) != MaxPayload {
		t.Fatal(len(m.Payload), err)
	}
}

// TestHostile: what breaks the rules ends the link and is named.
func TestHostile(t *testing.T) {
	frame := func(h header, body int) []byte {
		var b [headerSize]byte
		h.put(b[:])
		return append(b[:], make([]byte, body)...)
	}
	for name, what := range map[string][]byte{
		"a giant message":       frame(header{typ: frameFirst, total: MaxPayload + 1, size: 10}, 10),
		"a giant frame":         frame(header{typ: frameFirst, total: MaxPayload, size: chunkSize}, 0),
		"an unknown type":       frame(header{typ: 77}, 0),
		"a following first":     frame(header{typ: frameMore, size: 5}, 5),
		"a message in another":  append(frame(header{typ: frameFirst, size: 5, total: 10}, 5), frame(header{typ: frameFirst, number: 1, size: 5, total: 5}, 5)...),
		"more than announced":   append(frame(header{typ: frameFirst, size: 5, total: 10}, 5), frame(header{typ: frameMore, number: 1, size: 6}, 6)...),
		"a frame twice":         append(frame(header{typ: frameFirst, size: 5, total: 5}, 5), frame(header{typ: frameFirst, size: 5, total: 5}, 5)...),
		"a held frame twice":    append(frame(header{typ: frameFirst, number: 7, size: 5, total: 5}, 5), frame(header{typ: frameFirst, number: 7, size: 5, total: 5}, 5)...),
		"a following in held":   append(frame(header{typ: frameMore, number: 1, size: 5}, 5), frame(header{typ: frameFirst, size: 5, total: 5}, 5)...),
		"an end before its end": append(frame(header{typ: frameFirst, size: 5, total: 5}, 5), frame(header{typ: frameBye, total: 1}, 0)...),
		"an end in a message":   append(frame(header{typ: frameFirst, size: 5, total: 9}, 5), frame(header{typ: frameBye, number: 1, total: 1}, 0)...),
		"an end with a gap":     append(frame(header{typ: frameFirst, size: 5, total: 5}, 5), frame(header{typ: frameBye, number: 2, total: 1}, 0)...),
		"the unsent arrived":    frame(header{typ: framePong, number: 1, size: pongSize}, 7),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "the unsent arrived" {
				what = append(what[:headerSize], bytes.Repeat([]byte{0x3f}, pongSize)...)
			}
			x, y := net.Pipe()
			l := New(x, Options{})
			defer l.Close()
			io.ReadFull(y, make([]byte, headerSize)) // its first ping
			go io.Copy(io.Discard, y)
			y.Write(what)
			for {
				_, err := l.Recv()
				if err == nil {
					continue
				}
				var broken *ProtocolError
				if !errors.As(err, &broken) {
					t.Errorf("%v", err)
				}
				break
			}
			if err := l.Send(1); err == nil {
				t.Error("the link lives on")
			}
		})
	}
}

// far is a stripe over a long way: what is written arrives later, and only a
// window's worth is under way.
type far struct {
	mu     sync.Mutex
	moved  sync.Cond
	queue  []late
	under  int
	closed bool
	delay  time.Duration
}

type late struct {
	due  time.Time
	data []byte
}

func (f *far) Write(p []byte) (n int, err error) {
	for n < len(p) {
		f.mu.Lock()
		for !f.closed && f.under >= window {
			f.moved.Wait()
		}
		if f.closed {
			f.mu.Unlock()
			return n, io.ErrClosedPipe
		}
		k := min(len(p)-n, 32<<10, window-f.under)
		f.queue = append(f.queue, late{time.Now().Add(f.delay), append([]byte(nil), p[n:n+k]...)})
		f.under += k
		n += k
		f.moved.Broadcast()
		f.mu.Unlock()
	}
	return n, nil
}

func (f *far) Read(p []byte) (int, error) {
	f.mu.Lock()
	for len(f.queue) == 0 && !f.closed {
		f.moved.Wait()
	}
	if f.closed {
		f.mu.Unlock()
		return 0, io.EOF
	}
	due := f.queue[0].due
	f.mu.Unlock()
	time.Sleep(time.Until(due))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, io.EOF
	}
	n := copy(p, f.queue[0].data)
	if f.queue[0].data = f.queue[0].data[n:]; len(f.queue[0].data) == 0 {
		f.queue = f.queue[1:]
	}
	time.AfterFunc(f.delay, func() { // the window's news travels back
		f.mu.Lock()
		defer f.mu.Unlock()
		f.under -= n
		f.moved.Broadcast()
	})
	return n, nil
}

func (f *far) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.moved.Broadcast()
	return nil
}

type duplex struct {
	io.Reader
	io.Writer
	ends [2]*far
}

func (d duplex) Close() error { d.ends[0].Close(); d.ends[1].Close(); return nil }

func longWay(delay time.Duration) (a, b io.ReadWriteCloser) {
	x, y := &far{delay: delay}, &far{delay: delay}
	x.moved.L, y.moved.L = &x.mu, &y.mu
	return duplex{x, y, [2]*far{x, y}}, duplex{y, x, [2]*far{y, x}}
}

// TestGrow: a full window on a long way asks for more stripes, in both
// directions; a slow link or a short way does not.
func TestGrow(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay time.Duration // one way
		rate  int           // bytes a second that are sent; 0: all that goes
		pull  bool
		grows bool
	}{
		{"long and full, push", 100 * time.Millisecond, 0, false, true},
		{"long and full, pull", 100 * time.Millisecond, 0, true, true},
		{"long and slow", 15 * time.Millisecond, 5 << 20, false, false},
		{"short", 0, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, y := longWay(c.delay)
			grew := make(chan int, 10)
			a, b := New(x, Options{Grow: func(want int) { grew <- want }}), New(y, Options{})
			defer a.fail(ErrClosed)
			defer b.fail(ErrClosed)
			from, to := a, b
			if c.pull {
				from, to = b, a
			}
			go func() {
				for {
					if _, err := to.Recv(); err != nil {
						return
					}
				}
			}()
			time.Sleep(6 * c.delay) // the round trip is known before work begins
			go func() {
				block := make([]byte, 128<<10)
				for from.Send(1, block) == nil {
					if c.rate > 0 {
						time.Sleep(time.Duration(len(block)) * time.Second / time.Duration(c.rate))
					}
				}
			}()
			select {
			case want := <-grew:
				if !c.grows || want != growBy {
					t.Errorf("asked for %d stripes at %+v", want, a.Stats())
				}
				if rtt := a.Stats().RTT; rtt < 2*c.delay || rtt > 4*c.delay {
					t.Errorf("round trip %v", rtt)
				}
			case <-time.After(map[bool]time.Duration{true: 20 * time.Second, false: time.Second}[c.grows]):
				if c.grows {
					t.Errorf("did not grow: %+v", a.Stats())
				}
			}
		})
	}
}

// TestArrivesInTheEnd: after a burst the other side tells of all of it, also where the last
// pings overtook what was queued: a sender that waits for room lives by it.
func TestArrivesInTheEnd(t *testing.T) {
	t.Parallel()
	x, y := longWay(20 * time.Millisecond)
	stalls := &stallsFirst{ReadWriteCloser: x}
	a, b := New(stalls, Options{}), New(y, Options{})
	defer a.fail(ErrClosed)
	defer b.fail(ErrClosed)
	go func() {
		for {
			if _, err := b.Recv(); err != nil {
				return
			}
		}
	}()
	time.Sleep(200 * time.Millisecond) // the round trip is known
	for range 2 {
		stalls.next.Store(true)
		if err := a.Send(1, make([]byte, 512<<10)); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			s := a.Stats()
			if s.Queued == 0 && s.Sent-s.Arrived < little {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the other side told of %d of %d bytes", s.Arrived, s.Sent)
			}
		}
	}
}

// stallsFirst takes its time over one write: what follows waits in the queue, and leaves at once.
type stallsFirst struct {
	io.ReadWriteCloser
	next atomic.Bool
}

func (s *stallsFirst) Write(p []byte) (int, error) {
	if len(p) > 1000 && s.next.Swap(false) {
		time.Sleep(500 * time.Millisecond)
	}
	return s.ReadWriteCloser.Write(p)
}

// TestNothingOutlives: a closed link leaves no goroutine.
func TestNothingOutlives(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		a, b := pair(t, 4, nil)
		go func() { b.Recv(); b.Close() }()
		a.Send(1, make([]byte, 1000))
		a.Close()
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// FuzzLink feeds a link what another program might: it must end, name the fault
// and hand out nothing that is not whole.
func FuzzLink(f *testing.F) {
	frame := func(h header, body string) []byte {
		var b [headerSize]byte
		h.put(b[:])
		return append(b[:], body...)
	}
	f.Add(frame(header{typ: frameFirst, size: 3, total: 3}, "abc"), []byte{})
	f.Add(frame(header{typ: frameFirst, number: 1, size: 3, total: 3}, "abc"), frame(header{typ: frameFirst, size: 1, total: 1}, "x"))
	f.Add(append(frame(header{typ: framePing, number: 9}, ""), frame(header{typ: frameBye, total: 2}, "")...), frame(header{typ: frameBye, total: 2}, ""))
	f.Add(frame(header{typ: framePong, number: 1, size: 16}, "0123456789abcdef"), []byte{1, 2})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		l := New(given{bytes.NewReader(one)}, Options{patience: time.Millisecond})
		l.Add(given{bytes.NewReader(two)})
		got := 0
		for {
			m, err := l.Recv()
			if err != nil {
				break
			}
			got += len(m.Payload)
			m.Free()
		}
		if got > len(one)+len(two) {
			t.Errorf("%d bytes came of %d", got, len(one)+len(two))
		}
		l.fail(ErrClosed)
		l.Close()
	})
}

type given struct{ io.Reader }

func (given) Write(p []byte) (int, error) { return len(p), nil }
func (given) Close() error                { return nil }

func BenchmarkLink(b *testing.B) {
	for _, c := range []struct{ stripes, size int }{{1, 1 << 20}, {4, 1 << 20}, {1, 8 << 20}, {1, 100}} {
		b.Run(fmt.Sprintf("%d stripes, %d bytes", c.stripes, c.size), func(b *testing.B) {
			l, r := pair(b, c.stripes, nil)
			b.SetBytes(int64(c.size))
			block := make([]byte, c.size)
			done := make(chan struct{})
			b.ResetTimer()
			go func() {
				defer close(done)
				for range b.N {
					m, err := r.Recv()
					if err != nil {
						b.Error(err)
						return
					}
					m.Free()
				}
			}()
			for range b.N {
				if err := l.Send(1, block); err != nil {
					b.Fatal(err)
				}
			}
			<-done
		})
	}
}
