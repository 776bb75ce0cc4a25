package remote

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"rentop/remote/sshtest"
)

// talk proves both directions of a stream that runs cat, and its end.
func talk(t *testing.T, s *Stream) {
	t.Helper()
	data := make([]byte, 3<<20)
	rand.Read(data)
	go func() {
		s.Write(data)
		s.CloseWrite()
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, append([]byte("ready\n"), data...)) {
		t.Errorf("%d bytes came back, %v: %.80q", len(got), err, got)
	}
	if code, ok := ExitCode(s.Wait()); !ok || code != 7 {
		t.Errorf("ended with %v", s.Wait())
	}
	if s.Stderr() != "a word" {
		t.Errorf("stderr %q", s.Stderr())
	}
	s.Close()
}

const talker = "echo ready; echo a word >&2; cat; exit 7"

func TestStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    sshtest.Options
	}{
		{"bash noisy", sshtest.Options{Noise: true}},
		{"fish noisy", sshtest.Options{Shell: "fish", Noise: true}},
		{"tcsh noisy", sshtest.Options{Shell: "tcsh", Noise: true}},
		{"dropbear noisy", sshtest.Options{Dropbear: true, Noise: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := pool(t, sshtest.Start(t, tt.o), "")
			for _, script := range []string{talker, talker, "# " + strings.Repeat("\n", 4000) + "\n" + talker} {
				s, err := c.stream(soon(t), script)
				if err != nil {
					t.Fatal(err)
				}
				talk(t, s)
			}
		})
	}
	t.Run("here", func(t *testing.T) {
		s, err := Local{}.Stream(t.Context(), talker)
		if err != nil {
			t.Fatal(err)
		}
		talk(t, s)
	})
}

// TestStreamClose: a closed stream's program sees the end of its stdin, and its
// channel is free again.
func TestStreamClose(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{MaxSessions: 1})
	c := newChannels(srv.Dial(""), nil)
	t.Cleanup(c.close)
	for range 3 {
		s, err := c.stream(soon(t), "cat; sleep 300")
		if err != nil {
			t.Fatal(err)
		}
		s.Write([]byte("x"))
		io.ReadFull(s, make([]byte, 1))
		s.Close()
		select {
		case <-s.Ended():
		case <-time.After(10 * time.Second):
			t.Fatal("what does not end with its stdin lives on")
		}
	}
}

// TestStreamSilent: a login shell that runs something else is named.
func TestStreamSilent(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{Files: map[string]string{".bashrc": "echo welcome; exit 0\n"}})
	s, err := pool(t, srv, "").stream(soon(t), talker)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var silent *NoMarkerError
	if _, err := s.Read(make([]byte, 10)); !errors.As(err, &silent) || silent.Said != "welcome" {
		t.Errorf("%v", err)
	}
}

// TestStreams: only free channels are taken, and some are left.
func TestStreams(t *testing.T) {
	for _, tt := range []struct {
		name              string
		o                 sshtest.Options
		n, spare, want, w int
	}{
		{"room", sshtest.Options{}, 3, 2, 3, 0},
		{"default limit", sshtest.Options{}, 20, 2, 7, 10},
		{"four", sshtest.Options{MaxSessions: 4}, 7, 2, 1, 4},
		{"one", sshtest.Options{MaxSessions: 1}, 7, 2, 0, 1},
		{"dropbear", sshtest.Options{Dropbear: true}, 7, 2, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := pool(t, sshtest.Start(t, tt.o), "")
			first, err := c.stream(soon(t), "cat")
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			got := c.streams(soon(t), tt.n, tt.spare, talker)
			if len(got) != tt.want || c.lines[0].limit != tt.w {
				t.Errorf("%d streams, want %d; limit %d, want %d", len(got), tt.want, c.lines[0].limit, tt.w)
			}
			for _, s := range got {
				talk(t, s)
			}
			// What is left is free, and what ended is again.
			time.Sleep(settle)
			if again := c.streams(soon(t), tt.n, tt.spare, talker); len(again) != tt.want {
				t.Errorf("then %d streams, want %d", len(again), tt.want)
			} else {
				for _, s := range again {
					talk(t, s)
				}
			}
		})
	}
}
