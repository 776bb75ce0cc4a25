package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/sshtest"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// TestResumedReleaseAlert: the alert about a release that was left unfinished ends
// with the release.
func TestResumedReleaseAlert(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	alerted := func(p release.Phase) bool {
		st := &state{timeline: ledger.Timeline{}, release: &release.View{Resumed: true, Phase: p}}
		alerts, _ := s.look(st, Meter{}, time.Now())
		for _, a := range alerts {
			if a.ID == "release" {
				return true
			}
		}
		return false
	}
	for phase, want := range map[release.Phase]bool{release.Checking: true, release.Waiting: true, release.Stuck: true, release.Review: false, release.Cancelled: false} {
		if got := alerted(phase); got != want {
			t.Errorf("%s: alert %v", phase, got)
		}
	}
}

// TestRunningRate: what an hour costs once it runs is known while it is stopped.
func TestRunningRate(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	f := open(t, t.TempDir(), false, srv)
	in := config.Instance{
		Name: "box", SSH: sshLine(srv, srv.Addr), Provider: "command", Command: &config.Command{Status: "echo stopped"},
		Rate: &config.Rate{PerHour: "8", Currency: "CNY", WhileStopped: "0.02"},
	}
	if err := f.Add(in); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	s.record(ledger.Observed, time.Now(), "provider", ledger.Observation{State: "stopped"})
	v := waitFor(t, 10*time.Second, "the stopped rate", s, func(v View) bool { return v.Meter.PerHour != nil })
	if v.Meter.Running == nil || v.Meter.Running.String() != "¥8.00" || v.Meter.PerHour.String() != "¥0.02" {
		t.Errorf("running %v, now %v", v.Meter.Running, v.Meter.PerHour)
	}
}

// TestDeletesAsShown: a queued transfer with deletes removes what the person saw and
// nothing that came up since.
func TestDeletesAsShown(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{Files: map[string]string{"proj/a": "a", "proj/b": "b", "proj/c": "c", "proj/old": "o"}})
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	src := t.TempDir()
	for _, n := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(src, n), []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := TransferSpec{Direction: sync.Push, Local: src, Remote: "proj", Delete: true}
	run := func(shown ...string) TransferView {
		spec.Shown = shown
		id, err := s.StartTransfer(spec)
		if err != nil {
			t.Fatal(err)
		}
		var last TransferView
		waitFor(t, 30*time.Second, "the transfer's end", s, func(v View) bool {
			for _, x := range v.Transfer {
				if last = x; x.ID == id && x.ended() {
					return true
				}
			}
			return false
		})
		return last
	}
	if v := run(); !strings.Contains(v.Err, "old would be deleted by now") {
		t.Errorf("not refused: %+v", v)
	}
	if v := run("old"); v.Err != "" || v.Result == nil || len(v.Result.Deleted) != 1 {
		t.Errorf("%+v", v)
	}
}

// TestRenameWhileReloading: a reload in the middle of a rename makes no second
// record of the instance.
func TestRenameWhileReloading(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	f := open(t, t.TempDir(), false, srv)
	in := config.Instance{Name: "n0", SSH: sshLine(srv, srv.Addr)}
	if err := f.Add(in); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = f.reload() // as the screen does when the file has changed
			}
		}
	}()
	for i := range 20 {
		in.Name = fmt.Sprintf("n%d", i+1)
		if err := f.Edit(fmt.Sprintf("n%d", i), in); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-done
	all, err := f.ledger.Instances(t.Context())
	if err != nil || len(all) != 1 {
		t.Errorf("%d records of one instance, %v", len(all), err)
	}
}

// deaf is a provider that answers no question any more.
type deaf struct{ provider.Provider }

func (deaf) Kind() string      { return "deaf" }
func (deaf) Can() provider.Can { return provider.Can{Destroy: true} }
func (deaf) Status(context.Context, string) (provider.Status, error) {
	return provider.Status{}, errors.New("no answer")
}
func (deaf) Leftovers(context.Context, string, provider.State) ([]provider.Leftover, error) {
	return nil, errors.New("no answer")
}

// TestProofIsTheMeters: where the provider answers no more after a release, its last
// word ends the meter all the same.
func TestProofIsTheMeters(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	s.setup.Store(&setup{cfg: s.cfg(), prov: deaf{}})
	s.record(ledger.Observed, time.Now(), "ssh", ledger.Observation{State: "running"})
	s.ended(release.View{Phase: release.Review, Ended: provider.Gone, Proof: phrase.Say("proof.gone", "deaf")})
	waitFor(t, 10*time.Second, "the end of the meter", s, func(View) bool {
		var got billing.State
		s.sendWait(func(st *state) { got = st.timeline.State })
		return got == billing.Gone
	})
}
