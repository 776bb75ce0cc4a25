// One live connection.

package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Conn is a logged-in connection to an instance. It ends with Close, when the
// instance hangs up, or after about 15 s of silence; Done then closes and Err
// says why.
type Conn struct {
	o       *DialOptions
	ep      Endpoint
	closers []net.Conn    // transports, the first hop's first
	clients []*ssh.Client // one a hop; the last is the instance's
	last    *watchedConn  // the instance's transport
	info    ConnInfo
	open    *channels // session channels, here and on further connections

	mu     sync.Mutex // guards the fields below
	health Health
	reason error // why it ends
	wake   chan struct{}

	ending sync.Once
	done   chan struct{}
}

// ConnInfo says how a connection came about.
type ConnInfo struct {
	Address string // user@host:port
	Via     string // the jump host or "ProxyCommand", "" where direct
	Server  string // the server's version line, cleaned
	HostKey string // fingerprint
	Method  string // of the login: "publickey", "password", …
	Key     string // the key that was taken: its file or the agent's comment
	Took    time.Duration
}

// ErrClosed is Err after Close.
var ErrClosed = errors.New("the connection was closed")

// start begins the life of a connection whose login is done.
func (c *Conn) start(d *dialer) {
	h := d.state[len(d.state)-1]
	c.info = ConnInfo{Address: h.Address(), Via: Endpoint{Jump: d.hops[:len(d.hops)-1], ProxyCommand: d.state[0].ProxyCommand}.Via(),
		Server: Short(string(c.Client().ServerVersion()), 80), HostKey: ssh.FingerprintSHA256(h.hostKey),
		Method: h.auth.last, Took: d.o.Now().Sub(d.started)}
	if h.auth.last == "publickey" {
		c.info.Key = h.auth.acceptedName
	}
	if c.info.Method == "" {
		c.info.Method = "none"
	}
	c.health = Health{State: Alive, Since: d.o.Now()}
	c.wake = make(chan struct{}, 1)
	c.open = newChannels(c.Client(), c.further)
	go c.watch()
	go c.keepalive()
}

// watch waits for the end and cleans up.
func (c *Conn) watch() {
	err := c.Client().Wait()
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the instance ended the connection")
	}
	c.mu.Lock()
	if c.reason == nil {
		c.reason = &DialError{Address: c.info.Address, Text: Short(err.Error(), 200), Err: err}
	}
	c.mu.Unlock()
	c.open.close()
	c.release()
	c.setHealth(Dead, 0, c.Err())
	close(c.done)
}

// end makes the connection end for a reason; the first reason counts.
func (c *Conn) end(reason error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = reason
	}
	c.mu.Unlock()
	c.ending.Do(func() {
		// The transport first: a close message could block on a dead link.
		c.closers[0].Close()
	})
}

// release closes everything, from the transport up.
func (c *Conn) release() {
	for _, nc := range c.closers {
		nc.Close()
	}
	for _, cl := range c.clients {
		cl.Close()
	}
	for _, cl := range c.clients {
		cl.Wait()
	}
}

// Close ends the connection and returns when all of it is gone. It may be called
// more than once.
func (c *Conn) Close() error {
	c.end(ErrClosed)
	<-c.done
	return nil
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection ended, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// Info says how the connection came about.
func (c *Conn) Info() ConnInfo { return c.info }

// Client is the SSH client of the instance.
func (c *Conn) Client() *ssh.Client { return c.clients[len(c.clients)-1] }

// Again opens another connection to the same place: for bulk transfers, or where
// the server allows no more channels on one. It asks nothing that was answered in
// this run, and does not report health. The caller closes it.
func (c *Conn) Again(ctx context.Context) (*Conn, error) {
	o := *c.o
	o.OnHealth, o.OnStage = nil, nil
	return Dial(ctx, c.ep, o)
}
