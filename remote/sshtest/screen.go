package sshtest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Screen collects a terminal's output and waits for text in it. The zero value is
// an empty one.
type Screen struct {
	mu sync.Mutex // protects b
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String is all that was written.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Type writes keys one by one, as a person does: those within 1 ms of each other are
// a paste to tmux (assume-paste-time), in which its own keys mean nothing.
func Type(w io.Writer, keys ...string) {
	for _, k := range keys {
		time.Sleep(20 * time.Millisecond)
		io.WriteString(w, k)
	}
}

// Wait returns when text was written, and fails the test after 30 s without it.
func (s *Screen) Wait(t testing.TB, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %q on the screen: %q", text, s.String())
		}
	}
}

// Nobody is an address on loopback where nothing listens.
func Nobody(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
