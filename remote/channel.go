// One session channel: starting something on it, and how that ended.

package remote

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

// channel is an open session channel.
type channel struct {
	ssh.Channel
	reqs   <-chan *ssh.Request
	line   *line
	closed chan struct{} // closed by wait when the channel is
	given  func()        // gives its place back; called once
	in     chan struct{} // holds a token while something is written: x/crypto's CloseWrite may not meet a Write
}

// Write implements io.Writer.
func (c *channel) Write(p []byte) (int, error) {
	c.in <- struct{}{}
	defer func() { <-c.in }()
	return c.Channel.Write(p)
}

// CloseWrite ends the other side's stdin, after what is being written now: not at
// all where that takes longer than the other side will be given to end.
func (c *channel) CloseWrite() error {
	t := time.NewTimer(endsWithin)
	defer t.Stop()
	select {
	case c.in <- struct{}{}:
		defer func() { <-c.in }()
		return c.Channel.CloseWrite()
	case <-c.closed:
		return io.EOF
	case <-t.C:
		return errors.New("the other side does not read")
	}
}

// endsWithin is how long something that was asked to end is waited for.
const endsWithin = 2 * time.Second

// end closes the channel of something that has ended, or will. It does not wait:
// the server's own close comes first where it comes soon.
func (c *channel) end() {
	go func() { // ends with the channel, at latest with the connection
		defer c.given()
		c.closeSoon(endsWithin)
	}()
}

// closeSoon lets the server close first. Dropbear answers a close twice when the
// process ends meanwhile, and the second would hit the next channel of that number.
func (c *channel) closeSoon(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.closed:
	case <-t.C:
	}
	c.Close()
}

// request sends one and waits for the answer; a nil payload is an empty one.
func (c *channel) request(name string, payload any) error {
	var b []byte
	if payload != nil {
		b = ssh.Marshal(payload)
	}
	ok, err := c.SendRequest(name, true, b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrCut, name, err)
	case !ok:
		return fmt.Errorf("the server refuses %q requests on this connection", name)
	}
	return nil
}

// exec starts a command. Once the server has taken one, others are not waited for.
func (c *channel) exec(command string) error {
	payload := struct{ Command string }{command}
	if c.line.proven.Load() {
		if _, err := c.SendRequest("exec", false, ssh.Marshal(payload)); err != nil {
			return fmt.Errorf("%w: %w", ErrCut, err)
		}
		return nil
	}
	err := c.request("exec", payload)
	if err == nil {
		c.line.proven.Store(true)
	}
	return err
}

// abandon ends what runs on the channel and the channel, without waiting long
// for a link that may be dead.
func (c *channel) abandon() {
	sent := make(chan struct{})
	go func() { // ends at latest with the connection
		defer close(sent)
		defer c.given()
		// sshd signals the whole process group; the rest sees its pipes closed.
		c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"TERM"}))
		c.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{"KILL"}))
		c.closeSoon(500 * time.Millisecond)
	}()
	select {
	case <-sent:
	case <-time.After(time.Second):
	}
}

// exit is how a remote process ended.
type exit struct {
	known  bool
	code   int
	signal string
}

// signals numbers what RFC 4254 names, for the shell's 128+n.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}

// wait reads the channel's requests until the channel is closed.
func (c *channel) wait() (e exit) {
	defer close(c.closed)
	for r := range c.reqs {
		switch r.Type {
		case "exit-status":
			var m struct{ Code uint32 }
			if ssh.Unmarshal(r.Payload, &m) == nil {
				e = exit{known: true, code: int(m.Code)}
			}
		case "exit-signal":
			var m struct {
				Signal string
				Core   bool
				Error  string
				Lang   string
			}
			if ssh.Unmarshal(r.Payload, &m) == nil {
				e = exit{known: true, code: 128 + signals[m.Signal], signal: Short(m.Signal, 20)}
			}
		}
		if r.WantReply {
			r.Reply(false, nil)
		}
	}
	return e
}

// err is nil for exit 0.
func (e exit) err(stderr []byte) error {
	switch {
	case !e.known:
		return ErrCut
	case e.code == 0 && e.signal == "":
		return nil
	}
	return &ExitError{Code: e.code, Signal: e.signal, Stderr: Short(string(stderr), stderrKept)}
}
