//go:build unix

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A demo that was killed with -9 leaves processes and a folder; the next start's
// cleaning finds them, and leaves a living demo and strangers alone.
func TestCleanStale(t *testing.T) {
	if os.Getenv("RENTOP_DEMO_TEST_VICTIM") != "" {
		victim(t)
		return
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	alive, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	strange := filepath.Join(tmp, prefix+"mine")
	if err := os.Mkdir(strange, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(strange, "data"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	os.Chtimes(strange, old, old)

	cmd := exec.Command(os.Args[0], "-test.run", "^TestCleanStale$")
	cmd.Env = append(os.Environ(), "RENTOP_DEMO_TEST_VICTIM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if d, ok := strings.CutPrefix(lines.Text(), "demo in "); ok {
			dir = d
			break
		}
	}
	if dir == "" {
		t.Fatal("the victim did not start")
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	if len(running(dir+"/", nil)) == 0 {
		t.Fatal("nothing was left: the test proves nothing")
	}
	n, err := CleanStale(t.Context())
	if n != 1 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	if left := running(dir+"/", nil); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", dir)
	}
	if _, err := os.Stat(filepath.Join(strange, "data")); err != nil {
		t.Errorf("a stranger's folder: %v", err)
	}
	if c, err := dial(named(t, alive, "cn-box")); err != nil {
		t.Errorf("the living demo: %v", err)
	} else {
		c.Close()
	}
}

// victim is a demo that waits to be killed.
func victim(t *testing.T) {
	f, err := Start(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, named(t, f, "a100-tune"))
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	s.Run("(setsid sleep 600 >/dev/null 2>&1 </dev/null &)")
	fmt.Println("demo in " + f.Dir())
	time.Sleep(time.Minute)
	f.Close()
}
