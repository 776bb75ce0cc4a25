package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHeld: no session of a fleet that is held does anything before it may begin,
// and one that never may ends all the same.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[instance.box]\nssh = \"ssh -p 1 root@127.0.0.1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	held := func() *Fleet {
		f, err := Open(t.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Live: true, Held: true, Secrets: noKeyring{}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := held()
	s := session(t, f, "box")
	time.Sleep(100 * time.Millisecond)
	if v := s.View(); v.State != Idle || !v.Since.IsZero() {
		t.Errorf("it is %v since %v before it may begin", v.State, v.Since)
	}
	f.Begin()
	f.Begin() // again is nothing
	waitFor(t, 10*time.Second, "begun", s, func(v View) bool { return v.State != Idle })
	if err := held().Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkOpen is what stands before the first frame: config, ledger, sessions.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "[instance.box%d]\nssh = \"root@192.0.2.1\"\nrate = { per_hour = \"8\", currency = \"CNY\" }\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := Open(b.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}})
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
