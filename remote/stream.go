// A program with open stdin and stdout: what a protocol of our own runs over.

package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Stream is a script that runs with its stdin and stdout open. Nothing that the
// login printed before it is read. The caller closes it.
type Stream struct {
	in     io.Writer
	out    io.Reader
	shut   func() error // ends stdin
	end    func()       // lets go of all of it, soon and without waiting
	ended  chan struct{}
	err    error // how the script ended, once ended is closed
	stderr *tail
	marker []byte

	begun   bool   // the marker was read
	held    []byte // read, and not yet given out
	closing sync.Once
}

// tail is a tailBuffer that may be read while it is written.
type tail struct {
	mu sync.Mutex
	b  tailBuffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Short(strings.TrimSpace(string(t.b.b)), stderrKept)
}

// Stream starts a script, see [Stream]; ctx covers the start only. It takes a
// channel until it is closed. Where the script cannot begin, the first Read says
// why.
func (c *Conn) Stream(ctx context.Context, script string) (*Stream, error) {
	return c.open.stream(ctx, script)
}

// Streams starts a script up to n times, on channels that are free now; spare more
// stay free for others. There are fewer, or none, where the server allows no more.
func (c *Conn) Streams(ctx context.Context, n, spare int, script string) []*Stream {
	return c.open.streams(ctx, n, spare, script)
}

func (c *channels) stream(ctx context.Context, script string) (*Stream, error) {
	if strings.IndexByte(script, 0) >= 0 {
		return nil, errNUL
	}
	ch, err := c.get(ctx)
	if err != nil {
		return nil, err
	}
	return streamOn(ch, script), nil
}

func (c *channels) streams(ctx context.Context, n, spare int, script string) []*Stream {
	if strings.IndexByte(script, 0) >= 0 {
		return nil
	}
	var out []*Stream
	for _, ch := range c.several(ctx, n, spare) {
		out = append(out, streamOn(ch, script))
	}
	return out
}

var errNUL = errors.New("a script may not contain a NUL byte")

// marked is a script that prints a marker first.
func marked(script string) (marker, whole string) {
	marker = newMarker()
	return marker, "printf '%s\\n' " + marker + "; printf '%s\\n' " + marker + " >&2; " + prologue + script
}

// longestCommand is how long a command line may be: Dropbear takes 9000 bytes at
// most, some forced commands less.
const longestCommand = 8000

// streamOn starts the script on an open channel. It travels in the command line: sshd
// opens its window only when the command has begun, so what goes through stdin is a
// round trip later.
func streamOn(ch *channel, script string) *Stream {
	marker, whole := marked(script)
	command, line := loginWord(whole), ""
	if len(command) > longestCommand {
		command = bootLine
		line, _ = scriptLine(whole) // fails at a NUL only
	}
	kept := &tail{b: tailBuffer{max: stderrKept}}
	started, failed := make(chan struct{}), error(nil)
	s := newStream(marker, ch, kept)
	s.in = writerFunc(func(p []byte) (int, error) {
		<-started
		if failed != nil {
			return 0, failed
		}
		return ch.Write(p)
	})
	s.shut = func() error {
		<-started
		return ch.CloseWrite()
	}
	s.end = func() { go ch.dismiss() } // ends at latest with the connection
	noise := make(chan struct{})
	go func() { // each ends with the channel
		defer close(started)
		if failed = ch.exec(command); failed == nil && line != "" {
			_, failed = io.WriteString(ch, line)
		}
		if failed != nil {
			ch.Close()
		}
	}()
	go func() {
		defer close(noise)
		errOut := &demarker{marker: []byte(marker + "\n"), w: kept}
		if _, err := io.Copy(errOut, ch.Stderr()); err != nil {
			ch.Close() // complaints without end
		}
	}()
	go func() {
		e := ch.wait()
		<-noise
		<-started
		if s.err = e.err([]byte(kept.String())); !e.known && failed != nil {
			s.err = failed
		}
		close(s.ended)
	}()
	return s
}

// dismiss ends stdin, then asks what has not ended by itself to end, then ends it.
func (c *channel) dismiss() {
	c.CloseWrite()
	for _, signal := range []string{"TERM", ""} {
		t := time.NewTimer(endsWithin)
		select {
		case <-c.closed:
		case <-t.C:
			if signal != "" {
				c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{signal}))
			}
		}
		t.Stop()
	}
	c.abandon()
}

func newStream(marker string, out io.Reader, kept *tail) *Stream {
	return &Stream{out: out, ended: make(chan struct{}), stderr: kept, marker: []byte(marker + "\n")}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Write writes to the script's stdin.
func (s *Stream) Write(p []byte) (int, error) { return s.in.Write(p) }

// CloseWrite ends the script's stdin.
func (s *Stream) CloseWrite() error { return s.shut() }

// Read reads the script's stdout; one goroutine at a time may call it. The error is
// a *NoMarkerError where the login shell ran something else.
func (s *Stream) Read(p []byte) (int, error) {
	if !s.begun {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	if len(s.held) > 0 {
		n := copy(p, s.held)
		s.held = s.held[n:]
		return n, nil
	}
	return s.out.Read(p)
}

// begin reads until the marker.
func (s *Stream) begin() error {
	silent := false
	var mu sync.Mutex
	late := time.AfterFunc(markerTimeout, func() {
		mu.Lock()
		silent = true
		mu.Unlock()
		s.end()
	})
	defer late.Stop()
	var said []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := s.out.Read(buf)
		s.held = append(s.held, buf[:n]...)
		if i := bytes.Index(s.held, s.marker); i >= 0 {
			s.held = s.held[i+len(s.marker):]
			s.begun = true
			return nil
		}
		if room := saidLimit - len(said); room > 0 {
			said = append(said, buf[:min(n, room)]...)
		}
		if over := len(s.held) - len(s.marker); over > 0 {
			s.held = append(s.held[:0], s.held[over:]...)
		}
		if err == nil {
			continue
		}
		mu.Lock()
		defer mu.Unlock()
		if !silent {
			<-s.ended
			if _, known := ExitCode(s.err); !known {
				return s.err
			}
		}
		return &NoMarkerError{Said: Short(strings.TrimSpace(string(said)), saidLimit), Timeout: silent}
	}
}

// Close ends the script's stdin and, where that does not end it within seconds, the
// script. It does not wait: a Read under way ends with the script, at latest with
// the connection.
func (s *Stream) Close() error {
	s.closing.Do(s.end)
	return nil
}

// Wait returns how the script ended, as Run does, once all that it had open is
// closed.
func (s *Stream) Wait() error {
	<-s.ended
	return s.err
}

// Ended is closed when the script has ended.
func (s *Stream) Ended() <-chan struct{} { return s.ended }

// Stderr returns the last of what the script wrote to stderr, cleaned.
func (s *Stream) Stderr() string { return s.stderr.String() }
