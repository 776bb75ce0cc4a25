package session

import (
	"errors"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"rentop/remote/agent/agenttest"
	"rentop/remote/gpu"
	"rentop/remote/gpu/guard"
	"rentop/remote/provider"
	"rentop/remote/sshtest"
	"rentop/session/config"
)

// guarded is a fleet of one instance whose provider is two lines over a file: the
// simulated cloud. `cloudstop` on the instance stops it from inside.
func guarded(t *testing.T, live bool) (*sshtest.Server, *Fleet, *Session, string) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	cloud := filepath.Join(dir, "cloud")
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("cloud", "running", 0o666)
	write("cloudstop", "#!/bin/sh\nprintf stopped >"+cloud+"\n", 0o755)
	write("nvidia-smi", "#!/bin/sh\ncase $* in *index,utilization.gpu,memory.used*) while :; do echo '0, 0, 1024, 81920, 60, 400, 35'; sleep 1; done ;; esac\nexit 9\n", 0o755)
	srv := sshtest.Start(t, sshtest.Options{Extra: []string{"SetEnv PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin"}})
	f := open(t, dir, live, srv)
	f.opt.guardHelper = agenttest.Guard(t)
	if err := f.Add(config.Instance{
		Name: "box", SSH: sshLine(srv, srv.Addr), Provider: "command", ID: "i-1",
		Command: &config.Command{Status: "cat " + cloud, Start: "printf running >" + cloud, Stop: "printf stopped >" + cloud},
		Rate:    &config.Rate{PerHour: "36.00", Currency: "CNY"}, LookIn: []string{"~"},
	}); err != nil {
		t.Fatal(err)
	}
	return srv, f, session(t, f, "box"), cloud
}

func waitCloud(t *testing.T, cloud, want string, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if b, _ := os.ReadFile(cloud); string(b) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the instance is not %s within %v", want, within)
		}
	}
}

// TestGuardAlone: rentop ends, the network is cut and sshd is killed; the instance is
// stopped all the same, idle or at its time, and the next rentop learns it from the
// provider.
func TestGuardAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec   GuardSpec
		source string
	}{
		"idle": {GuardSpec{Idle: 2 * time.Second}, "nvidia-smi"},
		"at":   {GuardSpec{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, f, s, cloud := guarded(t, false)
			if c.spec.Then = "cloudstop"; name == "at" {
				c.spec.At = time.Now().Add(10 * time.Second)
			}
			g, err := s.Arm(t.Context(), c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if !g.Armed || len(g.Rules) != 1 || g.Rules[0].Kind != name || c.source != "" && g.Source != c.source || len(g.Problem) > 0 {
				t.Fatalf("armed: %+v", g)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			srv.Kill9()
			waitCloud(t, cloud, "stopped", 40*time.Second)
		})
	}
}

// TestGuardBudget: the numbers that the guard counts with are those of the meter, and
// it stops the instance alone.
func TestGuardBudget(t *testing.T) {
	t.Parallel()
	srv, f, s, cloud := guarded(t, false)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Told()
	if _, err := s.Arm(t.Context(), GuardSpec{Budget: "0", Then: "cloudstop"}); !errors.Is(err, ErrAtOnce) {
		t.Errorf("a budget that is used up: %v", err)
	}
	cost := s.View().Meter.Cost
	if cost == nil {
		t.Fatalf("no cost: %+v", s.View().Meter)
	}
	limit := new(big.Rat).Add(cost.Value, big.NewRat(8, 100)).FloatString(2) // 8 s, at a cent a second
	g, err := s.Arm(t.Context(), GuardSpec{Budget: limit, Then: "cloudstop"})
	if err != nil || g.Rules[0].Left == nil {
		t.Fatalf("%+v, %v", g, err)
	}
	plan, err := s.PlanGuard(t.Context(), GuardSpec{Budget: "1000000", Then: "cloudstop"})
	if err != nil || plan.Rules[0].Left == nil || plan.Rules[0].Left.Hours() > 1000000/36+1 || plan.Rules[0].Left.Hours() < 1000000/36-1000 {
		t.Errorf("a million at 36 an hour: %+v, %v", plan.Rules, err)
	}
	if err := f.Close(); err != nil { // and nobody is there any more
		t.Fatal(err)
	}
	srv.Kill9()
	waitCloud(t, cloud, "stopped", 40*time.Second)
}

// TestGuardWatched: the screen sees the guard armed, then gone when it is killed, as
// an alert; and none any more when it was disarmed.
func TestGuardWatched(t *testing.T) {
	t.Parallel()
	_, _, s, _ := guarded(t, true)
	waitFor(t, 20*time.Second, "asked for the guard", s, func(v View) bool { return v.Guard != nil })
	if g := s.View().Guard; g.Phase != "" || g.Armed || len(s.View().Alerts) != 0 {
		t.Fatalf("before: %+v %+v", g, s.View().Alerts)
	}
	in := time.Now().Add(time.Hour)
	if _, err := s.Arm(t.Context(), GuardSpec{At: in, Then: "true"}); err != nil {
		t.Fatal(err)
	}
	v := waitFor(t, 5*time.Second, "armed", s, func(v View) bool { return v.Guard.Armed })
	if due := v.Guard.Rules[0].Due; due.Sub(in).Abs() > 10*time.Second {
		t.Errorf("due at %v, asked for %v", due, in)
	}
	// What starts it again is killed first.
	if err := s.Exec(t.Context(), `read -r p s lp x <"$HOME/.rentop/guard/pid"; kill -9 "$lp"; kill -9 "$p"`, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	g, err := s.Guard(t.Context())
	if err != nil || g.Armed || len(g.Problem) == 0 {
		t.Errorf("killed: %+v, %v", g, err)
	}
	v = waitFor(t, 5*time.Second, "the alert", s, func(v View) bool {
		return slices.ContainsFunc(v.Alerts, func(a Alert) bool { return a.ID == "guard" && a.Level == Urgent })
	})
	if g, err := s.Disarm(t.Context()); err != nil || len(g.Problem) > 0 {
		t.Errorf("disarmed: %+v, %v", g, err)
	}
	waitFor(t, 5*time.Second, "no alert", s, func(v View) bool {
		return !slices.ContainsFunc(v.Alerts, func(a Alert) bool { return a.ID == "guard" })
	})
}

// TestGuardRefused: what cannot be armed is an error that says why, never silence.
func TestGuardRefused(t *testing.T) {
	t.Parallel()
	_, _, s, _ := guarded(t, false)
	var no *provider.NotInsideError
	if _, err := s.Arm(t.Context(), GuardSpec{At: time.Now().Add(time.Hour)}); !errors.As(err, &no) {
		t.Errorf("stop from inside with a command provider: %v", err)
	}
	for name, want := range map[string]GuardSpec{
		"no such job":  {After: "nothing", Then: "true"},
		"it is over":   {At: time.Now().Add(-time.Hour), Then: "true"},
		"no lease":     {Lease: true, Then: "true"},
		"no amount":    {Budget: "much", Then: "true"},
		"a long while": {Idle: 20 * 366 * 24 * time.Hour, Then: "true"},
	} {
		if g, err := s.Arm(t.Context(), want); err == nil || g.Armed {
			t.Errorf("%s: armed %+v", name, g)
		}
	}
	if g, err := s.Guard(t.Context()); err != nil || g.Phase != "" {
		t.Errorf("something is there: %+v, %v", g, err)
	}
}

// TestHistoryFill: what was recorded fills the gaps and nothing else.
func TestHistoryFill(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	add := func(h *history, from, to int, util float64) {
		for i := from; i < to; i++ {
			g := gpu.GPU{Util: gpu.Of(util)}
			h.add(&gpu.Sample{TakenAt: base.Add(time.Duration(i) * 2 * time.Second), GPUs: []gpu.GPU{g}})
		}
	}
	live := newHistory(2*time.Second, 100)
	add(live, 0, 10, 1)
	live.advance(base.Add(60 * time.Second)) // a cut of twenty steps
	add(live, 30, 41, 3)
	guardian := newHistory(2*time.Second, 100)
	add(guardian, -20, 36, 2)
	live.fill(guardian)
	got := live.view().Util[0]
	want := slices.Concat(slices.Repeat([]float64{2}, 20), slices.Repeat([]float64{1}, 10), slices.Repeat([]float64{2}, 20), slices.Repeat([]float64{3}, 10))
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	empty := newHistory(2*time.Second, 5)
	empty.fill(guardian)
	if v := empty.view(); len(v.Util) != 1 || math.IsNaN(v.Util[0][0]) {
		t.Errorf("into nothing: %+v", v)
	}
}

// TestGuardWords: only a living process of the right start is armed; numbers that an
// instance makes up do no harm.
func TestGuardWords(t *testing.T) {
	t.Parallel()
	now := time.Now()
	huge := int64(math.MaxInt64)
	st := &guard.State{Version: 1, Spec: guard.Spec{Rules: []guard.Rule{{Kind: guard.Idle}}}, Phase: guard.Watching, Now: now,
		Rules: []guard.Status{{Kind: guard.Idle, Left: &huge, Total: huge}, {Kind: guard.Budget}, {Kind: "new"}}}
	g := guardOf(&guard.Report{Now: now, Alive: true, State: st}, now)
	if !g.Armed || g.Text.String() == "" || g.Rules[0].Left == nil || *g.Rules[0].Left < 0 {
		t.Errorf("%+v", g)
	}
	ask := guard.Spec{Rules: []guard.Rule{{Kind: guard.At, Seconds: 3600}}}
	due := Guard{Rules: []GuardRule{{Kind: "at", Due: now.Add(time.Hour)}}}
	if what := differs(ask, due, now); what != "" {
		t.Error(what)
	}
	if differs(ask, due, now.Add(-time.Hour)) == "" || differs(ask, Guard{}, now) == "" || differs(ask, Guard{Rules: []GuardRule{{Kind: "idle"}}}, now) == "" {
		t.Error("another guard passes for this one")
	}
	if g := guardOf(&guard.Report{Now: now, State: st}, now); g.Armed || len(g.Problem) == 0 {
		t.Errorf("without a process: %+v", g)
	}
	if g := guardOf(&guard.Report{Now: now.Add(time.Hour), Alive: true, State: st}, now); g.Armed || len(g.Problem) == 0 {
		t.Errorf("silent for an hour: %+v", g)
	}
}

// TestGuardHistory: what happened while nobody was connected is on the screen of the
// next rentop. Nothing but the guard reads this machine's GPU.
func TestGuardHistory(t *testing.T) {
	t.Parallel()
	_, f, s, _ := guarded(t, false)
	if _, err := s.Arm(t.Context(), GuardSpec{Then: ThenNothing}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	dirs := f.opt.Dirs
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	live, err := Open(t.Context(), Options{Dirs: dirs, Live: true, Secrets: noKeyring{}, AcceptHostKey: f.opt.AcceptHostKey, helper: f.opt.helper, guardHelper: f.opt.guardHelper})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { live.Close() })
	waitFor(t, 30*time.Second, "the hours away", session(t, live, "box"), func(v View) bool {
		heard := 0
		for _, u := range v.History.Mean {
			if u == 0 {
				heard++
			}
		}
		return heard >= 2 && v.Guard != nil && v.Guard.Armed
	})
}
