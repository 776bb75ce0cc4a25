// A terminal on an instance: a person's hands on a pty.

package remote

import (
	"context"
	"fmt"
	"io"
	"sort"

	"golang.org/x/crypto/ssh"
)

// TerminalOptions are a person's terminal and what shall run in it.
type TerminalOptions struct {
	Term   string // TERM; "" is xterm-256color
	Size   Size   // cells; zero is 80×24
	Resize <-chan Size
	In     io.Reader // keys; a Read that blocks may outlive Terminal
	Out    io.Writer
	Script string            // POSIX sh; "" is the login shell
	Env    map[string]string // asked for; most servers take only LANG and LC_*
}

// Terminal runs a shell or script on a pty until it ends and returns its exit
// code. The caller's own terminal is in raw mode meanwhile. The error is ErrCut
// where the connection ended first, or ctx's.
func (c *Conn) Terminal(ctx context.Context, o TerminalOptions) (code int, err error) {
	ch, err := c.open.get(ctx)
	if err != nil {
		return 0, err
	}
	return ch.terminal(ctx, o)
}

type ptyRequest struct {
	Term                       string
	Columns, Rows, Width, High uint32
	Modes                      string
}

type windowChange struct{ Columns, Rows, Width, High uint32 }

func (c *channel) terminal(ctx context.Context, o TerminalOptions) (int, error) {
	if o.Term == "" {
		o.Term = "xterm-256color"
	}
	if o.Size.Cols <= 0 || o.Size.Rows <= 0 {
		o.Size = Size{80, 24}
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	ended, failed := make(chan exit, 1), make(chan error, 2)
	go func() { ended <- c.wait() }() // ends with the channel

	// One round trip: only the last request waits for its answer. A server that
	// refuses the pty then runs the command without one, which the script sees.
	keys := make([]string, 0, len(o.Env))
	for k := range o.Env {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		c.SendRequest("env", false, ssh.Marshal(struct{ Name, Value string }{k, o.Env[k]}))
	}
	c.SendRequest("pty-req", false, ssh.Marshal(ptyRequest{o.Term, uint32(o.Size.Cols), uint32(o.Size.Rows), 0, 0, "\x00"}))
	go func() {
		var err error
		if o.Script == "" {
			err = c.request("shell", nil)
		} else {
			err = c.request("exec", struct{ Command string }{loginWord(prologue + o.Script)})
		}
		if err != nil {
			failed <- err
			return
		}
		if o.In != nil {
			io.Copy(c, o.In) // an error: the channel has ended
			c.CloseWrite()
		}
	}()
	copied := make(chan struct{})
	out := &demarker{w: o.Out, found: true}
	go func() { // ends with the channel
		defer close(copied)
		if _, err := io.Copy(out, c); err != nil {
			failed <- fmt.Errorf("write to the terminal: %w", err)
		}
	}()
	go io.Copy(io.Discard, c.Stderr()) // a pty has none

	streaming, resize := copied, o.Resize
	var err error
	var end exit
	for done := false; !done && err == nil; {
		select {
		case end = <-ended:
			done = true
		case <-streaming:
			streaming = nil
		case s, ok := <-resize:
			if !ok {
				resize = nil
			} else if s.Cols > 0 && s.Rows > 0 {
				c.SendRequest("window-change", false, ssh.Marshal(windowChange{uint32(s.Cols), uint32(s.Rows), 0, 0}))
			}
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		c.abandon()
		out.shut()
		return 0, err
	}
	<-copied // the channel is closed: what came is written
	c.end()
	out.shut()
	if !end.known {
		return 0, ErrCut
	}
	return end.code, nil
}

// loginWord is a command line that runs a script under sh from any login shell,
// with stdin left to the terminal: the script as octal escapes for printf %b, so
// that neither sh, csh nor fish finds anything in it to expand.
func loginWord(script string) string {
	b := []byte(`exec sh -c 'eval "$(printf %b "`)
	for _, c := range []byte(script) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ' ' || c == '/' || c == '.' || c == '-' || c == '_' || c == '=' || c == ':' {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, `\0%03o`, c)
		}
	}
	return string(append(b, `")"'`...))
}
