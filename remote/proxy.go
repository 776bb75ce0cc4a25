// A ProxyCommand of the person's own ssh_config as a connection.

package remote

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// proxyConn is the standard input and output of a running command. Close ends
// the command with all its children and waits for it, so none is left behind.
type proxyConn struct {
	in, out *os.File // ours
	cmd     *exec.Cmd
	group   *processGroup
	stderr  lastWords
	close   sync.Once
	exited  chan struct{}
	waitErr error
}

// proxyError says that a ProxyCommand ended before the login.
type proxyError struct {
	command, stderr string
	err             error
}

func (e *proxyError) Unwrap() error { return e.err }
func (e *proxyError) Error() string {
	s := fmt.Sprintf("the ProxyCommand of your ssh_config failed: %s", Short(e.command, 100))
	if e.err != nil {
		s += fmt.Sprintf(" (%v)", e.err)
	}
	if e.stderr != "" {
		s += ": " + e.stderr
	}
	return s
}

func startProxy(command string) (*proxyConn, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		in.Close()
		return nil, err
	}
	p := &proxyConn{in: in, out: out, exited: make(chan struct{})}
	p.cmd = shellCommand(command)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.stderr
	p.cmd.WaitDelay = 2 * time.Second // a grandchild may hold stderr
	p.group, err = startGroup(p.cmd)
	childIn.Close()
	childOut.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, &proxyError{command: command, err: err}
	}
	go func() {
		p.waitErr = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// failure is the error of a command that ended by itself, nil where it runs.
func (p *proxyConn) failure(ctx context.Context, command string) error {
	t := time.NewTimer(200 * time.Millisecond) // its end of the pipe closes a moment before it exits
	defer t.Stop()
	select {
	case <-p.exited:
		return &proxyError{command: command, stderr: p.stderr.String(), err: p.waitErr}
	case <-ctx.Done():
	case <-t.C:
	}
	return nil
}

func (p *proxyConn) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *proxyConn) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *proxyConn) Close() error {
	p.close.Do(func() {
		p.group.kill()
		p.in.Close()
		<-p.exited
		p.out.Close()
		p.group.release()
	})
	return nil
}

type proxyAddr struct{}

func (proxyAddr) Network() string { return "proxy" }
func (proxyAddr) String() string  { return "0.0.0.0:0" }

func (p *proxyConn) LocalAddr() net.Addr              { return proxyAddr{} }
func (p *proxyConn) RemoteAddr() net.Addr             { return proxyAddr{} }
func (p *proxyConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (p *proxyConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (p *proxyConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// lastWords keeps the last bytes written to it.
type lastWords struct {
	mu sync.Mutex
	b  []byte
}

func (t *lastWords) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-512):]...)
	t.b = t.b[max(0, len(t.b)-512):]
	return len(p), nil
}

func (t *lastWords) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Short(strings.TrimSpace(string(t.b)), 300)
}
