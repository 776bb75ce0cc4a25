package main_test

// The screen on a bad link, and the terminal after it.

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"rentop/remote/sshtest"
)

// sitDown shows the rig's rentop in a terminal.
func (r *rig) sitDown(cols, rows int) *person {
	r.t.Helper()
	return sitAt(r.t, cols, rows, r.t.TempDir(), r.env)
}

// TestFaultsScreenBlackHole: nothing arrives any more, and nobody is told.
func TestFaultsScreenBlackHole(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	p := r.sitDown(100, 30)
	p.sees(20*time.Second, "● live")
	for _, c := range []struct {
		shows string
		until time.Duration
	}{
		{"stalled", 6 * time.Second},
		{"connecting", 20 * time.Second}, // given up, and tried anew
	} {
		r.proxy.CutNow(sshtest.Hole)
		p.sees(6*time.Second, "stalled")
		p.sees(c.until, c.shows)
		r.proxy.Heal()
		p.press("Down")
		p.sees(2*time.Second, "● live")
	}
}

// TestFaultsScreenLeft: however rentop is ended, the terminal is as it was.
func TestFaultsScreenLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	for _, c := range []struct {
		name string
		end  func(*person)
	}{
		{"TERM", func(p *person) { p.signal("TERM") }},
		{"HUP", func(p *person) { p.signal("HUP") }},
		{"Ctrl-C", func(p *person) { p.press("C-c") }},
		{"Ctrl-C at the form", func(p *person) {
			p.press("a")
			p.sees(5*time.Second, "Add an instance")
			p.press("C-c")
		}},
	} {
		p := r.sitDown(100, 30)
		p.sees(20*time.Second, "● live")
		c.end(p)
		screen := p.sees(5*time.Second, "ended with", " echo", " icanon")
		if strings.Contains(screen, "-icanon") || strings.Contains(screen, "● live") {
			t.Errorf("%s: the terminal is left:\n%s", c.name, screen)
		}
		if modes := strings.TrimSpace(p.tmux("display", "-p", "-t", "p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag}")); modes != "0 0 1 0" {
			t.Errorf("%s: alternate screen, mouse, cursor, cursor keys: %s", c.name, modes)
		}
		p.tmux("kill-server")
	}
}

// shows is sees that may be told no.
func (p *person) shows(within time.Duration, text string) bool {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if strings.Contains(p.screen(), text) {
			return true
		}
	}
	return false
}

// signal sends one to the program in the terminal, which is the shell's child.
func (p *person) signal(name string) {
	p.t.Helper()
	shell := strings.TrimSpace(p.tmux("display", "-p", "-t", "p", "#{pane_pid}"))
	if _, err := strconv.Atoi(shell); err != nil {
		p.t.Fatal(err)
	}
	if out, err := exec.Command("pkill", "-"+name, "-P", shell).CombinedOutput(); err != nil {
		p.t.Fatalf("pkill: %v: %s", err, out)
	}
}

// TestFaultsHandOverCut: a shell whose link is cut gives the terminal back to the
// screen, and what ran in the shell is still there.
func TestFaultsHandOverCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	p := r.sitDown(100, 30)
	p.sees(20*time.Second, "● live")
	for _, cut := range []func(){
		func() { r.proxy.CutNow(sshtest.RST) },
		func() { r.proxy.CutNow(sshtest.FIN) },
		r.srv.KillSessions9,
	} {
		// The screen may say live for a moment after a cut, and t that it connects.
		for tries := 0; !p.shows(time.Duration(min(tries, 1))*5*time.Second, ":~$"); tries++ { // the footer has a $ too
			if tries == 4 {
				t.Fatalf("no shell:\n%s", p.screen())
			}
			p.press("t")
		}
		p.typed("echo $((40+2))")
		p.press("Enter")
		p.sees(20*time.Second, "42")
		cut()
		p.sees(10*time.Second, "rentop", "box", "NAME")
		p.press("Down")
		p.sees(10*time.Second, "● live")
	}
}
