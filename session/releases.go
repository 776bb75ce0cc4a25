package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	stdsync "sync"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/billing"
	"rentop/session/ledger"
	"rentop/session/lock"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// releaseSlot holds the one release that a session may have under way, and the
// lock that keeps every other rentop from taking up the same one: two that read
// one journal would both check, and both tear down.
type releaseSlot struct {
	mu      stdsync.Mutex // protects what follows
	machine *release.Machine
	held    *lock.Lock
}

func (r *releaseSlot) take(m *release.Machine, held *lock.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine, r.held = m, held
}

func (r *releaseSlot) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.Unlock()
	r.machine, r.held = nil, nil
}

func (r *releaseSlot) now() *release.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine
}

// errUnderWay refuses a second release, and an edit or a removal meanwhile.
var errUnderWay = errors.New("a release or a transfer is under way; finish or cancel it first")

// ErrReleasing is wrapped where another rentop, or another screen of this one,
// has a release of the instance under way.
var ErrReleasing = errors.New("a release of it is under way in another rentop; finish or cancel it there")

// lockRelease keeps every other release of this instance out, in any process.
func (s *Session) lockRelease() (*lock.Lock, error) {
	held, err := lock.Try(filepath.Join(s.f.opt.Dirs.State, "locks", "release-"+s.uid))
	switch {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("%s: %w", s.cfg().Name, ErrReleasing)
	case err != nil:
		return nil, fmt.Errorf("%s: make sure that no other rentop releases it: %w", s.cfg().Name, err)
	}
	return held, nil
}

// StartRelease begins a release; View.Release shows it, Decide moves it on.
func (s *Session) StartRelease(goal release.Goal) error {
	m, err := s.newRelease(goal)
	if err != nil {
		return err
	}
	s.owned.Go(func() {
		if err := s.runRelease(s.ctx, m); err != nil && s.ctx.Err() == nil {
			s.f.notice(s.cfg().Name, Urgent, phrase.Say("notice.release", err))
		}
	})
	return nil
}

// Release runs a release until it ends, for a command. shown is called with each
// picture and may move it on with Decide.
func (s *Session) Release(ctx context.Context, goal release.Goal, shown func(release.View)) (release.View, error) {
	m, err := s.newRelease(goal)
	if err != nil {
		return release.View{}, err
	}
	watch, done := context.WithCancel(ctx)
	defer done()
	var wg stdsync.WaitGroup
	wg.Go(func() {
		last := ""
		every(watch, 100*time.Millisecond, func() {
			v := m.View()
			if raw, err := json.Marshal(v); err == nil && string(raw) != last {
				last = string(raw)
				shown(v)
			}
		})
	})
	err = s.runRelease(ctx, m)
	done()
	wg.Wait()
	v := m.View()
	shown(v)
	return v, err
}

// Decide tells the release what the person wants.
func (s *Session) Decide(d release.Decision) error {
	m := s.release.now()
	if m == nil {
		return fmt.Errorf("%s: no release is under way", s.cfg().Name)
	}
	m.Decide(d)
	return nil
}

// CheckRelease says what would be lost, and changes nothing.
func (s *Session) CheckRelease(ctx context.Context) (release.View, error) {
	return release.Inspect(ctx, s.releaseDeps(ctx))
}

// newRelease makes the machine: an unfinished one of an earlier rentop first.
func (s *Session) newRelease(goal release.Goal) (*release.Machine, error) {
	if s.release.now() != nil {
		return nil, fmt.Errorf("%s: %w", s.cfg().Name, errUnderWay)
	}
	held, err := s.lockRelease() // before the journal is read: what it says then stays so
	if err != nil {
		return nil, err
	}
	m, err := s.nextRelease(goal)
	if err != nil {
		held.Unlock()
		return nil, err
	}
	s.release.take(m, held)
	return m, nil
}

func (s *Session) nextRelease(goal release.Goal) (*release.Machine, error) {
	deps := s.releaseDeps(s.ctx)
	m, err := release.Resume(s.ctx, deps)
	if err != nil && !errors.Is(err, release.ErrPinned) { // pinned to another machine: this one is new
		return nil, err
	}
	if m == nil {
		return release.New(deps, goal)
	}
	if g := m.View().Goal; g != goal {
		return nil, fmt.Errorf("%s: an earlier release (%s) is not finished; finish or cancel it first: rentop release %s --%s", s.cfg().Name, g, s.cfg().Name, g)
	}
	return m, nil
}

func (s *Session) runRelease(ctx context.Context, m *release.Machine) error {
	defer s.release.drop()
	defer s.f.work()()
	err := m.Run(ctx)
	s.ended(m.View())
	if conn, _ := s.link.now(); conn != nil && s.f.opt.Live {
		s.owned.Go(func() { s.refreshSaved(s.ctx) })
	}
	return err
}

// ended tells the meter how a release ended. It must not run on because one more
// question to the provider fails: then the proof is the last word.
func (s *Session) ended(v release.View) {
	if v.Phase != release.Review || s.prov() == nil {
		return
	}
	got, err := s.askProvider(s.ctx)
	if err != nil {
		got = provider.Status{State: v.Ended, Detail: v.Proof.String()}
	}
	s.observeProvider(got)
	s.recordLeft(s.ctx, got.State)
}

// recordLeft writes what a gone instance has left behind and goes on costing. What is
// left of a stopped one its plan says.
func (s *Session) recordLeft(ctx context.Context, state provider.State) {
	if state != provider.Gone {
		return
	}
	if err := s.f.recordLeft(ctx, s.uid, s.prov(), s.providerID()); err != nil && ctx.Err() == nil {
		s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.ledger.write", err))
	}
}

// resumeRelease shows what an earlier rentop left unfinished. The screen runs it
// again from its first check; a command leaves it to the person.
func (s *Session) resumeRelease() {
	if !s.f.opt.Live {
		return
	}
	s.owned.Go(func() {
		held, err := s.lockRelease()
		if errors.Is(err, ErrReleasing) {
			s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.elsewhere", err))
			return
		}
		var m *release.Machine
		if err == nil {
			m, err = release.Resume(s.ctx, s.releaseDeps(s.ctx))
		}
		if err != nil && s.ctx.Err() == nil {
			s.f.notice(s.cfg().Name, Urgent, phrase.Say("notice.release", err))
		}
		if m == nil || err != nil {
			if held != nil {
				held.Unlock()
			}
			return
		}
		s.release.take(m, held)
		if err := s.runRelease(s.ctx, m); err != nil && s.ctx.Err() == nil {
			s.f.notice(s.cfg().Name, Urgent, phrase.Say("notice.release", err))
		}
	})
}

// reachable is the session for a checklist: an instance that is not there for a
// while cannot be checked, and the checklist says so instead of waiting for ever.
type reachable struct{ s *Session }

// reachWithin is how long a check waits for a connection.
const reachWithin = 30 * time.Second

func (r reachable) Run(ctx context.Context, c remote.Cmd) error {
	wait, cancel := context.WithTimeout(ctx, reachWithin)
	conn, _, err := r.s.connected(wait)
	cancel()
	if err != nil {
		return err
	}
	return conn.Run(ctx, c)
}

// busy is true while a release or a transfer is under way.
func (s *Session) busy() bool {
	return s.queue.busy() || s.release.now() != nil
}

// leaveAlone refuses to pull the ground from under a release or a transfer.
func (s *Session) leaveAlone() error {
	if s.busy() {
		return fmt.Errorf("%s: %w", s.cfg().Name, errUnderWay)
	}
	held, err := s.lockRelease()
	if err != nil {
		return err
	}
	held.Unlock()
	return nil
}

func (s *Session) releaseDeps(ctx context.Context) release.Deps {
	dir := s.f.opt.Dirs.State
	deps := release.Deps{
		Instance: s.cfg().Name, UID: s.uid, Runner: reachable{s},
		Jobs:          s.jobsForRelease,
		Since:         s.since(ctx),
		Roots:         s.cfg().LookIn,
		Pushed:        s.known,
		Place:         s.place,
		Newest:        newestCheckpoints,
		OpenTransport: s.openTransport,
		PullDir:       filepath.Join(dir, "saved", s.cfg().Name),
		// Of this rental: the next one of the same name has a folder of its own.
		EnvDir:      filepath.Join(dir, "environments", s.cfg().Name+"-"+s.uid[:min(6, len(s.uid))]),
		SnapshotDir: filepath.Join(dir, "snapshots", s.cfg().Name),
		Provider:    s.prov(), ProviderID: s.providerID(),
		Traffic: s.pullTraffic,
		GoesOn:  s.goesOn, Cost: s.finalCost, Review: s.reviewLines,
		Journal: releaseJournal{s},
		Changed: func(v release.View) { s.send(func(st *state) { st.release = &v }) },
		Stay:    s.f.opt.Live,
	}
	// A destination is the same one wherever rentop is started.
	if home, err := os.UserHomeDir(); err == nil {
		deps.Base = home
	}
	deps.Artifacts = artifactsOf(s.cfg())
	return deps
}

// since is the instance's own time from which files count as the person's: the
// earlier of first contact and the box's start at first contact.
func (s *Session) since(ctx context.Context) time.Time {
	seen, err := s.f.ledger.Events(ctx, ledger.Filter{Instance: s.uid, Kinds: []ledger.Kind{ledger.FirstSeen}})
	if err != nil || len(seen) == 0 {
		return time.Time{}
	}
	var d ledger.FirstSeenData
	if json.Unmarshal(seen[0].Data, &d) != nil {
		return time.Time{}
	}
	if !d.BoxStartedAt.IsZero() && d.BoxStartedAt.Before(d.InstanceClock) {
		return d.BoxStartedAt
	}
	return d.InstanceClock
}

// known lists what pushes left on the instance; release hashes it again.
func (s *Session) known(context.Context) ([]release.KnownFile, error) {
	rec, err := s.pushed()
	if err != nil {
		return nil, err
	}
	var out []release.KnownFile
	all, err := rec.All()
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		out = append(out, release.KnownFile{Remote: k.Remote, Local: k.Local, Size: k.Size, SHA256: k.SHA256, ModTime: k.ModTime})
	}
	return out, nil
}

// goesOn is what costs money after the teardown: the provider's list, and what
// the stated rates say about a stopped instance.
func (s *Session) goesOn(ctx context.Context, goal release.Goal) ([]release.GoesOn, error) {
	var out []release.GoesOn
	after := provider.Gone
	if goal == release.Stop {
		after = provider.Stopped
		hour := billing.BurnAt(s.plan(), billing.Stopped, s.f.opt.Now())
		if hour == nil {
			out = append(out, release.GoesOn{What: phrase.Say("costs.stopped"), PerMonth: "?"})
		} else if hour.Sign() > 0 {
			out = append(out, release.GoesOn{What: phrase.Say("costs.stopped"), PerMonth: perMonth(*hour)})
		}
	}
	if s.prov() == nil {
		return out, nil
	}
	left, err := s.prov().Leftovers(ctx, s.providerID(), after)
	if errors.Is(err, provider.ErrUnsupported) {
		return append(out, release.GoesOn{What: phrase.Say("costs.untold"), PerMonth: "?"}), nil
	}
	if err != nil {
		return out, err
	}
	for _, l := range left {
		cost := "?"
		if l.PerMonth != "" {
			cost = l.PerMonth + " " + l.Currency
		}
		out = append(out, release.GoesOn{What: phrase.Plain(leftover(l)), PerMonth: cost})
	}
	return out, nil
}

// pullTraffic is what bringing so many bytes away costs at most.
func (s *Session) pullTraffic(bytes int64) string {
	if t := s.traffic(sync.Pull, bytes); t != nil {
		return t.String()
	}
	return "?"
}

// leftover says what goes on costing, in the provider's words.
func leftover(l provider.Leftover) string {
	text := l.Kind + " " + l.ID
	if l.Name != "" && l.Name != l.ID {
		text += " " + l.Name
	}
	if l.Note != "" {
		text += " (" + l.Note + ")"
	}
	return remote.Short(text, 200)
}

// monthHours is the usual month of price lists.
const monthHours = 730

func perMonth(hour billing.Amount) string {
	v := new(big.Rat).Mul(hour.Value, big.NewRat(monthHours, 1))
	return billing.Amount{Value: v, Currency: hour.Currency}.String()
}

// finalCost is the review's line.
func (s *Session) finalCost(ctx context.Context) string {
	events, err := s.f.ledger.Events(ctx, ledger.Filter{Instance: s.uid, Kinds: ledger.MeterKinds})
	if err != nil {
		return "?"
	}
	now := s.f.opt.Now()
	bill, err := ledger.Fold(events, now).Bill(now)
	switch {
	case err != nil || bill.Total == nil && bill.Known == nil:
		return "?"
	case bill.Total == nil:
		return fmt.Sprintf("at least %s; not known: %v", bill.Known, bill.Missing)
	}
	return bill.Total.String()
}

// releaseJournal keeps a release's steps in the ledger.
type releaseJournal struct{ s *Session }

func (j releaseJournal) Append(ctx context.Context, e release.Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	// A step that happened must be written even where the person leaves just now.
	ctx = context.WithoutCancel(ctx)
	_, err = j.s.f.ledger.Append(ctx, ledger.Event{At: e.At, Instance: j.s.uid, Kind: ledger.Release, Source: "rentop", Data: data})
	return err
}

func (j releaseJournal) Load(ctx context.Context) ([]release.Entry, error) {
	events, err := j.s.f.ledger.Events(ctx, ledger.Filter{Instance: j.s.uid, Kinds: []ledger.Kind{ledger.Release}})
	if err != nil {
		return nil, err
	}
	out := make([]release.Entry, 0, len(events))
	for _, ev := range events {
		var e release.Entry
		if err := json.Unmarshal(ev.Data, &e); err != nil {
			return nil, fmt.Errorf("read the release journal of %s: %w", j.s.cfg().Name, err)
		}
		out = append(out, e)
	}
	return out, nil
}
