//go:build unix

package far

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote/agent/link"
	"rentop/sync/tree"
)

// slow is a byte stream with a rate and a delay in its sending direction, and no
// more than a channel's window on its way.
type slow struct {
	net.Conn
	rate  float64
	delay time.Duration
	queue chan late
	ended chan struct{}
}

type late struct {
	b  []byte
	at time.Time
}

func newSlow(c net.Conn, rate float64, delay time.Duration) *slow {
	s := &slow{Conn: c, rate: rate, delay: delay, queue: make(chan late, 2<<20/(16<<10)), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for l := range s.queue {
			time.Sleep(time.Until(l.at))
			if _, err := s.Conn.Write(l.b); err != nil {
				for range s.queue {
				}
				return
			}
		}
		s.Conn.(*net.UnixConn).CloseWrite()
	}()
	return s
}

func (s *slow) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part := b[:min(len(b), 16<<10)]
		b = b[len(part):]
		time.Sleep(time.Duration(float64(len(part)) / s.rate * float64(time.Second)))
		s.queue <- late{append([]byte(nil), part...), time.Now().Add(s.delay)}
	}
	return n, nil
}

func (s *slow) CloseWrite() error { close(s.queue); return nil }

// slowPair is a client with its server over such a link.
func slowPair(t testing.TB, rate float64, rtt time.Duration) *Client {
	a, b := socketPair(t)
	here, there := newSlow(a, rate, rtt/2), newSlow(b, rate, rtt/2)
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), link.New(there, link.Options{})) }()
	c := NewClient(link.New(here, link.Options{}))
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil {
			t.Errorf("the helper ended with %v", err)
		}
	})
	return c
}

// some copies files of dir until they are that long.
func some(t testing.TB, dir string, size int64) string {
	dst := shm(t)
	for _, it := range itemsOf(t, dir) {
		p := filepath.Join(dst, it.Entry.Path)
		if it.Op == Mkdir {
			os.MkdirAll(p, 0o755)
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, it.Entry.Path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if size -= int64(len(b)); size < 0 {
			break
		}
	}
	return dst
}

func BenchmarkSlowLink(b *testing.B) {
	src := some(b, filepath.Join(goroot(b), "src"), 11<<20)
	items := itemsOf(b, src)
	for _, c := range []struct {
		name string
		rate float64
		rtt  time.Duration
	}{{"8Mbit-80ms", 1e6, 80 * time.Millisecond}, {"100Mbit-40ms", 12.5e6, 40 * time.Millisecond}, {"1Gbit-100ms", 125e6, 100 * time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			client := slowPair(b, c.rate, c.rtt)
			client.Resolve(b.Context(), "~") // as a transfer begins
			client.List(b.Context(), src, Walk{}, func(tree.Entry) error { return nil })
			for b.Loop() {
				var wire int64
				o := Options{Wire: func(n int64) { wire += n }, Done: func(it Item, err error) {
					if err != nil {
						b.Error(err)
					}
				}}
				if err := client.Push(b.Context(), src, shm(b), feed(items), o); err != nil && err != io.EOF {
					b.Fatal(err)
				}
				b.ReportMetric(float64(wire), "wire-bytes")
			}
		})
	}
}
