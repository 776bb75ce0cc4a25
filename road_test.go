package main_test

// The whole road as a person goes it: rentop in a real terminal (tmux), keys
// sent, screens read, a real sshd behind it. From an empty config to destroyed.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

// person sits at a terminal that shows rentop.
type person struct {
	t      *testing.T
	socket string
	env    []string
	bin    string
}

// sitDown starts rentop in a new terminal of the given size.
func sitDown(t *testing.T, cols, rows int, dir string, args ...string) *person {
	t.Helper()
	return sitAt(t, cols, rows, dir, append(os.Environ(),
		"RENTOP_CONFIG_DIR="+filepath.Join(dir, "config"), "RENTOP_STATE_DIR="+filepath.Join(dir, "state"), "RENTOP_LANG=en"), args...)
}

// sitAt is sitDown with an environment of its own. After rentop the terminal says
// how it ended, and stays.
func sitAt(t *testing.T, cols, rows int, dir string, env []string, args ...string) *person {
	t.Helper()
	needtest.Program(t, "tmux")
	p := &person{t: t, socket: filepath.Join(dir, "tmux.sock"), bin: build(t)}
	p.env = append(env, "LANG=C.UTF-8", "TERM=xterm-256color", "NO_COLOR=", "TMUX=")
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows), "-s", "p",
		p.bin+" "+strings.Join(args, " ")+"; echo ended with $?; stty -a; exec sleep 600")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen at the end:\n%s", p.screen())
		}
		p.tmux("kill-server")
	})
	return p
}

func (p *person) tmux(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil && args[0] != "kill-server" {
		p.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *person) screen() string { return p.tmux("capture-pane", "-p", "-t", "p") }

// press sends keys by tmux's names, types text otherwise.
func (p *person) press(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys", "-t", "p"}, keys...)...)
}

func (p *person) typed(text string) { p.tmux("send-keys", "-t", "p", "-l", text) }

// paste is a bracketed paste, as from a browser.
func (p *person) paste(text string) {
	p.tmux("set-buffer", text)
	p.tmux("paste-buffer", "-p", "-t", "p")
}

// sees waits until the screen shows every text.
func (p *person) sees(within time.Duration, texts ...string) string {
	p.t.Helper()
	deadline := time.Now().Add(within)
	for {
		s := p.screen()
		missing := ""
		for _, x := range texts {
			if !strings.Contains(s, x) {
				missing = x
			}
		}
		if missing == "" {
			return s
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("after %v the screen does not show %q:\n%s", within, missing, s)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run runs a rentop command beside the screen.
func (p *person) run(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(p.bin, args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("rentop %q: %v: %s", args, err, out)
	}
	return string(out)
}

// workshop holds what all tests share: the real program, made once.
var workshop string

func TestMain(m *testing.M) {
	var err error
	if workshop, err = os.MkdirTemp("", "rentop-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(workshop)
	os.Exit(code)
}

var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(workshop, "rentop")
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // as it is released, and compiled once with .ci/cross
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return bin, nil
})

func build(t testing.TB) string {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestRoadFromAddToDestroyed(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{Noise: true})
	dir := t.TempDir()
	cloud, out := filepath.Join(dir, "cloud"), filepath.Join(dir, "out")
	if err := os.WriteFile(cloud, []byte("running\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(srv.Addr)
	p := sitDown(t, 100, 30, dir)

	// An empty fleet says what to do; the platform's line is pasted.
	p.sees(20*time.Second, "rentop")
	p.paste(fmt.Sprintf("ssh -p %s -i %s %s@%s", port, srv.KeyFile, srv.User, host))
	p.sees(5*time.Second, "Add an instance")
	p.press("C-u")
	p.typed("box")
	p.press("Enter")

	// First contact: the fingerprint is shown and asked for.
	p.sees(15*time.Second, "SHA256:")
	p.press("y")
	p.sees(20*time.Second, "box", "● live")

	// Price and provider come from another terminal; the screen follows.
	p.run("edit", "box", "--price", "8/h", "--currency", "CNY", "--provider", "command",
		"--command", "status=cat "+cloud, "--command", "destroy=echo gone > "+cloud,
		"--artifact", "~/out="+out, "--look-in", "~")
	p.sees(20*time.Second, "¥8.00/h", "● live")

	// A job, from its key to its end.
	p.press("n")
	p.sees(5*time.Second, "New job on box")
	p.typed("mkdir -p out && echo weights > out/model.bin && echo trained")
	p.press("Enter")
	p.sees(20*time.Second, "✓ done")

	// The checklist knows that the weights are nowhere else.
	p.press("r")
	p.sees(5*time.Second, "destroy")
	p.press("d")
	p.sees(120*time.Second, "model.bin")
	p.run("pull", "box", "out", out, "--verify")
	if got, err := os.ReadFile(filepath.Join(out, "model.bin")); err != nil || string(got) != "weights\n" {
		t.Fatalf("pulled %q, %v", got, err)
	}

	// Checked again, the artifact is proven; the job's log still is not, so the
	// name is typed. Then the provider says that it is gone.
	p.press("a")
	p.sees(60*time.Second, "✓ artifacts", "Waiting for you")
	p.press("Enter")
	p.sees(5*time.Second, "box", "type")
	p.typed("box")
	p.press("Enter")
	p.sees(120*time.Second, "gone")
	if got, err := os.ReadFile(cloud); err != nil || string(got) != "gone\n" {
		t.Errorf("the provider says %q, %v", got, err)
	}
	t.Log(p.screen())
	p.press("q")
	if cost := p.run("cost"); !strings.Contains(cost, "box") || !strings.Contains(cost, "¥") {
		t.Errorf("cost prints:\n%s", cost)
	}
}
