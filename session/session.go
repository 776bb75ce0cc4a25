package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	stdsync "sync"
	"sync/atomic"
	"time"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/gpu/alarm"
	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// Session is rentop's live relation to one instance. Its state belongs to loop;
// others send it functions and read View.
type Session struct {
	f      *Fleet
	uid    string
	setup  atomic.Pointer[setup] // replaced by an edit
	memory *remote.AuthMemory
	ctx    context.Context
	cancel context.CancelFunc
	owned  stdsync.WaitGroup
	saves  saveKeeper
	ports  ports
	inbox  chan func(*state)
	view   atomic.Pointer[View]
	link   *link
	nudge  chan struct{}
	start  stdsync.Once // keepConnected runs once

	queue   transferQueue
	bulk    bulk        // the connection for files, between two transfers
	limit   *sync.Limit // of its transfers
	release releaseSlot
	usage   usageKeeper
}

// setup is what the config says about the instance; it is never changed in place.
type setup struct {
	cfg  config.Instance
	plan billing.Plan
	prov provider.Provider // nil: plain SSH
}

func (s *Session) cfg() config.Instance    { return s.setup.Load().cfg }
func (s *Session) plan() billing.Plan      { return s.setup.Load().plan }
func (s *Session) prov() provider.Provider { return s.setup.Load().prov }

// apply takes an edit that leaves the connection as it is.
func (s *Session) apply(in config.Instance) {
	plan, _ := in.Plan() // checked when the config was read
	s.setup.Store(&setup{cfg: in, plan: plan, prov: s.f.provider(in)})
}

// sameMachine says whether a session can live through an edit.
func sameMachine(a, b config.Instance) bool {
	return a.Name == b.Name && a.SSH == b.SSH && a.Host == b.Host
}

// change applies an edit to a session that goes on.
func (s *Session) change(in config.Instance) {
	was := s.cfg()
	s.apply(in)
	s.refold()
	if was.Provider == in.Provider && was.ID == in.ID {
		return
	}
	s.send(func(st *state) { st.provider, st.asked = provider.Status{}, false })
	if s.f.opt.Live && s.prov() != nil {
		s.owned.Go(func() { _, _ = s.askProvider(s.ctx) }) // no answer is no news
	}
}

// state is what loop owns.
type state struct {
	State    State
	Reason   phrase.Text
	Since    time.Time
	RetryAt  time.Time
	rtt      time.Duration
	address  string
	facts    *remote.Facts
	sample   *gpu.Sample
	history  history
	day      history // 24 hours, in longer steps
	guard    guardState
	jobs     []tmux.Job
	jobsErr  string
	ended    map[string]bool // jobs whose end the ledger has
	timeline ledger.Timeline
	saved    Saved
	saving   *SavingView          // never changed
	watched  map[string]time.Time // newest file under each watched path
	alarms   alarm.Watch
	alarmLog alarmLog
	ports    []Port
	release  *release.View
	receipts map[string]Receipt // by job
	provider provider.Status
	asked    bool // provider holds an answer

	unfinishedAt  time.Time // since when a release of a rentop before is shown
	dirty, urgent bool      // changed since published; and must be seen at once
	published     time.Time
}

func newSession(f *Fleet, in config.Instance, uid string) *Session {
	s := &Session{
		f: f, uid: uid, memory: remote.NewAuthMemory(),
		inbox: make(chan func(*state), 64), link: newLink(), nudge: make(chan struct{}, 1), limit: sync.NewLimit(f.limit),
	}
	s.apply(in)
	s.ctx, s.cancel = context.WithCancel(f.ctx)
	s.queue.init(s)
	s.view.Store(&View{Name: in.Name, Provider: in.Provider, Address: address(in), State: Idle, Reason: phrase.Say("state.idle")})
	return s
}

// address is what the config says, until ssh_config was asked.
func address(in config.Instance) string {
	line := in.SSH
	if line == "" {
		line = in.Host
	}
	t, err := remote.ParseTarget(line)
	if err != nil {
		return remote.Clean(line)
	}
	addr := remote.DirectEndpoint(t.User, t.Host, cmp.Or(t.Port, 22)).Address()
	return strings.TrimPrefix(addr, "@") // the login is ssh_config's to say
}

// Name of the instance.
func (s *Session) Name() string { return s.cfg().Name }

// View is the newest picture of this session. It never blocks.
func (s *Session) View() View { return *s.view.Load() }

// loop owns the state until the session ends.
func (s *Session) loop() {
	defer s.bulk.close()
	defer s.owned.Wait()
	defer s.cancel()
	select {
	case <-s.f.begun:
	case <-s.ctx.Done():
		return
	}
	st := &state{day: *newHistory(dayStep, daySteps), State: Idle, Reason: phrase.Say("state.idle"), Since: s.f.opt.Now(), address: address(s.cfg()), urgent: true}
	s.readLedger(st)
	s.resumeRelease()
	if s.f.opt.Live {
		s.Nudge()
		s.owned.Go(s.watchProvider)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if st.urgent || st.dirty && s.f.opt.Now().Sub(st.published).Abs() > quiet {
			s.publish(st)
		}
		select {
		case change := <-s.inbox:
			change(st)
		case <-tick.C:
			st.dirty = st.dirty || s.f.opt.Live // the meter runs
		case <-s.ctx.Done():
			return
		}
	}
}

// quiet is how often what changes all the time (samples, the meter) is shown.
const quiet = 900 * time.Millisecond

// send has change made by loop and shown at once; it is dropped where the
// session has ended.
func (s *Session) send(change func(*state)) {
	s.sendQuietly(func(st *state) { change(st); st.urgent = true })
}

// sendQuietly is send for what may wait for the next second to be shown.
func (s *Session) sendQuietly(change func(*state)) {
	select {
	case s.inbox <- func(st *state) { change(st); st.dirty = true }:
	case <-s.ctx.Done():
	}
}

// sendWait is send that returns when the change was made. It is false where the
// session ended first: what change writes to must not be read then.
func (s *Session) sendWait(change func(*state)) bool {
	done := make(chan struct{})
	s.send(func(st *state) { change(st); close(done) })
	select {
	case <-done:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// set changes what the session is doing and why.
func (s *Session) set(to State, reason phrase.Text) {
	s.send(func(st *state) { st.become(to, reason, s.f.opt.Now()) })
}

func (st *state) become(to State, reason phrase.Text, now time.Time) {
	if st.State != to {
		st.Since = now
	}
	st.State, st.Reason = to, reason
}

// Nudge says that the person is there: connect now, do not wait.
func (s *Session) Nudge() {
	s.start.Do(func() { s.owned.Go(s.keepConnected) })
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Told returns once View holds what the ledger says.
func (s *Session) Told() { s.sendWait(func(*state) {}) }

// Ready connects where need be and returns when the instance can be used. On
// the screen it waits through reconnects; a command gets the first refusal.
func (s *Session) Ready(ctx context.Context) error {
	_, _, err := s.connected(ctx)
	return err
}

func (s *Session) connected(ctx context.Context) (*remote.Conn, *remote.Facts, error) {
	if conn, facts := s.link.now(); conn != nil {
		return conn, facts, nil
	}
	return s.await(ctx, true, false)
}

// dialed is connected for those who need not know what is there: it saves a
// command the time of looking.
func (s *Session) dialed(ctx context.Context) (*remote.Conn, *remote.Facts, error) {
	return s.await(ctx, s.link.early() == nil, true)
}

// await waits for a connection, and asks for one first where nudge is set.
func (s *Session) await(ctx context.Context, nudge, early bool) (*remote.Conn, *remote.Facts, error) {
	ctx, stop := withEnd(ctx, s.ctx)
	defer stop()
	failed := s.link.attempts() // before: an attempt may fail at once
	if nudge {
		s.Nudge()
	}
	conn, facts, err := s.link.wait(ctx, failed, s.f.opt.Live, early)
	if err != nil {
		return nil, nil, unreachable{fmt.Errorf("%s: %w", s.cfg().Name, err)}
	}
	return conn, facts, nil
}

// withEnd is ctx that also ends with other.
func withEnd(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() { stop(); cancel() }
}

// Run implements remote.Runner over whatever connection there is; it waits for
// one, and it does not repeat a script that a cut may have run.
func (s *Session) Run(ctx context.Context, c remote.Cmd) error {
	conn, _, err := s.connected(ctx)
	if err != nil {
		return err
	}
	return conn.Run(ctx, c)
}

// Exec runs a command line with the person's own streams. It returns
// *remote.ExitError where the command ended with another code than 0.
func (s *Session) Exec(ctx context.Context, line string, in io.Reader, out, errs io.Writer) error {
	return s.Run(ctx, remote.Cmd{Script: line, Stdin: in, Stdout: out, Stderr: errs})
}

// Forward carries local to remoteAddr on the instance until ctx ends. ready is
// called with the local address once it listens, refused for each connection that
// the instance did not take.
func (s *Session) Forward(ctx context.Context, local, remoteAddr string, ready func(string), refused func(error)) error {
	conn, _, err := s.connected(ctx)
	if err != nil {
		return err
	}
	return conn.Forward(ctx, local, remoteAddr, ready, refused)
}

// Terminal gives the person the instance's own shell: inside tmux where there
// is one, so that it is still there after a cut. It returns the shell's exit code.
func (s *Session) Terminal(ctx context.Context, t remote.TerminalOptions) (int, error) {
	conn, facts, err := s.connected(ctx)
	if err != nil {
		return 0, err
	}
	if facts != nil && facts.Tmux != "" {
		t.Script = tmux.AttachShell(s.statusLine())
		stop := s.keepStatusLine(ctx, conn)
		defer stop()
	}
	return conn.Terminal(ctx, t)
}

// KeepsShell says whether what runs in Terminal's shell outlives the connection.
func (s *Session) KeepsShell(ctx context.Context) bool {
	_, facts, err := s.connected(ctx)
	return err == nil && facts != nil && facts.Tmux != ""
}

// errNotHere is a job that the instance does not know.
var errNotHere = errors.New("no such job")
