// The machine: one goroutine that goes from the checks to the review, hears the
// person's decisions and publishes a picture after every change.

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/phrase"
)

// ErrStuck is wrapped by Run's error where the provider refused or does not
// confirm: the instance must be taken as still billed.
var ErrStuck = errors.New("still billed")

// ErrHandedOver is wrapped by Run's error where rentop cannot stop or destroy
// the instance (plain SSH): everything was checked, the rest is the person's.
var ErrHandedOver = errors.New("release it in the provider's console")

// ErrPinned is wrapped where the instance's provider or id in the config is not
// the one that the unfinished release began with.
var ErrPinned = errors.New("the release began with another machine")

// Machine is one run of the checklist.
type Machine struct {
	d         Deps
	run       string
	goal      Goal
	resumed   bool
	requested *teardownData // a teardown that an earlier rentop requested
	accepted  bool          // and that the provider had accepted

	decisions chan Decision
	view      atomic.Pointer[View]
	v         View // Run's goroutine only

	mu        sync.Mutex // guards the fields below
	stopRound context.CancelFunc
	cancelled bool

	// Run's goroutine only.
	rounds    int
	runner    remote.Runner // nil: the instance did not answer at the beginning of the round,
	offline   phrase.Text   // for this reason
	round     map[CheckID]finding
	moving    map[string]bool // files seen to change while this run looked
	pulled    map[string]bool // unsaved files that this run brought to Deps.PullDir, by their path below it
	trees     []gitTree       // of the last round
	bundles   []bundle        // that this run brought
	whole     []bundle        // of them: read again in this round, and as they came
	snapshots []takenSnapshot
	declined  bool
	snapNote  phrase.Text
	verified  map[string]fileStat // artifacts' files as they were hashed in this round, proven somewhere
	proofs    map[string]proof    // the same by "path → place here"
	scanned   *scan               // the last look at the file systems; nil where it failed
	proven    map[string]bool     // paths there that were proven to exist elsewhere in this round
	env       finding             // the environment as it was captured at envAt
	envAt     time.Time
	home      string // of the login there, as the last scan said
	stages    bool   // a portable snapshot goes on after a cut
}

// New begins a release. Nothing happens before Run. One that only checks leaves no
// trace in the journal: there is nothing to resume.
func New(d Deps, goal Goal) (*Machine, error) {
	d = d.filled()
	if goal == CheckOnly {
		d.Journal = &MemoryJournal{}
	}
	if err := d.check(goal); err != nil {
		return nil, err
	}
	return newMachine(d, goal, newRunID()), nil
}

func newMachine(d Deps, goal Goal, run string) *Machine {
	m := &Machine{d: d, run: run, goal: goal, decisions: make(chan Decision, 16), moving: map[string]bool{}, pulled: map[string]bool{}}
	m.v = View{ID: run, Instance: d.Instance, Goal: goal, Phase: Checking, StartedAt: d.Clock.Now(), Cost: "?"}
	if d.Provider != nil {
		can := d.Provider.Can()
		m.v.CanStop, m.v.CanDestroy, m.v.StopNote = can.Stop, can.Destroy, can.StopNote()
		if can.Snapshot {
			m.v.Snapshots = append(m.v.Snapshots, ProviderSnapshot)
		}
	}
	if d.SnapshotDir != "" && d.Runner != nil {
		m.v.Snapshots = append(m.v.Snapshots, PortableSnapshot)
	}
	m.resetChecks()
	m.store()
	return m
}

// Resume finds the run that an earlier rentop left unfinished; nil where there
// is none. All checks of it are pending again. Where a teardown had been
// requested the provider is asked first, and nothing is requested twice.
func Resume(ctx context.Context, d Deps) (*Machine, error) {
	d = d.filled()
	if d.Journal == nil {
		return nil, nil
	}
	entries, err := d.Journal.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the release journal of %s: %w", d.Instance, err)
	}
	var m *Machine
	var start startData
	for _, e := range entries {
		switch {
		case e.Step == stepStart:
			start = startData{}
			if err := json.Unmarshal(e.Data, &start); err != nil {
				return nil, fmt.Errorf("read the release journal of %s: %w", d.Instance, err)
			}
			if start.UID != d.UID {
				m = nil
				continue
			}
			m = newMachine(d, start.Goal, e.Run)
			m.v.StartedAt = e.At
		case m == nil || e.Run != m.run:
		case ends(e.Step):
			m = nil
		default:
			m.replay(e)
		}
	}
	if m == nil {
		return nil, nil
	}
	if start.ProviderKind != d.kind() || start.ProviderID != d.ProviderID {
		return nil, fmt.Errorf("resume the release of %s: it began with %s %q, the config now says %s %q: %w; begin a new one if that is meant",
			d.Instance, orPlain(start.ProviderKind), start.ProviderID, orPlain(d.kind()), d.ProviderID, ErrPinned)
	}
	if err := d.check(m.goal); err != nil {
		return nil, err
	}
	m.resumed, m.v.Resumed = true, true
	if m.requested != nil {
		m.v.Phase = Proving
	}
	m.store()
	return m, nil
}

func orPlain(kind string) string {
	if kind == "" {
		return "plain SSH"
	}
	return kind
}

// replay keeps of an old entry only what must outlive a crash: that a teardown
// was requested, and which snapshots were taken or begun. Nothing proven.
func (m *Machine) replay(e Entry) {
	switch e.Step {
	case stepTeardown:
		var t teardownData
		_ = json.Unmarshal(e.Data, &t) // a request that cannot be read is still a request
		m.requested, m.accepted = &t, false
	case stepAnswer:
		var t teardownData
		if json.Unmarshal(e.Data, &t) == nil && t.Error == "" {
			m.accepted = true
		}
	case stepOver:
		m.requested, m.accepted = nil, false
	case stepSnap, stepSnapped:
		m.replaySnapshot(e)
	}
}

// View is the state now. It may be called from any goroutine.
func (m *Machine) View() View { return *m.view.Load() }

// Decide hands the person's word to Run. It does not block; a word that nobody
// hears for long is dropped.
func (m *Machine) Decide(d Decision) {
	if d.Kind == DecideCancel {
		m.mu.Lock()
		m.cancelled = true
		if m.stopRound != nil {
			m.stopRound()
		}
		m.mu.Unlock()
	}
	d.Paths = slices.Clone(d.Paths)
	select {
	case m.decisions <- d:
	default:
	}
}

// Inspect runs the checklist once and tears nothing down. The picture's Fails say
// what would be lost; an error means that not even that is known.
func Inspect(ctx context.Context, d Deps) (View, error) {
	d = d.filled()
	if err := d.check(CheckOnly); err != nil {
		return View{}, err
	}
	d.Journal = &MemoryJournal{}
	m := newMachine(d, CheckOnly, newRunID())
	if err := m.checkAll(ctx); err != nil {
		return m.View(), err
	}
	m.phase(Waiting)
	return m.View(), nil
}

// Run does the release until its review, its cancellation, or an error: ErrStuck
// and ErrHandedOver as documented there, ctx's where it ended first. After a
// ctx that ended, Resume takes up the run. With CheckOnly it waits at the list until
// it is cancelled: files can be pulled and the checks made again, no more.
func (m *Machine) Run(ctx context.Context) error {
	if m.resumed {
		m.publish() // where it stands, before the provider is asked for long
		if err := m.log(ctx, stepResume, nil); err != nil {
			return err
		}
		if m.requested != nil {
			done, err := m.resumeTeardown(ctx)
			if done || err != nil {
				return err
			}
		}
	} else {
		s := startData{Goal: m.goal, Instance: m.d.Instance, UID: m.d.UID, ProviderKind: m.d.kind(), ProviderID: m.d.ProviderID}
		if err := m.log(ctx, stepStart, s); err != nil {
			return err
		}
	}
	for {
		if m.isCancelled() {
			return m.cancel(ctx)
		}
		if done, err := m.alreadyThere(ctx); done || err != nil {
			return err
		}
		if err := m.checkAll(ctx); err != nil {
			if m.isCancelled() && ctx.Err() == nil {
				return m.cancel(ctx)
			}
			return err
		}
		d, err := m.await(ctx)
		if err != nil {
			return err
		}
		if err := m.log(ctx, stepDecision, d); err != nil {
			return err
		}
		switch d.Kind {
		case DecideCancel:
			return m.cancel(ctx)
		case DecideSnapshot:
			err = m.snapshot(ctx, d)
		case DecidePull:
			err = m.pull(ctx)
		case DecideName:
			var done bool
			if done, err = m.approved(ctx); done {
				return err
			}
		}
		if err != nil {
			if m.isCancelled() && ctx.Err() == nil {
				return m.cancel(ctx)
			}
			return err
		}
	}
}

// await waits for a decision that means something now.
func (m *Machine) await(ctx context.Context) (Decision, error) {
	m.phase(Waiting)
	for {
		var d Decision
		select {
		case d = <-m.decisions:
		case <-ctx.Done():
			return d, ctx.Err()
		}
		switch d.Kind {
		case DecideName:
			switch {
			case m.goal == CheckOnly:
				m.v.Why = phrase.Say("why.checkonly")
			case d.Name != m.d.Instance:
				m.v.Why = phrase.Say("why.name", strconv.Quote(remote.Short(d.Name, 60)), strconv.Quote(m.d.Instance))
			case d.Shown != m.v.Shown:
				m.v.Why = phrase.Say("why.list")
			default:
				m.v.Why = nil
				return d, nil
			}
		case DecideSnapshot:
			if d.Snapshot == NoSnapshot || slices.Contains(m.v.Snapshots, d.Snapshot) {
				m.v.Why = nil
				return d, nil
			}
			m.v.Why = ofKind(d.Snapshot, "snapshot.cannot.provider", "snapshot.cannot.portable")
		case DecidePull:
			if m.d.OpenTransport != nil && m.runner != nil {
				m.v.Why = nil
				return d, nil
			}
			m.v.Why = phrase.Say("why.nopull")
		case DecideAgain, DecideCancel:
			m.v.Why = nil
			return d, nil
		}
		m.publish()
	}
}

func (m *Machine) isCancelled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cancelled
}

// cancel ends the run. What was pulled or snapshotted stays.
func (m *Machine) cancel(ctx context.Context) error {
	if err := m.log(ctx, stepCancel, nil); err != nil {
		return err
	}
	m.v.Why = nil
	m.phase(Cancelled)
	return nil
}

// cancellable runs f under a context that a cancel decision ends.
func (m *Machine) cancellable(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.mu.Lock()
	m.stopRound = stop
	if m.cancelled {
		stop()
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.stopRound = nil
		m.mu.Unlock()
	}()
	return f(ctx)
}

// log appends to the journal. Its error ends Run: without a journal there is no
// next step.
func (m *Machine) log(ctx context.Context, step string, data any) error {
	e := Entry{Run: m.run, Step: step, At: m.d.Clock.Now().UTC()}
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil {
			return err
		}
		e.Data = b
	}
	if err := m.d.Journal.Append(ctx, e); err != nil {
		return fmt.Errorf("release %s: journal %q: %w; nothing further was done", m.d.Instance, step, err)
	}
	return nil
}

// startOver makes every check pending again and says why.
func (m *Machine) startOver(ctx context.Context, why phrase.Text) error {
	if err := m.log(ctx, stepOver, whyData{why.String()}); err != nil {
		return err
	}
	m.requested, m.accepted = nil, false
	m.v.Why = why
	m.v.Proof = nil
	return nil
}

func (m *Machine) phase(p Phase) {
	m.v.Phase = p
	m.publish()
}

func (m *Machine) publish() {
	m.store()
	m.d.Changed(m.View())
}

// store makes the immutable picture, with a name for exactly what it shows.
func (m *Machine) store() {
	v := m.v
	v.Checks = slices.Clone(v.Checks)
	v.Lost, v.LostSize = nil, 0
	named := map[string]bool{}
	h := sha256.New()
	fmt.Fprintln(h, v.ID, v.Goal, m.rounds)
	for _, c := range v.Checks {
		fmt.Fprintf(h, "%s %s %s\n", c.ID, c.State, m.round[c.ID].sum)
		if c.State != Failed && c.State != Unknown && c.State != Waived {
			continue
		}
		for _, e := range c.Evidence {
			if !e.Lost || named[e.What] && e.What != theRest {
				continue
			}
			named[e.What] = e.Size >= 0 // an artifact's file is an unsaved file too
			v.Lost = append(v.Lost, e)
			v.LostSize += max(0, e.Size)
		}
	}
	v.PullTraffic = ""
	if v.LostSize > 0 {
		v.PullTraffic = "?"
		if m.d.Traffic != nil {
			v.PullTraffic = m.d.Traffic(v.LostSize)
		}
	}
	slices.SortStableFunc(v.Lost, func(a, b Evidence) int { return int(max(-1, min(1, b.Size-a.Size))) })
	v.Shown = hex.EncodeToString(h.Sum(nil)[:8])
	v.GoesOn = slices.Clone(v.GoesOn)
	v.Snapshots = slices.Clone(v.Snapshots)
	m.v.Shown = v.Shown
	m.view.Store(&v)
}

// reached says whether a state is what the goal asked for.
func (m *Machine) reached(s provider.State) bool {
	return s == provider.Gone || m.goal == Stop && s == provider.Stopped
}
