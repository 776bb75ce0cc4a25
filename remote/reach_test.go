package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

func TestJumpHosts(t *testing.T) {
	quiet(t)
	target := sshtest.Start(t, sshtest.Options{Dropbear: true})
	j1, j2 := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{Password: "pw"})
	ep := serverEndpoint(target, "")
	second := serverEndpoint(j2, "")
	second.IdentityFiles = nil
	ep.Jump = []Endpoint{serverEndpoint(j1, ""), second}
	p := &person{answer: yes("pw", "")}
	o := testOptions(t, p)
	before := runtime.NumGoroutine()
	c := mustDial(t, ep, o)
	if got := whoami(t, c); got != target.User {
		t.Errorf("logged in as %q", got)
	}
	if p.kinds() != "hhph" {
		t.Fatal("asked", p.kinds())
	}
	for i, s := range []*sshtest.Server{j1, j2, j2, target} {
		if q := p.asked[i]; q.Host != s.User+"@"+s.Addr {
			t.Errorf("question %d is about %s", i, q.Host)
		}
	}
	if c.Info().Via == "" {
		t.Error(c.Info())
	}
	// Each host keeps its own key and password: nothing is asked again.
	again, err := c.Again(t.Context())
	if err != nil || p.kinds() != "hhph" {
		t.Fatal(err, p.kinds())
	}
	again.Close()
	j1.KillSessions9()
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the end of the jump host was not noticed")
	}
	if c.Err() == nil {
		t.Error("no reason")
	}
	settleGoroutines(t, before)

	o.AcceptHostKey = "SHA256:of the instance" // is not for the jump hosts
	j1.ReplaceHostKey()
	var changed *HostKeyChangedError
	var de *DialError
	if _, err := Dial(t.Context(), ep, o); !errors.As(err, &changed) || !errors.As(err, &de) || de.Address != j1.User+"@"+j1.Addr {
		t.Error(err)
	}
}

func TestJumpHostThatCannotReachIt(t *testing.T) {
	quiet(t)
	j := sshtest.Start(t, sshtest.Options{})
	ep := DirectEndpoint("root", "127.0.0.1", closedPort(t))
	ep.Jump = []Endpoint{serverEndpoint(j, "")}
	_, err := Dial(t.Context(), ep, testOptions(t, &person{answer: yes("", "")}))
	if err == nil || !strings.Contains(err.Error(), "jump host does not reach it") {
		t.Error(err)
	}
}

func closedPort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func TestProxyCommand(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{})
	bash := needtest.Program(t, "bash")
	host, port, _ := strings.Cut(s.Addr, ":")
	mark := fmt.Sprintf("rentop-proxy-%d", os.Getpid())
	ep := serverEndpoint(s, "")
	ep.ProxyCommand = fmt.Sprintf("exec 3<>/dev/tcp/%s/%s; : %s; cat <&3 & cat >&3; wait", host, port, mark)
	ep.ProxyCommand = bash + " -c " + Quote(ep.ProxyCommand)
	o := testOptions(t, &person{answer: yes("", "")})
	c := mustDial(t, ep, o)
	if whoami(t, c) != s.User || c.Info().Via != "ProxyCommand" {
		t.Error(c.Info())
	}
	if n := running(t, mark); n == 0 {
		t.Error("the test does not see its own proxy")
	}
	c.Close()
	if n := running(t, mark); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	for command, want := range map[string]string{
		"echo it broke >&2; exit 3": "it broke", "true": "ProxyCommand of your ssh_config failed", "/nonexistent/x": "failed",
	} {
		ep.ProxyCommand = command
		if _, err := Dial(t.Context(), ep, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	ep.ProxyCommand = "sleep 100; : " + mark
	o.Timeout = 300 * time.Millisecond
	if _, err := Dial(t.Context(), ep, o); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
	if n := running(t, mark); n != 0 {
		t.Errorf("%d processes are left after a timeout", n)
	}
}

func running(t *testing.T, mark string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	needtest.That(t, err == nil && len(files) > 0, "Linux's /proc, to count processes in")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), mark) {
			n++
		}
	}
	return n
}

// listen answers every connection with f.
func listen(t *testing.T, f func(net.Conn)) Endpoint {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				go func() { <-stop; c.Close() }()
				f(c)
			})
		}
	})
	t.Cleanup(func() { close(stop); ln.Close(); wg.Wait() })
	return DirectEndpoint("root", "127.0.0.1", ln.Addr().(*net.TCPAddr).Port)
}

func TestErrorsAreSentencesWithACure(t *testing.T) {
	quiet(t)
	silent := listen(t, func(c net.Conn) {
		b := make([]byte, 4096)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	})
	halfway := listen(t, func(c net.Conn) {
		fmt.Fprintf(c, "SSH-2.0-Half\r\n")
		b := make([]byte, 4096)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	})
	eof := listen(t, func(c net.Conn) {})
	web := listen(t, func(c net.Conn) {
		fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n"+strings.Repeat("x", 70000))
		c.Read(make([]byte, 1))
	})
	refused := DirectEndpoint("root", "127.0.0.1", closedPort(t))
	for _, tc := range []struct {
		name string
		ep   Endpoint
		want string
	}{
		{"refused", refused, "refuses connections"},
		{"silent", silent, "no answer while waiting for its SSH greeting"},
		{"halfway", halfway, "no answer while"},
		{"eof", eof, "MaxStartups"},
		{"web server", web, "not an SSH server"},
		{"dns", DirectEndpoint("root", "no-such-host.invalid", 22), "name no-such-host.invalid"},
	} {
		o := testOptions(t, &person{answer: yes("", "")})
		o.Timeout = 500 * time.Millisecond
		start := time.Now()
		_, err := Dial(t.Context(), tc.ep, o)
		var de *DialError
		if !errors.As(err, &de) || !strings.Contains(err.Error(), tc.want) || NeedsPerson(err) || !strings.HasPrefix(err.Error(), tc.ep.Address()+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tc.name, err)
		}
		if took := time.Since(start); took > 3*time.Second && tc.name != "dns" {
			t.Errorf("%s took %v", tc.name, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	if _, err := Dial(ctx, silent, testOptions(t, nil)); !errors.Is(err, context.Canceled) || time.Since(start) > 2*time.Second {
		t.Error(err, time.Since(start))
	}
}

func TestMaxStartupsIsExplained(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{MaxStartups: "1"})
	nc, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.Read(make([]byte, 1)) // it holds the one place
	_, err = Dial(t.Context(), serverEndpoint(s, ""), testOptions(t, &person{answer: yes("", "")}))
	if err == nil || !strings.Contains(err.Error(), "MaxStartups") || NeedsPerson(err) {
		t.Error(err)
	}
}

// One black hole among twenty delays no other.
func TestParallelDialsWithABlackHole(t *testing.T) {
	quiet(t)
	s := sshtest.Start(t, sshtest.Options{MaxStartups: "100"})
	hole := sshtest.NewProxy(t, s.Addr)
	hole.CutNow(sshtest.Hole)
	p := &person{answer: yes("", "")}
	o := testOptions(t, p)
	o.AcceptHostKey = ssh.FingerprintSHA256(s.HostKey())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	holed := make(chan error, 1)
	go func() {
		_, err := Dial(ctx, serverEndpoint(s, hole.Addr), o)
		holed <- err
	}()
	var wg sync.WaitGroup
	start := time.Now()
	for i := range 19 {
		wg.Go(func() {
			o := o
			o.UID = fmt.Sprint("uid-", i)
			c, err := Dial(t.Context(), serverEndpoint(s, ""), o)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	wg.Wait()
	t.Logf("19 logins took %v", time.Since(start))
	select {
	case err := <-holed:
		t.Error("the black hole answered:", err)
	default:
	}
	cancel()
	if err := <-holed; err == nil {
		t.Error("the black hole let us in")
	}
	for i := range 19 {
		if k, err := o.HostKeys.Known(fmt.Sprint("uid-", i)); err != nil || len(k) != 1 {
			t.Errorf("uid-%d: %v %v", i, k, err)
		}
	}
}
