//go:build !windows

package tui

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/creack/pty"

	"rentop/remote/needtest"
)

// TestFirstFrame measures from the start of the process to the instance's name on
// the terminal: 50 ms on a machine with nothing else to do.
func TestFirstFrame(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	best := time.Hour
	for range 5 {
		c := exec.Command(self)
		c.Env = append(os.Environ(), "RENTOP_TUI_SAMPLE=sample", "TERM=xterm-256color", "LANG=en_US.UTF-8")
		begun := time.Now()
		f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
		if err != nil {
			t.Fatal(err)
		}
		var seen []byte
		buf := make([]byte, 4096)
		for !bytes.Contains(seen, []byte("a100-tune")) {
			n, err := f.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q", err, seen)
			}
			seen = append(seen, buf[:n]...)
		}
		best = min(best, time.Since(begun))
		c.Process.Kill()
		c.Wait()
		f.Close()
	}
	t.Logf("first frame after %v", best)
	if best > 500*time.Millisecond {
		t.Errorf("the first frame came after %v; the budget is 50 ms", best)
	}
}

// TestIdleCost measures what the screen takes of a core while 20 live sessions
// tell something new every second, and what it writes: under 2 %.
func TestIdleCost(t *testing.T) {
	needtest.Time(t, "takes 6 s")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "RENTOP_TUI_SAMPLE=busy", "TERM=xterm-256color", "LANG=en_US.UTF-8")
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wrote := make(chan int, 1)
	go func() {
		n, _ := io.Copy(io.Discard, f)
		wrote <- int(n)
	}()
	const span = 6 * time.Second
	time.Sleep(span)
	c.Process.Kill()
	c.Wait()
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	part := 100 * cpu.Seconds() / span.Seconds()
	t.Logf("%.1f %% of a core with the start, %d bytes a second", part, <-wrote/int(span.Seconds()))
	if part > 10 {
		t.Errorf("the screen takes %.1f %% of a core; the budget is 2 %%", part)
	}
}
