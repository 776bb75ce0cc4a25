package session

import (
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/session/config"
)

// TestNewestJobFirst: of two jobs with one name the newer is listed first, and
// it is the one that the name means.
func TestNewestJobFirst(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	old, err := s.StartJob(t.Context(), JobSpec{Name: "train", Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // starts are told by the second
	fresh, err := s.StartJob(t.Context(), JobSpec{Name: "train", Command: "exec sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(t.Context())
	if err != nil || len(jobs) != 2 || jobs[0].ID != fresh.ID || jobs[1].ID != old.ID {
		t.Errorf("listed as %+v, %v", jobs, err)
	}
	if killed, err := s.KillJob(t.Context(), "train"); err != nil || killed.ID != fresh.ID {
		t.Errorf("killed %s (%v), not the newer %s", killed.ID, err, fresh.ID)
	}
}
