package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	stdsync "sync"
	"testing"

	"rentop/remote/sshtest"
	"rentop/session/config"
	"rentop/session/release"
)

// Two rentops on one config and one ledger: a release that is under way in one
// is left alone by the other, and the machine is destroyed once.
func TestReleaseTwice(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	dir := t.TempDir()
	cloud, calls := filepath.Join(dir, "cloud"), filepath.Join(dir, "calls")
	if err := os.WriteFile(cloud, []byte("running"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := config.Instance{
		Name: "box", SSH: sshLine(srv, srv.Addr), Provider: "command", ID: "i-1", LookIn: []string{"~"},
		Command: &config.Command{Status: "cat " + cloud, Destroy: "echo destroy >> " + calls + "; printf gone > " + cloud},
	}
	one, two := open(t, dir, false, srv), open(t, dir, false, srv)
	if err := one.Add(in); err != nil {
		t.Fatal(err)
	}
	if err := two.reload(); err != nil {
		t.Fatal(err)
	}
	a, b := session(t, one, "box"), session(t, two, "box")

	waiting := make(chan struct{})
	once := stdsync.OnceFunc(func() { close(waiting) })
	ended := make(chan error, 1)
	go func() {
		_, err := a.Release(t.Context(), release.Destroy, func(v release.View) {
			if v.Phase == release.Waiting {
				once()
			}
		})
		ended <- err
	}()
	select {
	case <-waiting:
	case err := <-ended:
		t.Fatal(err)
	}
	if _, err := b.Release(t.Context(), release.Destroy, func(release.View) {}); !errors.Is(err, ErrReleasing) {
		t.Errorf("a second release gives %v", err)
	}
	if err := two.Remove("box"); !errors.Is(err, ErrReleasing) {
		t.Errorf("a removal meanwhile gives %v", err)
	}
	if _, err := b.CheckRelease(t.Context()); err != nil {
		t.Errorf("a check meanwhile: %v", err)
	}
	if err := a.Decide(release.Decision{Kind: release.DecideCancel}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	var both stdsync.WaitGroup
	results := make([]error, 2)
	for i, s := range []*Session{a, b} {
		both.Go(func() { results[i] = approveAll(t.Context(), s) })
	}
	both.Wait()
	for _, err := range results {
		if err != nil && !errors.Is(err, ErrReleasing) {
			t.Errorf("a release ended with %v", err)
		}
	}
	if said, _ := os.ReadFile(calls); strings.Count(string(said), "destroy") != 1 {
		t.Errorf("destroyed %d times", strings.Count(string(said), "destroy"))
	}
}

// approveAll types the name at every list.
func approveAll(ctx context.Context, s *Session) error {
	shown := ""
	_, err := s.Release(ctx, release.Destroy, func(v release.View) {
		if v.Phase != release.Waiting || v.Shown == shown {
			return
		}
		shown = v.Shown
		for _, c := range v.Checks {
			if c.State == release.Offered {
				_ = s.Decide(release.Decision{Kind: release.DecideSnapshot, Snapshot: release.NoSnapshot})
				return
			}
		}
		_ = s.Decide(release.Decision{Kind: release.DecideName, Name: "box", Shown: v.Shown})
	})
	return err
}
