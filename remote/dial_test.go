package remote

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/sshtest"
)

// person answers questions as a test wants and notes what was asked.
type person struct {
	mu     sync.Mutex
	asked  []Question
	answer func(q Question) Answer
}

func (p *person) Ask(ctx context.Context, q Question) (Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	f := p.answer
	p.mu.Unlock()
	if f == nil {
		return Answer{}, ErrNobodyToAsk
	}
	return f(q), nil
}

func (p *person) kinds() (s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.asked {
		s += string("hpki"[q.Kind])
	}
	return s
}

// yes trusts host keys and knows one password and one passphrase.
func yes(password, phrase string) func(Question) Answer {
	return func(q Question) Answer {
		switch q.Kind {
		case AskPassword:
			return Answer{OK: password != "", Text: password}
		case AskPassphrase:
			return Answer{OK: phrase != "", Text: phrase}
		}
		return Answer{OK: q.Kind == AskHostKey}
	}
}

// quiet keeps the agent of whoever runs the tests out of them.
func quiet(t *testing.T) { t.Setenv("SSH_AUTH_SOCK", "") }

func serverEndpoint(s *sshtest.Server, addr string) Endpoint {
	if addr == "" {
		addr = s.Addr
	}
	host, port, _ := net.SplitHostPort(addr)
	p, _ := strconv.Atoi(port)
	e := DirectEndpoint(s.User, host, p)
	e.IdentityFiles = []string{s.KeyFile}
	return e
}

func testOptions(t *testing.T, p *person) DialOptions {
	t.Helper()
	hk, err := OpenHostKeys(filepath.Join(t.TempDir(), "known_hosts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := DialOptions{Instance: "a100", UID: "uid-1", HostKeys: hk, Memory: NewAuthMemory(), Timeout: 10 * time.Second}
	if p != nil {
		o.Ask = p
	}
	return o
}

func mustDial(t *testing.T, ep Endpoint, o DialOptions) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), ep, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func whoami(t *testing.T, c *Conn) string {
	t.Helper()
	s, err := c.Client().NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Output("id -un")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// newKeyFile writes a fresh ed25519 key, with a passphrase where given.
func newKeyFile(t *testing.T, dir, name, phrase string) (string, ssh.PublicKey) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, name)
	if phrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, name, []byte(phrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return file, p
}

func authorize(t *testing.T, s *sshtest.Server, keys ...ssh.PublicKey) {
	t.Helper()
	var b []byte
	for _, k := range keys {
		b = append(b, ssh.MarshalAuthorizedKey(k)...)
	}
	// sshd reads the one in Dir, Dropbear the one in the home.
	for _, f := range []string{filepath.Join(s.Dir, "authorized_keys"), filepath.Join(s.Home, ".ssh", "authorized_keys")} {
		if err := os.WriteFile(f, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func both(t *testing.T, o sshtest.Options, f func(t *testing.T, s *sshtest.Server)) {
	for _, dropbear := range []bool{false, true} {
		t.Run(map[bool]string{false: "openssh", true: "dropbear"}[dropbear], func(t *testing.T) {
			o := o
			o.Dropbear = dropbear
			f(t, sshtest.Start(t, o))
		})
	}
}

func TestFirstContactAsksOnce(t *testing.T) {
	quiet(t)
	both(t, sshtest.Options{}, func(t *testing.T, s *sshtest.Server) {
		p := &person{answer: yes("", "")}
		o := testOptions(t, p)
		c := mustDial(t, serverEndpoint(s, ""), o)
		if got := whoami(t, c); got != s.User {
			t.Errorf("logged in as %q", got)
		}
		mustDial(t, serverEndpoint(s, ""), o)
		if p.kinds() != "h" || p.asked[0].Fingerprint != ssh.FingerprintSHA256(s.HostKey()) || p.asked[0].Instance != "a100" {
			t.Errorf("asked %+v", p.asked)
		}
		i := c.Info()
		if i.Method != "publickey" || i.Key != "id_ed25519" || i.HostKey != p.asked[0].Fingerprint || !strings.HasPrefix(i.Server, "SSH-2.0-") {
			t.Errorf("info %+v", i)
		}
		select {
		case <-c.Done():
			t.Error("done while alive")
		default:
		}
		c.Close()
		if c.Err() != ErrClosed || c.Health().State != Dead {
			t.Error(c.Err(), c.Health())
		}
	})
}

func TestUnknownHostKeyWithoutAPerson(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	o := testOptions(t, nil)
	_, err := Dial(t.Context(), serverEndpoint(s, ""), o)
	var unknown *HostKeyUnknownError
	if !errors.As(err, &unknown) || !NeedsPerson(err) || unknown.Fingerprint != ssh.FingerprintSHA256(s.HostKey()) || !strings.Contains(err.Error(), "--accept-host-key "+unknown.Fingerprint) {
		t.Fatal(err)
	}
	o.AcceptHostKey = "SHA256:other"
	if _, err = Dial(t.Context(), serverEndpoint(s, ""), o); !errors.As(err, &unknown) || unknown.Wanted == "" {
		t.Fatal(err)
	}
	o.AcceptHostKey = unknown.Fingerprint
	mustDial(t, serverEndpoint(s, ""), o)
	o.AcceptHostKey = ""
	mustDial(t, serverEndpoint(s, ""), o)
}

func TestChangedHostKeyStops(t *testing.T) {
	quiet(t)
	both(t, sshtest.Options{}, func(t *testing.T, s *sshtest.Server) {
		p := &person{answer: yes("", "")}
		o := testOptions(t, p)
		old := ssh.FingerprintSHA256(s.HostKey())
		mustDial(t, serverEndpoint(s, ""), o).Close()
		s.ReplaceHostKey()
		_, err := Dial(t.Context(), serverEndpoint(s, ""), o)
		var changed *HostKeyChangedError
		if !errors.As(err, &changed) || !NeedsPerson(err) || len(changed.Known) != 1 || changed.Known[0] != old || changed.Now != ssh.FingerprintSHA256(s.HostKey()) {
			t.Fatal(err)
		}
		if p.kinds() != "h" {
			t.Error("a changed key was put up for acceptance:", p.kinds())
		}
		// Another instance at the same address is a first contact, not a change.
		other := o
		other.UID = "uid-2"
		mustDial(t, serverEndpoint(s, ""), other).Close()
		// The person decides: by the new fingerprint, or by forgetting.
		o.AcceptHostKey = changed.Now
		mustDial(t, serverEndpoint(s, ""), o).Close()
		o.AcceptHostKey = ""
		mustDial(t, serverEndpoint(s, ""), o).Close()
		s.ReplaceHostKey()
		if err := o.HostKeys.Forget(o.UID); err != nil {
			t.Fatal(err)
		}
		mustDial(t, serverEndpoint(s, ""), o).Close()
		if p.kinds() != "hhh" {
			t.Error("asked", p.kinds())
		}
	})
}

func TestLeavesNothingBehind(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	o := testOptions(t, &person{answer: yes("", "")})
	mustDial(t, serverEndpoint(s, ""), o).Close()
	before := runtime.NumGoroutine()
	for range 5 {
		c, err := Dial(t.Context(), serverEndpoint(s, ""), o)
		if err != nil {
			t.Fatal(err)
		}
		whoami(t, c)
		c.Close()
	}
	bad := serverEndpoint(s, "")
	bad.IdentityFiles = nil
	if _, err := Dial(t.Context(), bad, o); err == nil {
		t.Fatal("logged in without a key")
	}
	settleGoroutines(t, before)
}

func settleGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b := make([]byte, 1<<16)
	t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
}
