package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain lets the test binary be another rentop: one that appends until it is
// killed, and prints each Seq once it was acknowledged.
func TestMain(m *testing.M) {
	path := os.Getenv("RENTOP_TEST_APPEND")
	if path == "" {
		os.Exit(m.Run())
	}
	l, err := Open(path, nil)
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	for n := 0; os.Getenv("RENTOP_TEST_COUNT") == "" || fmt.Sprint(n) != os.Getenv("RENTOP_TEST_COUNT"); n++ {
		pair := NewEvent(NoteRecorded, fmt.Sprint(os.Getpid()), "rentop", n)
		seq, err := l.Append(context.Background(), pair, pair)
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(seq)
	}
	l.Close()
}

// appender starts such a process.
func appender(t *testing.T, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append(env, "RENTOP_TEST_APPEND="+path)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func TestKilledWhileAppending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	acknowledged := int64(0)
	for round := range 5 {
		cmd, lines := appender(t, path)
		time.AfterFunc(time.Duration(100+37*round)*time.Millisecond, func() { cmd.Process.Kill() })
		for lines.Scan() {
			if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
				t.Fatalf("the other rentop said %q", lines.Text())
			}
		}
		cmd.Wait()
		l, err := Open(path, nil)
		if err != nil {
			t.Fatalf("after kill %d: %v", round, err)
		}
		if err := l.Check(t.Context()); err != nil {
			t.Error(err)
		}
		events, err := l.Events(t.Context(), Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(len(events)); got < acknowledged || got%2 != 0 {
			t.Fatalf("after kill %d: %d events, %d were acknowledged, always two at once", round, got, acknowledged)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if acknowledged == 0 {
		t.Error("nothing was acknowledged before a kill: the test saw nothing")
	}
}

func TestTwoProcessesAppendAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	const each = 50
	var wg sync.WaitGroup
	for range 2 {
		cmd, lines := appender(t, path, fmt.Sprint("RENTOP_TEST_COUNT=", each))
		wg.Go(func() {
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "error") {
					t.Error(lines.Text())
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	events, err := open(t, path).Events(t.Context(), Filter{})
	if err != nil || len(events) != 4*each {
		t.Fatalf("%d events, %v; want %d", len(events), err, 4*each)
	}
	for n := 0; n < len(events); n += 2 { // an Append is never cut by another
		if a, b := events[n], events[n+1]; a.Instance != b.Instance || string(a.Data) != string(b.Data) || b.Seq != a.Seq+1 {
			t.Fatalf("events %d and %d do not belong together: %+v %+v", n, n+1, a, b)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	l := open(t, whole)
	for range 300 {
		if _, err := l.Append(t.Context(), NewEvent(NoteRecorded, "a", "rentop", strings.Repeat("x", 100))); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func([]byte) []byte{
		"no ledger at all": func([]byte) []byte { return []byte(strings.Repeat("this is a text file. ", 100)) },
		"cut short":        func(b []byte) []byte { return b[:len(b)/2] },
		"a page of zeros": func(b []byte) []byte {
			for i := 4096; i < len(b)-4096; i++ {
				b[i] = 0
			}
			return b
		},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".db")
		spoilt := spoil(append([]byte(nil), data...))
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(path, nil)
		if err == nil {
			err = l.Check(t.Context())
			if _, e := l.Events(t.Context(), Filter{}); err == nil {
				err = e
			}
			l.Close()
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := os.ReadFile(path); string(now) != string(spoilt) {
			t.Errorf("%s: the damaged file was changed", name)
		}
	}
}

func TestImpossiblePlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(file, "ledger.db")} {
		if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCancelledAppendWritesNothing(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, Event{Kind: NoteRecorded}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if seq, err := l.Seq(t.Context()); err != nil || seq != 0 {
		t.Errorf("Seq = %d, %v", seq, err)
	}
}
