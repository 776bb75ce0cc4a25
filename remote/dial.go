// Making a connection: TCP, a ProxyCommand or jump hosts, then host key and login.

package remote

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// DialOptions are what a connection needs beside its Endpoint.
type DialOptions struct {
	Instance string       // the instance's name, for questions
	UID      string       // whose host keys and secrets; "" is the address
	Ask      Asker        // nil: nobody
	Secrets  Secrets      // nil: nothing is kept
	HostKeys *HostKeys    // required
	OnHealth func(Health) // called when the state changes and at each round trip; must not block
	OnStage  func(string) // "connecting to …", from one goroutine at a time
	// Memory is shared by all connections of this run; nil is a fresh one.
	Memory *AuthMemory
	// AcceptHostKey is the fingerprint ("SHA256:…") that the person has confirmed.
	AcceptHostKey string
	// Timeout covers each hop's TCP connection and handshake, without the time
	// that the person takes to answer; 0 is ssh_config's ConnectTimeout or 20 s.
	Timeout   time.Duration
	Keepalive Keepalive
	Throttle  Throttle         // nil: as fast as the line is
	Now       func() time.Time // the wall clock; nil is time.Now
}

const (
	defaultTimeout = 20 * time.Second
	maxRedials     = 2
	stageLogin     = "logging in"
)

func (o *DialOptions) stage(s string) {
	if o.OnStage != nil {
		o.OnStage(s)
	}
}

// Dial connects and logs in. It returns when the login is done, ctx ends or a
// hop's timeout is over. Errors are *DialError: one sentence with a cure.
func Dial(ctx context.Context, ep Endpoint, o DialOptions) (*Conn, error) {
	if o.HostKeys == nil {
		return nil, errors.New("remote.Dial needs HostKeys")
	}
	if o.Memory == nil {
		o.Memory = NewAuthMemory()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &dialer{o: &o, ep: ep, hops: append(append([]Endpoint(nil), ep.Jump...), ep), started: o.Now()}
	for i := range d.hops {
		h := &hop{Endpoint: d.hops[i], final: i == len(d.hops)-1}
		h.Jump = nil
		if i > 0 {
			h.ProxyCommand = ""
		}
		h.id = o.UID
		if !h.final || h.id == "" {
			h.id = jumpID(h.Endpoint)
		}
		h.auth = &authenticator{ctx: ctx, ep: h.Endpoint, o: &o, id: h.id, pause: h.pause}
		h.auth.bag = &keyBag{ep: h.Endpoint, ask: h.auth.passphrase, wait: h.pause}
		defer h.auth.bag.close()
		defer h.auth.endTurn()
		d.state = append(d.state, h)
	}
	for try := 0; ; try++ {
		c, failed, err := d.once(ctx)
		if err == nil {
			return c, nil
		}
		if try >= maxRedials || ctx.Err() != nil || !failed.worthAnother(err, try) {
			return nil, err
		}
	}
}

// dialer is one Dial.
type dialer struct {
	o       *DialOptions
	ep      Endpoint
	hops    []Endpoint
	state   []*hop
	started time.Time
}

// hop is one host on the way; it lives through redials.
type hop struct {
	Endpoint
	final bool
	id    string
	auth  *authenticator

	mu       sync.Mutex // guards the fields below: the key is checked beside the login
	guard    *guard     // of the connection being made
	over     bool       // that connection has failed
	checking sync.WaitGroup
	hostKey  ssh.PublicKey // as accepted
	keyErr   error
	answered bool // the person was asked about the key on this connection
}

func (h *hop) keyVerdict() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keyErr
}

func (h *hop) late() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered && !h.auth.begun()
}

func (h *hop) pause() func() {
	h.mu.Lock()
	g := h.guard
	h.mu.Unlock()
	if g == nil {
		return func() {}
	}
	return g.pause()
}

// worthAnother is true where a new connection can go further than the last: keys
// are left, or the server hung up while the person was typing. Keys get one more
// connection: OpenSSH 9.8 bars an address after three failed ones.
func (h *hop) worthAnother(err error, try int) bool {
	a := h.auth
	switch {
	case errors.Is(err, errMoreKeys):
		return try == 0
	case h.keyVerdict() != nil || a.fatal != nil:
		return false
	case a.late || h.late():
		return true
	case errors.Is(err, errTooMany) && a.last == "publickey":
		k := a.nextKeyAnew()
		return k != nil && try == 0 || k == nil && len(a.methods) > 1
	case errors.Is(err, errTooMany):
		return a.prompts < maxPrompts
	}
	return false
}

// hungUp is true where the server ended the connection for its failures.
func hungUp(err error) bool { return strings.Contains(err.Error(), "Too many authentication failures") }

// once makes one attempt through all hops.
func (d *dialer) once(ctx context.Context) (_ *Conn, failed *hop, err error) {
	c := &Conn{o: d.o, ep: d.ep, done: make(chan struct{})}
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	for i, h := range d.state {
		if err = d.reach(ctx, c, h, i); err != nil {
			return nil, h, err
		}
	}
	c.start(d)
	return c, nil, nil
}

// reach adds one hop to c.
func (d *dialer) reach(ctx context.Context, c *Conn, h *hop, i int) error {
	timeout := d.o.Timeout
	if timeout == 0 {
		timeout = h.ConnectTimeout
	}
	if timeout == 0 {
		timeout = defaultTimeout
	}
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := newGuard(timeout, func() { cancel(errConnectTimeout) })
	defer g.stop()
	h.mu.Lock()
	h.guard, h.over, h.hostKey, h.keyErr, h.answered = g, false, nil, nil, false
	h.mu.Unlock()
	h.auth.begin(func() bool { return false })

	stage := "connecting to " + joinPort(h.Host, h.Port)
	d.o.stage(stage)
	fail := func(err error) error {
		switch {
		case h.keyVerdict() != nil:
			err = h.keyVerdict()
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case g.fired():
			err = errConnectTimeout
		}
		return explain(h.Endpoint, stage, err)
	}
	raw, err := d.transport(tctx, c, h, i)
	if err != nil {
		return fail(err)
	}
	under := raw
	if i == 0 && d.o.Throttle != nil {
		under = newThrottledConn(raw, d.o.Throttle)
	}
	c.closers = append(c.closers, under)
	// Deadlines do not work over a jump host's channel or a pipe: what does is
	// closing the first transport, which ends everything above it.
	stop := context.AfterFunc(tctx, func() { c.closers[0].Close() })
	defer stop()
	nc := newWatchedConn(under)
	addr := joinPort(h.Host, h.Port)
	if h.HostKeyAlias != "" {
		addr = joinPort(h.HostKeyAlias, 22)
	}
	look, err := d.o.HostKeys.look(h.id, addr, h.KnownHosts)
	if err != nil {
		return fail(err)
	}
	stage = "waiting for its SSH greeting"
	h.auth.begin(nc.broken.Load)
	cfg := &ssh.ClientConfig{
		User:              h.User,
		ClientVersion:     "SSH-2.0-rentop",
		HostKeyAlgorithms: look.algs,
		HostKeyCallback: func(_ string, remote net.Addr, key ssh.PublicKey) error {
			return d.hostKeyShown(ctx, h, look, remote, key)
		},
		AuthCallback: func(cc *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
			if stage != stageLogin {
				stage = stageLogin
				d.o.stage("logging in as " + h.User)
			}
			return h.auth.next(cc)
		},
	}
	// AES in hardware first: a bulk transfer is bound by it.
	cfg.Ciphers = []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305,
		ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR}
	sc, chans, reqs, err := ssh.NewClientConn(nc, addr, cfg)
	if err != nil {
		h.mu.Lock()
		h.over = true
		h.mu.Unlock()
		h.checking.Wait() // the person may be looking at the key of a server that has hung up
		if hungUp(err) {
			h.auth.hungUp()
			err = h.auth.failed(errTooMany)
		}
		if p, ok := raw.(*proxyConn); ok && !h.auth.begun() {
			if perr := p.failure(tctx, h.ProxyCommand); perr != nil {
				err = perr
			}
		}
		return fail(err)
	}
	h.auth.worked()
	if !stop() { // ctx or the guard ended at the last moment
		sc.Close()
		return fail(errConnectTimeout)
	}
	c.clients = append(c.clients, ssh.NewClient(sc, chans, reqs))
	c.last = nc
	return nil
}

// transport opens the bytes below SSH: TCP, a command, or a channel of the hop
// before.
func (d *dialer) transport(ctx context.Context, c *Conn, h *hop, i int) (net.Conn, error) {
	if i > 0 {
		type result struct {
			nc  net.Conn
			err error
		}
		ch := make(chan result, 1)
		go func() { // ends when c's first transport closes
			nc, err := c.clients[i-1].Dial("tcp", joinPort(h.Host, h.Port))
			ch <- result{nc, err}
		}()
		select {
		case r := <-ch:
			return r.nc, r.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if h.ProxyCommand != "" {
		return startProxy(h.ProxyCommand)
	}
	dial := net.Dialer{KeepAlive: 15 * time.Second}
	return dial.DialContext(ctx, "tcp", joinPort(h.Host, h.Port))
}

// hostKeyShown runs beside NewClientConn, which does not wait for it when the
// connection fails.
func (d *dialer) hostKeyShown(ctx context.Context, h *hop, l *lookup, remote net.Addr, key ssh.PublicKey) error {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return errCut
	}
	if h.hostKey != nil { // keys are exchanged anew every GiB: nobody is asked again
		defer h.mu.Unlock()
		if bytes.Equal(h.hostKey.Marshal(), key.Marshal()) {
			return nil
		}
		return &HostKeyChangedError{KeyType: key.Type(), Known: []string{ssh.FingerprintSHA256(h.hostKey)}, Now: ssh.FingerprintSHA256(key)}
	}
	h.checking.Add(1)
	h.mu.Unlock()
	defer h.checking.Done()
	err := d.checkHostKey(ctx, h, l, remote, key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keyErr = err; err == nil {
		h.hostKey = key
	}
	return err
}

// checkHostKey decides on the key that h shows.
func (d *dialer) checkHostKey(ctx context.Context, h *hop, l *lookup, remote net.Addr, key ssh.PublicKey) error {
	fp := ssh.FingerprintSHA256(key)
	v := l.judge(remote, key)
	accepted := h.final && d.o.AcceptHostKey != ""
	switch {
	case v == keyRevoked:
		return &HostKeyChangedError{KeyType: key.Type(), Now: fp, Revoked: true}
	case v == keyKnown:
		return nil
	case v == keyUsers:
		if _, cert := key.(*ssh.Certificate); cert {
			return nil // its authority is trusted, not this one key
		}
		return d.o.HostKeys.Add(h.id, key)
	case v == keyChanged:
		if accepted && d.o.AcceptHostKey == fp {
			if err := d.o.HostKeys.Forget(h.id); err != nil {
				return err
			}
			return d.o.HostKeys.Add(h.id, key)
		}
		known, _ := d.o.HostKeys.Known(h.id)
		return &HostKeyChangedError{KeyType: key.Type(), Known: known, Now: fp}
	}
	unknown := &HostKeyUnknownError{KeyType: key.Type(), Fingerprint: fp, Conflict: v == keyOther}
	switch {
	case accepted && d.o.AcceptHostKey == fp, h.AcceptNew && v == keyUnknown && !accepted:
		return d.o.HostKeys.Add(h.id, key)
	case accepted:
		unknown.Wanted = d.o.AcceptHostKey
		return unknown
	}
	prompt := "The host key of " + h.Address() + " is not known yet."
	if unknown.Conflict {
		prompt = "Your known_hosts has another key for " + h.Address() + ". Rented addresses are reused: it may belong to a machine that was there before. Compare the fingerprint with the platform's page."
	}
	resume := h.pause()
	_, err := askPerson(ctx, d.o, Question{Kind: AskHostKey, Instance: d.o.Instance, Host: h.Address(), Prompt: prompt, KeyType: key.Type(), Fingerprint: fp})
	resume()
	h.mu.Lock()
	h.answered = true
	h.mu.Unlock()
	if err != nil {
		unknown.Err = err
		return unknown
	}
	return d.o.HostKeys.Add(h.id, key)
}
