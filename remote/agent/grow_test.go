//go:build linux

package agent

import (
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/agent/serve"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
)

// TestGrows: over a long way a busy link opens more channels, in whichever
// direction it is busy, and as many as the server allows.
func TestGrows(t *testing.T) {
	for _, c := range []struct {
		name, service string
		o             sshtest.Options
		min, max      int
	}{
		{"pull", "flood", sshtest.Options{}, 4, 8},
		{"push", "sink", sshtest.Options{}, 4, 8},
		{"few sessions", "flood", sshtest.Options{MaxSessions: 5}, 2, 3},
		{"one session", "flood", sshtest.Options{MaxSessions: 1}, 1, 1},
		{"dropbear", "flood", sshtest.Options{Dropbear: true}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := sshtest.Start(t, c.o)
			p := sshtest.NewProxy(t, srv.Addr)
			conn := dialtest.Conn(t, srv, p.Addr)
			o := own(t)
			s, err := Open(soon(t), conn, nil, c.service, o)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			p.Delay(40 * time.Millisecond)
			if s, err = Open(soon(t), conn, nil, c.service, o); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // the round trip is known before work begins
			go func() {                        // ends with the link
				for block := make([]byte, 256<<10); c.service == "sink"; {
					if s.Link().Send(1, block) != nil {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			recv := make(chan error, 1)
			go func() { // likewise
				for {
					m, err := s.Link().Recv()
					if err != nil {
						recv <- err
						return
					}
					m.Free()
				}
			}()
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end) && s.Stats().Stripes < c.min; time.Sleep(20 * time.Millisecond) {
			}
			time.Sleep(time.Second)
			st := s.Stats()
			if st.Stripes < c.min || st.Stripes > c.max {
				t.Errorf("%d stripes, want %d to %d: %+v", st.Stripes, c.min, c.max, st)
			}
			select {
			case err := <-recv:
				t.Errorf("the link ended: %v", s.Explain(err))
			default:
			}
			if st.Stripes > 1 { // what a person does meanwhile has its channel
				if out, err := remote.Output(soon(t), conn, "echo hello"); err != nil || string(out) != "hello\n" {
					t.Error(string(out), err)
				}
			}
			p.Heal()
			s.Close()
			gone(t, srv)
		})
	}
}

// TestRoundTrips: starting an installed helper costs a channel and a round trip;
// an echo of what was sent with the greeting costs no more.
func TestRoundTrips(t *testing.T) {
	const way = 60 * time.Millisecond
	srv := sshtest.Start(t, sshtest.Options{})
	p := sshtest.NewProxy(t, srv.Addr)
	conn := dialtest.Conn(t, srv, p.Addr)
	o := own(t)
	s, err := Open(soon(t), conn, nil, "echo", o)
	if err != nil {
		t.Fatal(err)
	}
	ping(t, s)
	s.Close()
	fastest := func() time.Duration {
		best := time.Hour
		for range 12 {
			began := time.Now()
			s, err := Open(soon(t), conn, nil, "echo", o)
			if err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
			s.Close()
		}
		return best
	}
	near := fastest() // what the processes cost
	p.Delay(way)
	far := fastest()
	trips := (far - near).Seconds() / (2 * way).Seconds()
	t.Logf("Open takes %v here, and %.2f round trips more over %v", near, trips, 2*way)
	if trips > 2.7 { // a third would show
		t.Errorf("Open takes %.2f round trips", trips)
	}
}

// TestLocalStream: the same over this machine's sh, without SSH.
func TestLocalStream(t *testing.T) {
	home := t.TempDir()
	h := here{remote.Local{Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}}
	for range 2 {
		s, err := Open(soon(t), h, nil, "echo", own(t))
		if err != nil {
			t.Fatal(err)
		}
		ping(t, s)
		if !strings.HasPrefix(s.Hello().Program, home+"/.cache/rentop/"+serve.Prefix) {
			t.Error(s.Hello().Program)
		}
		s.Close()
	}
}
