package sshtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/needtest"
)

func output(t *testing.T, c *ssh.Client, command string) string {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Output(command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(string(out))
}

func TestServers(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string // what `echo $0; echo $HOME` style probing must show
	}{
		{"sshd", Options{}, "bash"},
		{"sshd fish", Options{Shell: "fish"}, "fish"},
		{"sshd tcsh", Options{Shell: "tcsh"}, "tcsh"},
		{"dropbear", Options{Dropbear: true}, "bash"},
		{"dropbear dash", Options{Dropbear: true, Shell: "dash"}, "dash"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, tt.o)
			c := s.Dial("")
			if got := output(t, c, "echo $SHELL $HOME $USER"); !strings.HasSuffix(got, tt.want+" "+s.Home+" "+s.User) {
				t.Errorf("SHELL HOME USER = %q", got)
			}
		})
	}
}

func TestNoise(t *testing.T) {
	for _, shell := range []string{"bash", "fish", "tcsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := Start(t, Options{Shell: shell, Noise: true})
			if got := output(t, s.Dial(""), "true"); !strings.Contains(got, "noise") {
				t.Errorf("no noise from %s: %q", shell, got)
			}
		})
	}
}

func TestHideAndSmallHome(t *testing.T) {
	needtest.Program(t, "tmux")
	s := Start(t, Options{Hide: []string{"tmux"}, SmallHome: "1m"})
	c := s.Dial("")
	if got := output(t, c, "sh -c 'command -v tmux || echo none'"); got != "none" {
		t.Errorf("tmux = %q, want it hidden", got)
	}
	if got := output(t, c, "head -c 3000000 /dev/zero >big 2>/dev/null || wc -c <big"); got == "3000000" || got == "" {
		t.Errorf("3 MB fitted into a home of 1 MB: %q", got)
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Error("tmux is hidden from everybody")
	}
}

func TestPassword(t *testing.T) {
	for _, dropbear := range []bool{false, true} {
		t.Run(fmt.Sprint("dropbear=", dropbear), func(t *testing.T) {
			t.Parallel()
			s := Start(t, Options{Dropbear: dropbear, Password: "correct horse"})
			cfg := s.ClientConfig()
			cfg.Auth = []ssh.AuthMethod{ssh.Password("correct horse")}
			c, err := ssh.Dial("tcp", s.Addr, cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			cfg.Auth = []ssh.AuthMethod{ssh.Password("wrong")}
			if c, err := ssh.Dial("tcp", s.Addr, cfg); err == nil {
				c.Close()
				t.Error("a wrong password was accepted")
			}
		})
	}
}

func TestKillRestartReplace(t *testing.T) {
	for _, dropbear := range []bool{false, true} {
		t.Run(fmt.Sprint("dropbear=", dropbear), func(t *testing.T) {
			t.Parallel()
			s := Start(t, Options{Dropbear: dropbear})
			old := s.ClientConfig()
			c := s.Dial("")
			s.Kill9()
			if err := c.Wait(); err == nil {
				t.Error("the connection ended orderly after kill -9")
			}
			if n, err := net.Dial("tcp", s.Addr); err == nil {
				n.Close()
				t.Error("still listening after Kill9")
			}
			s.Restart()
			c = s.Dial("")
			s.KillSessions9()
			c.Wait()
			s.Dial("")
			s.ReplaceHostKey()
			if c, err := ssh.Dial("tcp", s.Addr, old); err == nil {
				c.Close()
				t.Error("the old host key still fits")
			}
			s.Dial("")
		})
	}
}

func TestCleanup(t *testing.T) {
	var dir, name string
	var left func() []string
	t.Run("inner", func(t *testing.T) {
		s := Start(t, Options{})
		dir, name, left = s.Dir, s.User, s.Processes
		output(t, s.Dial(""), "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo")
		if len(s.Processes()) == 0 {
			t.Error("the sleep is not seen")
		}
	})
	needtest.That(t, left != nil, "a server (see the test within)")
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
	if err := exec.Command("id", name).Run(); err == nil {
		t.Errorf("user %s is left", name)
	}
	if p := left(); len(p) > 0 {
		t.Errorf("left running: %q", p)
	}
}

func TestProxy(t *testing.T) {
	s := Start(t, Options{})
	p := NewProxy(t, s.Addr)
	c := s.Dial(p.Addr)
	output(t, c, "echo")
	for _, how := range []Cut{RST, FIN} {
		c := s.Dial(p.Addr)
		at := p.Passed(ToClient) + 20000 // what passes until then
		p.CutAfter(ToClient, 20000, how)
		session, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Output("head -c 1000000 /dev/zero"); err == nil {
			t.Error("a cut stream ended well")
		}
		c.Wait()
		if got := p.Passed(ToClient); got < at || got > at+5000 {
			t.Errorf("passed %d bytes to the client, cut at %d", got, at)
		}
	}
	p.CutNow(Hole)
	answer := make(chan error, 1)
	go func() {
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Fatalf("an answer out of a hole: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	p.Heal()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	p.Delay(100 * time.Millisecond)
	start := time.Now()
	output(t, c, "echo")
	if d := time.Since(start); d < 200*time.Millisecond {
		t.Errorf("an exec over a 100 ms delay took %v", d)
	}
	if p.Fired() != 3 {
		t.Errorf("Fired = %d, want 3", p.Fired())
	}
}
