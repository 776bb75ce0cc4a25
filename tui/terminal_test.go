//go:build !windows

package tui

// The screen in a real terminal: tmux, keys sent, panes read.

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
)

// pane is a tmux server of our own with one window that runs this test binary as
// the screen over a hand-made fleet.
type pane struct {
	t    *testing.T
	sock string
}

func openPane(t *testing.T, w, h int, sample string, env ...string) *pane {
	t.Helper()
	tmux := needtest.Program(t, "tmux")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t, filepath.Join(t.TempDir(), "s")}
	cmd := fmt.Sprintf("env LANG=en_US.UTF-8 LC_ALL= RENTOP_LANG=en COLORTERM=truecolor %s RENTOP_TUI_SAMPLE=%s '%s'; echo left with $?; exec sleep 60", strings.Join(env, " "), sample, self)
	run := exec.Command(tmux, "-S", p.sock, "-f", "/dev/null", "-u", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), cmd)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command(tmux, "-S", p.sock, "kill-server").Run() })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command("tmux", append([]string{"-S", p.sock}, args...)...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, errs.String())
	}
	return out.String()
}

func (p *pane) keys(k ...string) *pane { p.tmux(append([]string{"send-keys"}, k...)...); return p }

// see waits until the pane shows all of want.
func (p *pane) see(want ...string) *pane {
	p.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		s := p.tmux("capture-pane", "-p")
		missing := ""
		for _, w := range want {
			if !strings.Contains(s, w) {
				missing = w
			}
		}
		if missing == "" {
			return p
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the pane does not show %q:\n%s", missing, s)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func TestRealTerminal(t *testing.T) {
	p := openPane(t, 80, 24, "sample")
	p.see("3 instances", "a100-tune", "¥25.61", "? help")
	p.keys("j", "Enter").see("rentop → 4090-data")
	p.keys("Escape").see("▸ ● 4090-data")
	p.tmux("resize-window", "-x", "120", "-y", "40")
	p.see("12 files")
	p.tmux("resize-window", "-x", "50", "-y", "10")
	p.see("50×10")
	p.tmux("resize-window", "-x", "80", "-y", "24")
	p.see("▸ ● 4090-data")
	// A bracketed paste anywhere on the overview.
	p.tmux("set-buffer", "ssh -p 41237 root@connect.example\n")
	p.tmux("paste-buffer", "-p")
	p.see("Add an instance", "ssh -p 41237 root@connect.example")
	p.keys("Escape").see("▸ ● 4090-data")
	p.keys("q").see("3 transfers are running").keys("y").see("left with 0")
}

// The hand-over: the shell gets every key, the screen comes back, and the next key
// is the screen's.
func TestHandOver(t *testing.T) {
	p := openPane(t, 80, 24, "sample")
	p.see("▸ ● a100-tune").keys("t").see("a100-tune — leave: Ctrl-b d").see("shell on a100-tune")
	p.keys("hello").see("$ hello")
	p.keys("C-d").see("▸ ● a100-tune", "? help")
	p.keys("j").see("▸ ● 4090-data")
	// One key after it is one step, every time.
	for range 5 {
		p.keys("t").see("shell on 4090-data").keys("C-d").see("▸ ● 4090-data", "? help")
		p.keys("j").see("▸ ○ h20-infer").keys("k").see("▸ ● 4090-data")
	}
	p.keys("t").see("shell on 4090-data").keys("Enter", "~", ".").see("▸ ● 4090-data")
	p.keys("q").see("3 transfers are running").keys("y").see("left with 0")
	if s := p.tmux("capture-pane", "-p"); strings.Contains(s, "shell on") {
		t.Errorf("the shell's text stayed on the primary screen:\n%s", s)
	}
}

func TestNoColourInARealTerminal(t *testing.T) {
	p := openPane(t, 80, 24, "sample", "NO_COLOR=yes")
	p.see("3 instances", "a100-tune")
	s := p.tmux("capture-pane", "-pe")
	if at := regexp.MustCompile("\x1b\\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[;m]").FindString(s); at != "" {
		t.Errorf("a colour with NO_COLOR=yes: %q", at)
	}
}
