//go:build !windows

package command_test

// What needs a terminal or goes on until it is ended: run in this process.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
	"rentop/tui/command"
)

// home gives rentop folders of its own and an instance "a"; accept is the flag
// that trusts it.
func home(t *testing.T, o sshtest.Options) (s *sshtest.Server, accept string) {
	t.Helper()
	s = sshtest.Start(t, o)
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("RENTOP_CONFIG_DIR", dir+"/config")
	t.Setenv("RENTOP_STATE_DIR", dir+"/state")
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("TERM", "xterm-256color")
	_, port, _ := net.SplitHostPort(s.Addr)
	var out bytes.Buffer
	p := command.Program{In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now}
	line := fmt.Sprintf("ssh -p %s -i %s %s@127.0.0.1", port, s.KeyFile, s.User)
	if code := command.Run(t.Context(), p, []string{"add", line, "--name", "a"}); code != 0 {
		t.Fatalf("add: %d: %s", code, out.String())
	}
	return s, "--accept-host-key=" + ssh.FingerprintSHA256(s.HostKey())
}

// start runs rentop on a terminal of its own.
func start(t *testing.T, args ...string) (keys io.Writer, seen *sshtest.Screen, code chan int) {
	t.Helper()
	master, slave, err := pty.Open()
	needtest.Done(t, err, "a pseudo terminal")
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	seen, code = &sshtest.Screen{}, make(chan int, 1)
	copied := make(chan struct{})
	go func() { defer close(copied); io.Copy(seen, master) }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		code <- command.Run(ctx, command.Program{In: slave, Out: slave, Err: slave, Now: time.Now}, args)
	}()
	t.Cleanup(func() {
		cancel()
		slave.Close()
		master.Close()
		<-copied
	})
	return master, seen, code
}

func ends(t *testing.T, code chan int, seen *sshtest.Screen, want int) {
	t.Helper()
	select {
	case got := <-code:
		if got != want {
			t.Errorf("exit code %d, want %d; the terminal shows:\n%q", got, want, seen.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("did not end; the terminal shows:\n%q", seen.String())
	}
}

func TestShell(t *testing.T) {
	for _, hide := range [][]string{nil, {"tmux"}} {
		t.Run(fmt.Sprintf("without%v", hide), func(t *testing.T) {
			_, accept := home(t, sshtest.Options{Hide: hide, Noise: true})
			keys, seen, code := start(t, "shell", "a", accept)
			seen.Wait(t, "$ ")
			io.WriteString(keys, "echo it-is-$((6*7)); stty size\r")
			seen.Wait(t, "it-is-42")
			io.WriteString(keys, "exit\r")
			ends(t, code, seen, 0)
		})
	}
}

// A detach leaves the terminal as tmux left it, and how to leave was said before.
func TestShellDetached(t *testing.T) {
	_, accept := home(t, sshtest.Options{})
	keys, seen, code := start(t, "shell", "a", accept)
	seen.Wait(t, "leave: Ctrl-b d keeps what runs here; Enter ~ . cuts the connection")
	seen.Wait(t, "$ ")
	sshtest.Type(keys, "\x02", "d")
	ends(t, code, seen, 0)
	seen.Wait(t, "[detached")
	_, after, _ := strings.Cut(seen.String(), "[detached")
	if strings.Contains(after, "?1049l") || !strings.Contains(after, "\n") {
		t.Errorf("after the detach the terminal got %q", after)
	}
}

// Enter ~ . leaves where nothing answers any more.
func TestShellIsLeft(t *testing.T) {
	_, accept := home(t, sshtest.Options{Hide: []string{"tmux"}})
	keys, seen, code := start(t, "shell", "a", accept)
	seen.Wait(t, "$ ")
	io.WriteString(keys, "sleep 1000\r")
	time.Sleep(300 * time.Millisecond)
	io.WriteString(keys, "\r~.")
	ends(t, code, seen, 0)
	seen.Wait(t, "\x1b[0m\r\n") // else the prompt would come behind what the shell wrote
}

func TestForward(t *testing.T) {
	s, accept := home(t, sshtest.Options{})
	_, local, _ := net.SplitHostPort(sshtest.Nobody(t))
	_, port, _ := net.SplitHostPort(s.Addr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, code := &sshtest.Screen{}, make(chan int, 1)
	go func() {
		p := command.Program{In: os.Stdin, Out: io.Discard, Err: said, Now: time.Now}
		code <- command.Run(ctx, p, []string{"forward", "a", local + ":" + port, accept})
	}()
	said.Wait(t, "http://127.0.0.1:"+local)
	c, err := net.Dial("tcp", "127.0.0.1:"+local)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	greeting := make([]byte, 4)
	if _, err := io.ReadFull(c, greeting); err != nil || string(greeting) != "SSH-" {
		t.Errorf("through the forward came %q, %v", greeting, err)
	}
	cancel()
	ends(t, code, said, 0)
}

// A port where nothing listens is told once a connection came, and the forward stays.
func TestForwardToNothing(t *testing.T) {
	_, accept := home(t, sshtest.Options{})
	_, local, _ := net.SplitHostPort(sshtest.Nobody(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, code := &sshtest.Screen{}, make(chan int, 1)
	go func() {
		p := command.Program{In: os.Stdin, Out: io.Discard, Err: said, Now: time.Now}
		code <- command.Run(ctx, p, []string{"forward", "a", local + ":1", accept})
	}()
	said.Wait(t, "http://127.0.0.1:"+local)
	for range 3 {
		c, err := net.Dial("tcp", "127.0.0.1:"+local)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, c)
		c.Close()
	}
	said.Wait(t, "nothing answers at 127.0.0.1:1 there")
	cancel()
	ends(t, code, said, 0)
	if n := strings.Count(said.String(), "nothing answers"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// gpu --watch goes on until it is ended, and is no failure then.
func TestWatch(t *testing.T) {
	_, accept := home(t, sshtest.Options{Hide: []string{"nvidia-smi"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, code := &sshtest.Screen{}, make(chan int, 1)
	go func() {
		p := command.Program{In: os.Stdin, Out: out, Err: io.Discard, Now: time.Now}
		code <- command.Run(ctx, p, []string{"gpu", "a", "--watch", "--json", accept})
	}()
	for end := time.Now().Add(30 * time.Second); strings.Count(out.String(), "\n") < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no two samples in %q", out.String())
		}
	}
	cancel()
	ends(t, code, out, 0)
	first, _, _ := strings.Cut(out.String(), "\n")
	if strings.Contains(first, `"mem_total":null`) || !strings.Contains(first, `"problem":{`) {
		t.Errorf("the first sample has no figure or does not say that nvidia-smi is missing: %s", first)
	}
}
