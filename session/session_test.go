package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/agent/agenttest"
	"rentop/remote/sshtest"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/release"
	"rentop/sync"
)

// noKeyring is the keyring of a machine without one.
type noKeyring struct{}

func (noKeyring) Get(string) (string, bool) { return "", false }
func (noKeyring) Set(string, string) error  { return errors.New("no keyring") }
func (noKeyring) Delete(string) error       { return nil }
func (noKeyring) Available() bool           { return false }

// sshLine is how srv is reached at addr.
func sshLine(srv *sshtest.Server, addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("ssh -p %s -i %s %s@%s", port, srv.KeyFile, srv.User, host)
}

func open(t *testing.T, dir string, live bool, srv *sshtest.Server) *Fleet {
	t.Helper()
	f, err := Open(t.Context(), Options{
		Dirs: Dirs{Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")},
		Live: live, Secrets: noKeyring{}, AcceptHostKey: ssh.FingerprintSHA256(srv.HostKey()),
		helper: agent.Options{Binaries: agenttest.Binaries(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func session(t *testing.T, f *Fleet, name string) *Session {
	t.Helper()
	s, err := f.Session(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// waitFor polls a view until ok, and shows the last one where it never was.
func waitFor(t *testing.T, within time.Duration, what string, s *Session, ok func(View) bool) View {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		v := s.View()
		if ok(v) {
			return v
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: state %s (%s), %+v", what, within, v.State, v.Reason, v)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestRoad walks the whole road on a real sshd: add, connect, meter, job, push,
// pull, release with own commands, review.
func TestRoad(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{Noise: true})
	dir := t.TempDir()
	cloud := filepath.Join(dir, "cloud")
	if err := os.WriteFile(cloud, []byte("running"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	ctx := t.Context()

	f := open(t, dir, false, srv)
	in := config.Instance{
		Name: "box", SSH: sshLine(srv, srv.Addr), Provider: "command", ID: "i-1",
		Command: &config.Command{
			Status:  "cat " + cloud,
			Destroy: "printf gone > " + cloud,
			Stop:    "printf stopped > " + cloud,
		},
		Rate:      &config.Rate{PerHour: "8.00", Currency: "CNY", WhileStopped: "0.02"},
		Artifacts: []config.Artifact{{Path: "~/project/out", To: out}},
		LookIn:    []string{"~"}, // the rest of this machine is not the test's
	}
	if err := f.Add(in); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(dir, "src")
	for name, text := range map[string]string{"train.sh": "mkdir -p out; echo model > out/model.bin; echo trained\n", "junk.log": "x", ".gitignore": "*.log\n"} {
		if err := os.MkdirAll(src, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Transfer(ctx, TransferSpec{Direction: sync.Push, Local: src, Remote: "~/project"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	job, err := s.StartJob(ctx, JobSpec{Name: "train", Command: "sh train.sh", Dir: "~/project"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if _, err := s.Follow(ctx, job.ID, 0, true, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "trained") {
		t.Errorf("log %q", log.String())
	}
	jobs, err := s.Jobs(ctx)
	if err != nil || len(jobs) != 1 || jobs[0].State != tmux.Done || jobs[0].ExitCode == nil || *jobs[0].ExitCode != 0 {
		t.Fatalf("jobs %+v, %v", jobs, err)
	}

	check, err := s.CheckRelease(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range check.Checks { // the job's log was brought home, so it is not lost
		for _, e := range c.Evidence {
			if c.ID == release.CheckUnsaved && strings.Contains(e.What, job.ID) {
				t.Errorf("the log is still only there: %+v", e)
			}
		}
	}
	if kept, err := os.ReadFile(s.LogFile(job.ID)); err != nil || !strings.Contains(string(kept), "trained") {
		t.Errorf("the log here: %q, %v", kept, err)
	}
	if len(check.Fails()) == 0 {
		t.Fatalf("the model is nowhere else, yet nothing fails: %+v", check.Checks)
	}
	if _, err := s.Transfer(ctx, TransferSpec{Direction: sync.Pull, Local: out, Remote: "~/project/out", Verify: true}, nil, nil); err != nil {
		t.Fatal(err)
	}
	var last release.View
	v, err := s.Release(ctx, release.Destroy, func(v release.View) {
		if v.Phase == release.Waiting && v.Shown != last.Shown {
			last = v
			for _, c := range v.Checks {
				if c.State == release.Offered {
					_ = s.Decide(release.Decision{Kind: release.DecideSnapshot, Snapshot: release.NoSnapshot})
					return
				}
			}
			_ = s.Decide(release.Decision{Kind: release.DecideName, Name: "box", Shown: v.Shown})
		}
	})
	if err != nil {
		t.Fatalf("release: %v\n%+v", err, v)
	}
	if v.Phase != release.Review || v.Proof.String() == "" {
		t.Errorf("ended as %+v", v)
	}
	if got, _ := os.ReadFile(cloud); string(got) != "gone" {
		t.Errorf("the cloud says %q", got)
	}
	costs, err := f.Costs(ctx, time.Now().Add(-time.Hour))
	if err != nil || len(costs.Rows) == 0 {
		t.Errorf("costs %+v, %v", costs, err)
	}
}

// TestPullUnsaved: what the checklist found is pulled from within it, and then
// is proven to be here.
func TestPullUnsaved(t *testing.T) {
	files := map[string]string{"deep/er/a.txt": "a", "deep/b.txt": "bb"}
	if skel, err := os.ReadFile("/etc/skel/.profile"); err == nil { // as it is for every new login
		files[".profile"] = string(skel)
	}
	srv := sshtest.Start(t, sshtest.Options{Files: files})
	dir := t.TempDir()
	f := open(t, dir, false, srv)
	in := config.Instance{
		Name: "box", SSH: sshLine(srv, srv.Addr), Provider: "command", LookIn: []string{"~"},
		Command: &config.Command{Status: "echo running", Destroy: "exit 1"},
	}
	if err := f.Add(in); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A link that git does not know holds no content that could be lost.
	if err := s.Exec(t.Context(), "git init -q proj && ln -s ../deep proj/link", nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	var pulled bool
	last := ""
	v, err := s.Release(t.Context(), release.Destroy, func(v release.View) {
		if v.Phase != release.Waiting || v.Shown == last {
			return
		}
		last = v.Shown
		d := release.Decision{Kind: release.DecidePull}
		if pulled {
			d.Kind = release.DecideCancel
		}
		pulled = true
		_ = s.Decide(d)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "state", "saved", "box", srv.Home, "deep", "er", "a.txt")); err != nil || string(got) != "a" {
		t.Errorf("pulled %q, %v; %s", got, err, v.Why)
	}
	for _, c := range v.Checks {
		if (c.ID == release.CheckUnsaved || c.ID == release.CheckGit) && c.State != release.Passed {
			t.Errorf("after the pull: %+v", c)
		}
	}
	if n, _, err := release.CountUnsaved(t.Context(), s.releaseDeps(t.Context())); err != nil || n != 0 {
		t.Errorf("the overview still counts %d unsaved files, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "saved", "box", srv.Home, ".profile")); err == nil {
		t.Error("a start-up file that nobody touched was taken for work")
	}
}

// TestLive watches a session through a black hole and back.
func TestLive(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	proxy := sshtest.NewProxy(t, srv.Addr)
	dir := t.TempDir()
	f := open(t, dir, true, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, proxy.Addr), Rate: &config.Rate{PerHour: "8.00", Currency: "CNY"}}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	v := waitFor(t, 15*time.Second, "a sample", s, func(v View) bool { return v.State == Live && v.Sample != nil })
	if v.Sample.Problem == nil {
		t.Errorf("no GPU here, and no word about it: %+v", v.Sample)
	}
	if v.Meter.PerHour == nil || v.Meter.PerHour.Decimal(2) != "8.00" || v.Meter.Cost == nil {
		t.Errorf("meter %+v", v.Meter)
	}
	proxy.CutNow(sshtest.Hole)
	waitFor(t, 6500*time.Millisecond, "stalled", s, func(v View) bool { return v.State == Stalled && len(v.Reason) > 0 })
	waitFor(t, 20*time.Second, "given up", s, func(v View) bool { return v.State == Waiting || v.State == Connecting })
	proxy.Heal()
	s.Nudge()
	waitFor(t, 15*time.Second, "back", s, func(v View) bool { return v.State == Live })
	select {
	case <-f.Changed():
	case <-time.After(5 * time.Second):
		t.Error("nothing was said to have changed")
	}
	if got := f.View().Sessions[0].Name; got != "box" {
		t.Errorf("fleet shows %q", got)
	}
}

// TestQuestion: an unknown host key waits in the view until it is answered.
func TestQuestion(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	dir := t.TempDir()
	f, err := Open(t.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Live: true, Secrets: noKeyring{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	waitFor(t, 10*time.Second, "asking", s, func(v View) bool { return v.State == Asking })
	var q Question
	for deadline := time.Now().Add(5 * time.Second); q.ID == 0; {
		if qs := f.View().Questions; len(qs) > 0 {
			q = qs[0]
		}
		if time.Now().After(deadline) {
			t.Fatal("no question in the view")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if q.Kind != remote.AskHostKey || q.Fingerprint != ssh.FingerprintSHA256(srv.HostKey()) {
		t.Errorf("question %+v", q)
	}
	f.Answer(q.ID, remote.Answer{OK: true})
	waitFor(t, 10*time.Second, "live", s, func(v View) bool { return v.State == Live })

	srv.ReplaceHostKey()
	v := waitFor(t, 30*time.Second, "refused", s, func(v View) bool { return v.State == Refused })
	if !strings.Contains(v.Reason.String(), "key") {
		t.Errorf("reason %q", v.Reason)
	}
}

// TestCommandFailsAtOnce: without a screen nobody waits for an instance that is not there.
func TestCommandFailsAtOnce(t *testing.T) {
	addr := sshtest.Nobody(t)
	dir := t.TempDir()
	f, err := Open(t.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Add(config.Instance{Name: "box", SSH: "root@" + addr}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := session(t, f, "box").Ready(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("got %v after %v", err, ctx.Err())
	}
}

// TestStoppedElsewhere: a command that cannot reach an instance asks its provider
// before it says what it is and what it costs.
func TestStoppedElsewhere(t *testing.T) {
	addr := sshtest.Nobody(t)
	dir := t.TempDir()
	f, err := Open(t.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Add(config.Instance{
		Name: "box", SSH: "root@" + addr, Provider: "command", Command: &config.Command{Status: "echo stopped"},
		Rate: &config.Rate{PerHour: "8", Currency: "CNY", WhileStopped: "0.02"},
	}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	if err := s.Ready(t.Context()); err == nil {
		t.Fatal("connected to nothing")
	}
	waitFor(t, 5*time.Second, "stopped", s, func(v View) bool {
		return v.State == Stopped && v.Meter.PerHour != nil && v.Meter.PerHour.Decimal(2) == "0.02"
	})
}

func TestInstances(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(t.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Session("a"); !errors.Is(err, ErrUnknownInstance) || !strings.Contains(err.Error(), "rentop add") {
		t.Errorf("empty fleet: %v", err)
	}
	for _, bad := range []config.Instance{
		{Name: "a"}, {Name: "a b", SSH: "u@h"}, {Name: "a", SSH: "u@h", Rate: &config.Rate{PerHour: "-8", Currency: "CNY"}},
		{Name: "a", SSH: "ssh -o ProxyCommand=evil u@h"},
	} {
		if err := f.Add(bad); err == nil {
			t.Errorf("accepted %+v", bad)
		}
	}
	if err := f.Add(config.Instance{Name: "a", SSH: "u@h"}); err != nil {
		t.Fatal(err)
	}
	uid := session(t, f, "a").uid
	if err := f.Edit("a", config.Instance{Name: "b", SSH: "u@h", Budget: "5", Rate: &config.Rate{PerHour: "1", Currency: "USD"}}); err != nil {
		t.Fatal(err)
	}
	if got := session(t, f, "b").uid; got != uid {
		t.Errorf("a rename made a new instance: %s, was %s", got, uid)
	}
	if err := f.Remove("b"); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(config.Instance{Name: "b", SSH: "u@h"}); err != nil {
		t.Fatal(err)
	}
	if got := session(t, f, "b").uid; got == uid {
		t.Error("a new instance took over the record of a removed one")
	}
}

// TestDeletedByHand: a section that is taken out of the config without a word goes
// on counting, and the bill says so; after rm it does not.
func TestDeletedByHand(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}}
	note := func() string {
		t.Helper()
		f, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := f.Costs(t.Context(), time.Time{})
		if err != nil || len(r.Rows) == 0 {
			t.Fatal(err, r)
		}
		return r.Rows[len(r.Rows)-1].Note.String()
	}
	add := func() *Fleet {
		t.Helper()
		f, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Add(config.Instance{Name: "box", SSH: "root@" + sshtest.Nobody(t), Rate: &config.Rate{PerHour: "8", Currency: "CNY"}}); err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := add()
	session(t, f, "box").record(ledger.Observed, time.Now().Add(-time.Hour), "ssh", ledger.Observation{State: "running"})
	f.Close()
	if got := note(); strings.Contains(got, "not in the config") {
		t.Errorf("listed, and the note is %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := note(); !strings.Contains(got, "not in the config any more; last seen ") || !strings.Contains(got, "running") {
		t.Errorf("deleted by hand, and the note is %q", got)
	}
	f = add()
	if err := f.Remove("box"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := note(); strings.Contains(got, "not in the config") {
		t.Errorf("removed, and the note is %q", got)
	}
}

func TestSums(t *testing.T) {
	price := func(s, c string) *billing.Amount {
		v, err := billing.ParseDecimal(s)
		if err != nil {
			t.Fatal(err)
		}
		return &billing.Amount{Value: v, Currency: c}
	}
	var s summer
	s.add(price("8", "CNY"), true)
	s.add(price("10", "USD"), true)
	s.add(price("2.5", "CNY"), true)
	s.add(nil, true)
	got := s.sums(billing.Exchange{}, time.Now())
	if len(got.Amounts) != 2 || got.Unknown != 1 || got.Amounts[0].Decimal(2) != "10.50" {
		t.Errorf("without a rate: %+v", got)
	}
	var ex billing.Exchange
	if err := ex.Add(billing.Rate{From: "USD", To: "CNY", Value: price("7.1", "CNY").Value}); err != nil {
		t.Fatal(err)
	}
	got = s.sums(ex, time.Now())
	if len(got.Amounts) != 1 || got.Amounts[0].Decimal(2) != "81.50" {
		t.Errorf("with a rate: %+v", got)
	}
}
