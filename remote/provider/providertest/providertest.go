// Package providertest is the suite that every provider passes.
//
// A test builds a Harness over a fake of the provider's own service and calls
// [Run]; a new provider is finished when it passes.
package providertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote/provider"
)

// Harness is a provider with one instance that runs, made anew for each check.
// The optional parts are nil where the fake cannot do them.
type Harness struct {
	Provider provider.Provider
	ID       string // of the instance, running
	Missing  string // an id that does not exist
	// Lag makes the service accept actions without doing them until the
	// function that it returns is called.
	Lag func() (settle func())
	// Break makes every call fail, with Secret in what the service says.
	Break  func()
	Secret string // what the provider knows and must never tell
	// Hang makes every call wait for the end of its context.
	Hang func()
	// Other is another running instance with the same name; "" where there is none.
	Other string
	// Truth is the state that an instance really has; nil where only Status tells.
	Truth func(id string) provider.State
	// OtherAccount makes the service answer as it does to a key of another
	// account: it has none of these instances.
	OtherAccount func()
}

// patience bounds the wait for a service that does things later.
const patience = 10 * time.Second

// Run runs the suite.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	for _, check := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"it names itself", names},
		{"a running instance runs", runs},
		{"an unknown id never runs", unknownID},
		{"stop is proven and repeatable", stops},
		{"accepted is not done", lags},
		{"start after stop", starts},
		{"destroy directly", func(t *testing.T, h Harness) { destroys(t, h, false) }},
		{"destroy after stop", func(t *testing.T, h Harness) { destroys(t, h, true) }},
		{"snapshot", snapshots},
		{"leftovers", leftovers},
		{"what it cannot do", unsupported},
		{"an ended context does nothing", cancelled},
		{"a context ends a call", hangs},
		{"many calls at once", concurrent},
		{"errors tell who and whom, no secret", tells},
		{"import lists what is there", imports},
		{"balance", balance},
		{"the address is read anew", addresses},
		{"only the named instance is touched", onlyThis},
		{"another account's silence is not gone", otherAccount},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, harness(t)) })
	}
}

func names(t *testing.T, h Harness) {
	if h.Provider.Kind() == "" || h.Provider.Kind() != strings.ToLower(h.Provider.Kind()) {
		t.Errorf("Kind is %q: want a short name in lower case", h.Provider.Kind())
	}
	if a, b := h.Provider.Can(), h.Provider.Can(); a != b {
		t.Errorf("Can says %+v, then %+v", a, b)
	}
}

func runs(t *testing.T, h Harness) {
	s := status(t, h)
	if s.State != provider.Running {
		t.Errorf("the state is %q (%s), want running", s.State, s.Detail)
	}
	if s.StartedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("it started in the future: %v", s.StartedAt)
	}
}

func unknownID(t *testing.T, h Harness) {
	if s, err := h.Provider.Status(t.Context(), h.Missing); err == nil && s.State != provider.Gone {
		t.Errorf("an instance that does not exist is %q", s.State)
	}
	if h.Provider.Can().Stop {
		if h.Provider.Stop(t.Context(), h.Missing) == nil {
			t.Error("stopping what does not exist succeeded: a wrong id would look like a stopped one")
		}
	}
	if s := status(t, h); s.State != provider.Running {
		t.Errorf("that changed the other instance: it is %q", s.State)
	}
}

func stops(t *testing.T, h Harness) {
	if !has(t, h.Provider.Can().Stop, "stop") {
		return
	}
	for range 2 {
		if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Stopped)
	}
}

func lags(t *testing.T, h Harness) {
	if !has(t, h.Lag != nil && (h.Provider.Can().Stop || h.Provider.Can().Destroy), "lag, stop or destroy") {
		return
	}
	settle := h.Lag()
	goal := provider.Stopped
	if h.Provider.Can().Stop {
		if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
	} else {
		goal = provider.Gone
		if err := h.Provider.Destroy(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
	}
	if s := status(t, h); s.State != provider.Running && s.State != provider.Changing {
		t.Errorf("accepted but not done, and the state is already %q", s.State)
	}
	settle()
	await(t, h, goal)
}

func starts(t *testing.T, h Harness) {
	if !has(t, h.Provider.Can().Stop && h.Provider.Can().Start, "start and stop") {
		return
	}
	if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	await(t, h, provider.Stopped)
	for range 2 {
		if err := h.Provider.Start(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Running)
	}
}

func destroys(t *testing.T, h Harness, stopFirst bool) {
	if !has(t, h.Provider.Can().Destroy, "destroy") {
		return
	}
	if stopFirst {
		if !has(t, h.Provider.Can().Stop, "stop") {
			return
		}
		if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Stopped)
	}
	for range 2 {
		if err := h.Provider.Destroy(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		await(t, h, provider.Gone)
	}
	if h.Provider.Can().Start && h.Provider.Start(t.Context(), h.ID) == nil {
		t.Error("starting a destroyed instance succeeded")
	}
	if s := status(t, h); s.State != provider.Gone {
		t.Errorf("it came back: %q", s.State)
	}
}

func snapshots(t *testing.T, h Harness) {
	if !has(t, h.Provider.Can().Snapshot, "snapshot") {
		return
	}
	name := "before release; it's $HOME"
	s, err := h.Provider.Snapshot(t.Context(), h.ID, name)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID == "" || s.Name == "" {
		t.Errorf("the snapshot has no id or no name: %+v", s)
	}
	decimal(t, s.PerMonth)
	if st := status(t, h); st.State == provider.Gone {
		t.Errorf("after a snapshot the instance is %q", st.State)
	}
	list, err := h.Provider.Leftovers(t.Context(), h.ID, provider.Gone)
	if errors.Is(err, provider.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if l.ID == s.ID {
			return
		}
	}
	t.Errorf("the snapshot %q is not among what goes on costing: %+v", s.ID, list)
}

func leftovers(t *testing.T, h Harness) {
	for _, after := range []provider.State{provider.Stopped, provider.Gone} {
		list, err := h.Provider.Leftovers(t.Context(), h.ID, after)
		if err != nil {
			if !errors.Is(err, provider.ErrUnsupported) {
				t.Error(err)
			}
			continue
		}
		for _, l := range list {
			if l.Kind == "" || l.ID == "" || l.PerMonth != "" && l.Currency == "" {
				t.Errorf("after %s: %+v is not complete", after, l)
			}
			decimal(t, l.PerMonth)
		}
	}
}

func unsupported(t *testing.T, h Harness) {
	can := h.Provider.Can()
	for name, call := range map[string]struct {
		can bool
		do  func() error
	}{
		"start":   {can.Start, func() error { return h.Provider.Start(t.Context(), h.ID) }},
		"stop":    {can.Stop, func() error { return h.Provider.Stop(t.Context(), h.ID) }},
		"destroy": {can.Destroy, func() error { return h.Provider.Destroy(t.Context(), h.ID) }},
		"snapshot": {can.Snapshot, func() error {
			_, err := h.Provider.Snapshot(t.Context(), h.ID, "x")
			return err
		}},
	} {
		if call.can {
			continue
		}
		if err := call.do(); !errors.Is(err, provider.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", name, err)
		}
	}
	if s := status(t, h); s.State != provider.Running {
		t.Errorf("it is %q after calls that it does not support", s.State)
	}
}

// calls are all that a context can end.
func calls(h Harness) map[string]func(context.Context) error {
	p, can := h.Provider, h.Provider.Can()
	list := map[string]func(context.Context) error{
		"status": func(ctx context.Context) error { _, err := p.Status(ctx, h.ID); return err },
	}
	if can.Stop {
		list["stop"] = func(ctx context.Context) error { return p.Stop(ctx, h.ID) }
	}
	if can.Start {
		list["start"] = func(ctx context.Context) error { return p.Start(ctx, h.ID) }
	}
	if can.Destroy {
		list["destroy"] = func(ctx context.Context) error { return p.Destroy(ctx, h.ID) }
	}
	if can.Snapshot {
		list["snapshot"] = func(ctx context.Context) error { _, err := p.Snapshot(ctx, h.ID, "x"); return err }
	}
	return list
}

func cancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(h) {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's end", name, err)
		}
	}
	if s := status(t, h); s.State != provider.Running {
		t.Errorf("it is %q after calls that were cancelled before they began", s.State)
	}
}

func hangs(t *testing.T, h Harness) {
	if !has(t, h.Hang != nil, "hang") {
		return
	}
	h.Hang()
	for name, call := range calls(h) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want the context's end", name, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s went on for %v after its context", name, took)
		}
		cancel()
	}
}

func concurrent(t *testing.T, h Harness) {
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if n%2 == 0 && h.Provider.Can().Stop {
				if err := h.Provider.Stop(t.Context(), h.ID); err != nil {
					t.Error(err)
				}
				return
			}
			if s, err := h.Provider.Status(t.Context(), h.ID); err != nil || s.State == provider.Gone {
				t.Errorf("%q, %v", s.State, err)
			}
		})
	}
	wg.Wait()
	if h.Provider.Can().Stop {
		await(t, h, provider.Stopped)
	}
}

func tells(t *testing.T, h Harness) {
	if !has(t, h.Break != nil, "failure") {
		return
	}
	h.Break()
	for name, call := range calls(h) {
		err := call(t.Context())
		if err == nil {
			t.Errorf("%s succeeded at a service that fails", name)
			continue
		}
		for _, want := range []string{h.Provider.Kind(), h.ID} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error does not name %q: %v", name, want, err)
			}
		}
		if h.Secret != "" && strings.Contains(err.Error(), h.Secret) {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}

func status(t *testing.T, h Harness) provider.Status {
	t.Helper()
	s, err := h.Provider.Status(t.Context(), h.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await asks until the state is there. On the way nothing may be claimed that is
// not: a stopping instance is never Gone.
func await(t *testing.T, h Harness, want provider.State) {
	t.Helper()
	var s provider.Status
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s = status(t, h); s.State == want {
			return
		}
		if s.State == provider.Gone {
			break
		}
	}
	t.Fatalf("the state is %q (%s), want %q", s.State, s.Detail, want)
}

// has says whether a promise concerns this provider: what it does not offer it
// does not promise, which is no skipped test.
func has(t *testing.T, have bool, what string) bool {
	t.Helper()
	if !have {
		t.Logf("does not apply: this provider or its fake has no %s", what)
	}
	return have
}

func decimal(t *testing.T, s string) {
	t.Helper()
	if s == "" {
		return
	}
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" || strings.Trim(whole+frac, "0123456789") != "" {
		t.Errorf("the price %q is no decimal", s)
	}
}
