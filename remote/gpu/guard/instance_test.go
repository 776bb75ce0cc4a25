//go:build linux

package guard_test

// The guard on a real server: started through the helper over SSH, read back by a
// script, and left alone with the network cut, sshd killed or itself killed.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/agent/agenttest"
	"rentop/remote/gpu/guard"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/remote/tmux"
)

// smi is an nvidia-smi of one GPU whose use is in ~/util; without that file it fails.
const smi = `#!/bin/sh
while [ -f "$HOME/util" ]; do
	echo "0, $(cat "$HOME/util"), 1024, 81920, 60.5, 400.00, 35"
	sleep 1
done
echo "No devices were found"
exit 6
`

type box struct {
	t    *testing.T
	srv  *sshtest.Server
	conn *remote.Conn
	n    int
}

// start gives a server with a GPU of that use; "" is one without a GPU.
func start(t *testing.T, util string) *box {
	t.Helper()
	bin := agenttest.Guard(t)
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(smi), 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	if util != "" {
		files["util"] = util
	}
	b := &box{t: t, srv: sshtest.Start(t, sshtest.Options{Files: files, Extra: []string{"SetEnv PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin"}})}
	b.conn = dialtest.Conn(t, b.srv, b.srv.Addr)
	s, err := agent.Open(t.Context(), b.conn, nil, "guard", agent.Options{Binaries: bin, MaxStripes: 1}) // sends it once
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	return b
}

// arm arms a guard and returns what is read back.
func (b *box) arm(s guard.Spec) *guard.Report {
	b.t.Helper()
	b.n++
	s.Version, s.ID = guard.Version, fmt.Sprintf("testguard%d", b.n)
	h, err := agent.Open(b.t.Context(), b.conn, nil, "guard", agent.Options{Binaries: agenttest.Guard(b.t), MaxStripes: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	defer h.Close()
	if err := guard.Arm(h.Link(), s); err != nil {
		b.t.Fatal(err)
	}
	return b.read()
}

func (b *box) read() *guard.Report { return b.ask(guard.ReadScript()) }

func (b *box) ask(script string) *guard.Report {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	out, err := remote.Output(ctx, b.conn, script)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := guard.ParseReport(out)
	if err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return r
}

func (b *box) put(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.srv.Home, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// file waits for a file that the guard's action makes.
func (b *box) file(name string, within time.Duration) string {
	b.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(b.srv.Home, name))
		if err == nil && len(text) > 0 { // made and not yet written is not there
			return strings.TrimSpace(string(text))
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(b.srv.Home, ".rentop/guard/state"))
			journal, _ := os.ReadFile(filepath.Join(b.srv.Home, ".rentop/guard/journal"))
			b.t.Fatalf("no %s within %v\n%s\n%s\n%s", name, within, log, journal, strings.Join(b.srv.Processes(), "\n"))
		}
	}
}

func (b *box) none(name string, d time.Duration) {
	b.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(b.srv.Home, name)); err == nil {
			b.t.Fatalf("there is %s", name)
		}
	}
}

// TestAlone: each kind of rule acts although the connection is gone and sshd is
// killed, and the guard itself too.
func TestAlone(t *testing.T) {
	for name, c := range map[string]struct {
		rule guard.Rule
		util string
	}{
		"idle":     {guard.Rule{Kind: guard.Idle, Seconds: 4, Below: 5}, "0"},
		"budget":   {guard.Rule{Kind: guard.Budget, Limit: "1", Spent: "0.98", PerHour: "9", Currency: "CNY"}, ""}, // 8 s
		"deadline": {guard.Rule{Kind: guard.At, Seconds: 8}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, c.util)
			r := b.arm(guard.Spec{Rules: []guard.Rule{c.rule}, Save: "echo kept >saved", SaveSeconds: 10, Then: `[ -f saved ] && echo "$RENTOP_GUARD" >>stopped`})
			if !r.Armed() || len(r.State.Rules) != 1 || r.State.Rules[0].Left == nil || *r.State.Rules[0].Left > 8 {
				t.Fatalf("not armed: alive %v, %+v", r.Alive, r.State)
			}
			b.conn.Close()
			b.srv.Kill9()
			if err := syscall.Kill(r.State.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if got := b.file("stopped", 30*time.Second); got != string(c.rule.Kind) {
				t.Errorf("stopped by %q", got)
			}
			time.Sleep(1500 * time.Millisecond) // a second time would be a second line
			if got := b.file("stopped", time.Second); got != string(c.rule.Kind) {
				t.Errorf("stopped by %q", got)
			}
			b.srv.Restart()
			b.conn = dialtest.Conn(t, b.srv, b.srv.Addr)
			if r := b.read(); r.State.Phase != guard.Done || !r.Alive || r.State.Trip == nil || !r.State.Trip.Saved || len(r.Journal) < 5 {
				t.Errorf("afterwards: %v, %+v\n%+v", r.Alive, r.State, r.Journal)
			}
		})
	}
}

// TestAfterJob: a job of remote/tmux keeps the instance from being idle, and its end
// is a reason to act.
func TestAfterJob(t *testing.T) {
	t.Parallel()
	b := start(t, "0")
	jobs := tmux.New(b.conn, nil)
	if _, err := jobs.Start(t.Context(), tmux.Spec{ID: "train", Name: "train", Command: "while [ ! -f over ]; do sleep 0.2; done; exit 3"}); err != nil {
		t.Fatal(err)
	}
	r := b.arm(guard.Spec{Rules: []guard.Rule{{Kind: guard.Idle, Seconds: 1, Below: 5}, {Kind: guard.After, Job: "train"}}, Then: "echo $RENTOP_GUARD >stopped"})
	if !r.Armed() || r.State.Rules[0].Why.Key != "job" || r.State.Rules[1].Why.Key != "job" {
		t.Fatalf("not armed: %+v", r.State)
	}
	b.none("stopped", 3*time.Second)
	b.put("over", "")
	if got := b.file("stopped", 20*time.Second); got != "after" && got != "idle" {
		t.Errorf("stopped by %q", got)
	}
	if r := b.arm(guard.Spec{Rules: []guard.Rule{{Kind: guard.After, Job: "train"}}, Then: "true"}); r.Armed() || r.State.Phase != guard.Refused || r.State.Why.Key != "jobended" {
		t.Errorf("armed for a job that has ended: %+v", r.State)
	}
}

// TestMissing: without figures nothing is idle, and such a rule is not armed.
func TestMissing(t *testing.T) {
	t.Parallel()
	b := start(t, "")
	idle := []guard.Rule{{Kind: guard.Idle, Seconds: 1, Below: 5}}
	if r := b.arm(guard.Spec{Rules: idle, Then: "echo x >stopped"}); r.Armed() || r.State.Phase != guard.Refused || r.State.Why.Key != "nosample" || r.Gone() {
		t.Fatalf("armed without figures: %+v", r.State)
	}
	if r := b.arm(guard.Spec{Rules: idle, Check: "echo no runpodctl here; false", Then: "echo x >stopped"}); r.Armed() || r.State.Why.Key != "cannotact" || !strings.Contains(r.State.Why.Args[0], "runpodctl") {
		t.Fatalf("armed with an action that cannot work: %+v", r.State)
	}
	b.put("util", "0")
	if r := b.arm(guard.Spec{Rules: []guard.Rule{{Kind: guard.Idle, Seconds: 3, Below: 5}}, Then: "echo x >stopped"}); !r.Armed() {
		t.Fatalf("not armed: %+v", r.State)
	}
	os.Remove(filepath.Join(b.srv.Home, "util"))
	b.none("stopped", 4*time.Second)
	if r := b.read(); !r.Armed() || r.State.Rules[0].Left != nil || r.State.Rules[0].Why.Key != "nosample" {
		t.Errorf("without figures: %+v", r.State.Rules)
	}
}

// TestOff: a guard that is told to end does nothing more, and is not missed; one that
// was killed for good is.
func TestOff(t *testing.T) {
	t.Parallel()
	b := start(t, "0")
	if r := b.read(); r.State != nil || r.Alive || r.Gone() {
		t.Fatalf("before: %+v", r)
	}
	at := []guard.Rule{{Kind: guard.At, Seconds: 2}}
	b.arm(guard.Spec{Rules: at, Then: "echo x >stopped"})
	if r := b.ask(guard.OffScript()); r.Alive || r.Gone() || r.Armed() || !r.Off || r.State.Phase != guard.Off {
		t.Errorf("after off: %+v %+v", r, r.State)
	}
	if left := strings.Join(b.srv.Processes(), "\n"); strings.Contains(left, "guard run") {
		t.Errorf("still there:\n%s", left)
	}
	b.none("stopped", 4*time.Second)

	r := b.arm(guard.Spec{Rules: []guard.Rule{{Kind: guard.At, Seconds: 3600}}, Then: "true"})
	if !r.Armed() {
		t.Fatalf("not armed again: %+v", r.State)
	}
	first := r.State.PID
	r = b.arm(guard.Spec{Rules: []guard.Rule{{Kind: guard.At, Seconds: 60}}, Then: "true"})
	if !r.Armed() || r.State.PID != first || *r.State.Rules[0].Left > 60 {
		t.Errorf("other rules: %+v, the guard was %d", r.State, first)
	}
	b.srv.KillUser9("guard run") // with what starts it again, whose command line has the words too
	if r := b.read(); r.Alive || r.Armed() || !r.Gone() {
		t.Errorf("killed for good: %+v", r)
	}
}

// TestHistory: what was recorded is read back in steps, with the GPU's use.
func TestHistory(t *testing.T) {
	t.Parallel()
	b := start(t, "42")
	b.arm(guard.Spec{})
	time.Sleep(4 * time.Second)
	h, err := agent.Open(t.Context(), b.conn, nil, "guard", agent.Options{Binaries: agenttest.Guard(t), MaxStripes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	got, err := guard.History(h.Link(), time.Hour, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range got {
		if len(p.Sample.GPUs) == 1 {
			if u, ok := p.Sample.GPUs[0].Util.Get(); !ok || u != 42 || p.Ago > time.Minute {
				t.Errorf("%v ago: %v", p.Ago, p.Sample.GPUs[0].Util)
			}
			seen++
		}
	}
	if seen < 2 {
		t.Errorf("%d points of %d", seen, len(got))
	}
}
