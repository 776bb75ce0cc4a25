package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/session/config"
)

// TestKeepSaving: what is finished is saved while it is on, once, and the view says so.
func TestKeepSaving(t *testing.T) {
	t.Parallel()
	srv := sshtest.Start(t, sshtest.Options{})
	dir := t.TempDir()
	f := open(t, dir, false, srv)
	if err := f.Add(config.Instance{Name: "bare", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	if err := session(t, f, "bare").KeepSaving(true); !errors.Is(err, errNoArtifacts) {
		t.Errorf("without artifacts: %v", err)
	}
	to := filepath.Join(dir, "out")
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr), Artifacts: []config.Artifact{{Path: "~/ckpt/**", To: to}}}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	s.saves.how = PullWatch{Every: 50 * time.Millisecond, Settle: 50 * time.Millisecond}
	put(t, srv.Home, "ckpt/notes.txt", "finished")
	for range 2 {
		if err := s.KeepSaving(true); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, ok func(*SavingView) bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !ok(s.View().Saving); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, s.View().Saving)
			}
		}
	}
	await("saved", func(v *SavingView) bool {
		return v != nil && v.Files == 1 && v.Bytes == 8 && v.Err == "" && !v.At.IsZero()
	})
	if text, err := os.ReadFile(filepath.Join(to, "notes.txt")); err != nil || string(text) != "finished" {
		t.Errorf("%q %v", text, err)
	}
	if err := s.KeepSaving(false); err != nil {
		t.Fatal(err)
	}
	await("ended", func(v *SavingView) bool { return v == nil })
}
