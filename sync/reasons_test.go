//go:build unix

package sync_test

// What failed on an instance is told in words: a number tells nobody what to do.

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
)

func TestReasonsAreWords(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	r := dialtest.Conn(t, s, s.Addr)
	prepare := "mkdir -p ro closed; chmod 500 ro; chmod 000 closed"
	if err := r.Run(t.Context(), remote.Cmd{Script: prepare}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(s.Home, "closed"), 0o700) })
	src := t.TempDir()
	for _, name := range []string{"a", "x"} {
		if err := os.WriteFile(filepath.Join(src, name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		to     string
		failed int
	}{{"ro", 2}, {"closed", 2}} {
		res, err := sync.Run(t.Context(), open(t, r), sync.Spec{Direction: sync.Push, Local: src, Remote: c.to}, nil)
		if err != nil {
			if strings.Contains(err.Error(), "exit status") {
				t.Errorf("%s: %v", c.to, err)
			}
			continue
		}
		if len(res.Failed) != c.failed {
			t.Errorf("%s: %d failed, want %d: %v", c.to, len(res.Failed), c.failed, res.Failed)
		}
		for _, f := range res.Failed {
			if strings.Contains(f.Err.Error(), "exit status") || !errors.Is(f.Err, fs.ErrPermission) && !strings.Contains(f.Err.Error(), "permission denied") {
				t.Errorf("%s: %s: %v", c.to, f.Path, f.Err)
			}
		}
	}
}
