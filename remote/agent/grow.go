package agent

// More stripes: further channels to the same helper.

import (
	"context"
	"fmt"
	"io"
	"time"

	"rentop/remote"
	"rentop/remote/agent/hello"
)

// grow is the link's wish for stripes. One growth runs at a time, and a server that
// refuses channels ends it without a word: the link works as it is.
func (s *Session) grow(want int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.growing {
		return
	}
	s.growing = true
	s.wg.Go(func() { // Close waits for it
		defer func() {
			s.mu.Lock()
			s.growing = false
			s.mu.Unlock()
		}()
		ctx, cancel := context.WithTimeout(s.life, joinTimeout)
		defer cancel()
		script := "exec " + remote.Quote(s.hello.Program)
		for _, a := range append(append([]string(nil), s.args...), "join", s.hello.Join) {
			script += " " + remote.Quote(a)
		}
		streams := s.host.Streams(ctx, want-s.link.Stats().Stripes, spareChannels, script)
		joined := make(chan struct{})
		for _, st := range streams {
			go func() { // ends with the stream, which ends with ctx
				defer func() { joined <- struct{}{} }()
				if err := s.join(ctx, st); err != nil {
					st.Close()
				}
			}()
		}
		for range streams {
			<-joined
		}
	})
}

// join waits until the helper holds the other end, and puts the stripe to work.
func (s *Session) join(ctx context.Context, st *remote.Stream) error {
	stop := context.AfterFunc(ctx, func() { st.Close() })
	defer stop()
	late := time.AfterFunc(joinTimeout, func() { st.Close() })
	defer late.Stop()
	var b [len(hello.Joined)]byte
	if _, err := io.ReadFull(st, b[:]); err != nil {
		return err
	}
	if string(b[:]) != hello.Joined {
		return fmt.Errorf("a stripe began with %q", b)
	}
	if _, err := io.WriteString(st, hello.Go); err != nil {
		return err
	}
	if !stop() || !late.Stop() {
		return context.Cause(ctx)
	}
	return s.link.Add(st)
}
