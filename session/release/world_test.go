// The world of the tests: a real shell over real files in a temporary folder, a
// clock that only sleeps move, and a provider that is a fake: it keeps one
// machine's state and injects faults.

package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session/phrase"
	treesync "rentop/sync"
)

// shell runs scripts in a real POSIX shell whose home is a temporary folder.
type shell struct {
	home string
	sh   []string // ["sh"]
	path string   // PATH; "" keeps ours
	hook func(script string)
	down bool // the connection is lost
	off  func() bool
}

func (s *shell) Run(ctx context.Context, c remote.Cmd) error {
	if err := s.reach(c); err != nil {
		return err
	}
	return s.exec(ctx, c)
}

// reach says whether the instance hears, and lets the world change before it does.
func (s *shell) reach(c remote.Cmd) error {
	if s.down || s.off != nil && s.off() {
		return errors.New("connection lost")
	}
	if s.hook != nil {
		s.hook(c.Script)
	}
	return nil
}

func (s *shell) exec(ctx context.Context, c remote.Cmd) error {
	args := append(append([]string{}, s.sh[1:]...), "-c", c.Script)
	cmd := exec.CommandContext(ctx, s.sh[0], args...)
	cmd.WaitDelay = time.Second
	cmd.Dir = s.home
	cmd.Env = append(os.Environ(), "HOME="+s.home, "GIT_CONFIG_GLOBAL=/dev/null")
	if s.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+s.path)
	}
	cmd.Stdin = c.Stdin
	if c.Stdout != nil {
		cmd.Stdout = struct{ io.Writer }{c.Stdout}
	}
	var kept bytes.Buffer
	cmd.Stderr = &kept
	if c.Stderr != nil {
		cmd.Stderr = struct{ io.Writer }{c.Stderr}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &remote.ExitError{Code: exit.ExitCode(), Stderr: remote.Short(kept.String(), 400)}
	}
	return err
}

// fakeClock stands still but for sleeps.
type fakeClock struct {
	mu    sync.Mutex // guards now
	now   time.Time
	slept func() // after each sleep; nil: nothing happens meanwhile
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
	if c.slept != nil {
		c.slept()
	}
	return ctx.Err()
}

// faults of the fake provider.
type fault string

const (
	honest        fault = "honest"
	acceptedNotOK fault = "accepted but not done"
	doneButFailed fault = "done but reported failed"
	refused       fault = "refused"
	slow          fault = "accepted, done after some questions"
	silentStatus  fault = "status fails for a while"
	alreadyGone   fault = "gone before the request"
)

var faults = []fault{honest, acceptedNotOK, doneButFailed, refused, slow, silentStatus, alreadyGone}

// fakeProvider is a fake: one machine with an id.
type fakeProvider struct {
	mu       sync.Mutex
	id       string
	state    provider.State
	fault    fault
	asked    int // Status calls
	ripe     int // Status calls until a slow teardown is done
	calls    []string
	before   func(action, id string) // may look at the world at the moment of a teardown
	after    func()                  // the process may die here
	snapshot error
	can      provider.Can
}

func newFakeProvider(f fault) *fakeProvider {
	p := &fakeProvider{id: "i-1", state: provider.Running, fault: f, can: provider.Can{Start: true, Stop: true, Destroy: true, Snapshot: true}}
	if f == alreadyGone {
		p.state = provider.Gone
	}
	return p
}

func (p *fakeProvider) Kind() string      { return "fake" }
func (p *fakeProvider) Can() provider.Can { return p.can }

func (p *fakeProvider) Status(_ context.Context, id string) (provider.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if id != p.id {
		return provider.Status{State: provider.Gone}, nil
	}
	if p.fault == silentStatus && p.asked%3 != 0 {
		return provider.Status{}, errors.New("timeout")
	}
	if p.state == provider.Changing {
		if p.ripe--; p.ripe <= 0 {
			p.state = provider.Gone
		}
	}
	return provider.Status{State: p.state, Detail: strings.ToUpper(string(p.state))}, nil
}

// truth is the machine's own state, whatever Status says.
func (p *fakeProvider) truth() provider.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *fakeProvider) act(action, id string, to provider.State) error {
	if p.before != nil {
		p.before(action, id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != nil {
		defer p.after()
	}
	p.calls = append(p.calls, action+" "+id)
	switch p.fault {
	case acceptedNotOK:
		return nil
	case refused:
		return errors.New("409 conflict: minimum period")
	case doneButFailed:
		p.state = to
		return errors.New("500 internal error")
	case slow:
		p.state, p.ripe = provider.Changing, 3
		return nil
	}
	p.state = to
	return nil
}

func (p *fakeProvider) Start(context.Context, string) error { return nil }
func (p *fakeProvider) Stop(_ context.Context, id string) error {
	return p.act("stop", id, provider.Stopped)
}
func (p *fakeProvider) Destroy(_ context.Context, id string) error {
	return p.act("destroy", id, provider.Gone)
}
func (p *fakeProvider) Snapshot(_ context.Context, id, name string) (provider.Snapshot, error) {
	return provider.Snapshot{ID: "snap-" + id, Name: name}, p.snapshot
}
func (p *fakeProvider) Leftovers(context.Context, string, provider.State) ([]provider.Leftover, error) {
	return nil, provider.ErrUnsupported
}

// world is an instance's files (home), our files (here) and the rest.
type world struct {
	t        testing.TB
	home     string
	here     string
	sh       *shell
	prov     *fakeProvider
	truth    func() provider.State // of the machine, whatever its provider says
	clock    *fakeClock
	journal  Journal
	jobs     []tmux.Job
	deps     Deps
	lastView View
}

// newWorld has one artifact, out/**, proven at its destination, and nothing
// else.
func newWorld(t testing.TB) *world {
	t.Helper()
	needtest.Program(t, "sh")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, home: filepath.Join(root, "there"), here: filepath.Join(root, "here"),
		prov: newFakeProvider(honest), clock: &fakeClock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)},
		journal: &MemoryJournal{},
	}
	w.truth = w.prov.truth
	w.sh = &shell{home: w.home, sh: []string{"sh"}, off: func() bool { s := w.truth(); return s == provider.Gone || s == provider.Stopped }}
	w.there("out/model.pt", "weights")
	w.there("out/logs/a.txt", "log")
	w.local("out/model.pt", "weights")
	w.local("out/logs/a.txt", "log")
	w.deps = Deps{
		Instance: "a100", UID: "uid-1", Runner: w.sh,
		Jobs:     func(context.Context) ([]tmux.Job, error) { return w.jobs, nil },
		Provider: w.prov, ProviderID: "i-1",
		Artifacts: []Artifact{{Path: "~/out/**", To: "out"}},
		Base:      w.here,
		Since:     time.Now().Add(-time.Hour),
		Roots:     []string{w.home},
		PullDir:   filepath.Join(w.here, "saved"), EnvDir: filepath.Join(w.here, "env"), SnapshotDir: filepath.Join(w.here, "snap"),
		OpenTransport: func(context.Context) (treesync.Transport, error) { return copyTransport{}, nil },
		GoesOn: func(context.Context, Goal) ([]GoesOn, error) {
			return []GoesOn{{phrase.Plain("disk 100 GB"), "35.00 CNY"}}, nil
		},
		Cost:    func(context.Context) string { return "25.61 CNY" },
		Journal: w.journal, Clock: w.clock,
	}
	w.deps.Changed = func(v View) { w.lastView = v }
	return w
}

func (w *world) there(name, content string) string { return put(w.t, w.home, name, content) }
func (w *world) local(name, content string) string { return put(w.t, w.here, name, content) }

func put(t testing.TB, root, name, content string) string {
	t.Helper()
	p := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// inspect runs the checklist once.
func (w *world) inspect() View {
	w.t.Helper()
	v, err := Inspect(w.t.Context(), w.deps)
	if err != nil {
		w.t.Fatalf("inspect: %v", err)
	}
	return v
}

func line(v View, id CheckID) Check {
	for _, c := range v.Checks {
		if c.ID == id {
			return c
		}
	}
	return Check{}
}

// fastEnv leaves the environment's capture out: it takes a second, and most
// tests are about something else.
func (w *world) fastEnv() {
	w.sh.hook = nil
	w.deps.Runner = skipEnv{w.sh}
}

type skipEnv struct{ remote.Runner }

func (s skipEnv) Run(ctx context.Context, c remote.Cmd) error {
	if c.Script == envScript {
		_, err := c.Stdout.Write([]byte("system.txt\x00kernel: test\n\x00end\x00\x00"))
		return err
	}
	return s.Runner.Run(ctx, c)
}

// copyTransport is Fetch by copying, for the decision to pull.
type copyTransport struct{ treesync.Transport }

func (copyTransport) Close() error { return nil }

func (copyTransport) Fetch(_ context.Context, root, dst string, files []treesync.Entry, _ treesync.Meter, done func(treesync.Entry, error)) error {
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(root, f.Path))
		if err == nil {
			p := filepath.Join(dst, f.Path)
			if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
				err = os.WriteFile(p, b, 0o644)
			}
		}
		done(f, err)
	}
	return nil
}

func sum(content string) string {
	h := sha256.Sum256([]byte(content))
	return hex.EncodeToString(h[:])
}

// text draws a view for a golden file and for failures.
func text(v View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", v.Goal, v.Instance, v.Phase)
	for _, c := range v.Checks {
		fmt.Fprintf(&b, "%-8s %-11s %s\n", c.State, c.ID, c.Summary.String())
		for _, e := range c.Evidence {
			mark := " "
			if e.Lost {
				mark = "!"
			}
			fmt.Fprintf(&b, "    %s %s", mark, e.What)
			if e.Size >= 0 {
				fmt.Fprintf(&b, " (%d)", e.Size)
			}
			if e.Detail.String() != "" {
				fmt.Fprintf(&b, ": %s", e.Detail.String())
			}
			b.WriteByte('\n')
		}
		if c.Cure.String() != "" {
			fmt.Fprintf(&b, "      cure: %s\n", c.Cure.String())
		}
	}
	fmt.Fprintf(&b, "lost: %d (%d bytes)\n", len(v.Lost), v.LostSize)
	for _, g := range v.GoesOn {
		fmt.Fprintf(&b, "goes on: %s %s\n", g.What, g.PerMonth)
	}
	fmt.Fprintf(&b, "why: %s\nproof: %s\ncost: %s\n", v.Why.String(), v.Proof.String(), v.Cost)
	return b.String()
}
