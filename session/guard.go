package session

// The guard on an instance, as session arms it, reads it back and shows it.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/gpu/guard"
	"rentop/remote/gpu/nvml"
	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/phrase"
)

// GuardSpec is what a person wants a guard to watch for and to do. Zero values are
// left out.
type GuardSpec struct {
	Idle   time.Duration
	After  string    // a job
	At     time.Time // by our clock
	Budget string    // decimal, in the currency of the instance's price
	Lease  bool      // at the end of the prepaid time
	// Reclaim: when its provider announces there that it takes the machine back. Then is
	// not done for it: only Save is.
	Reclaim   bool
	ReclaimAt string // where that is asked, instead of the provider's usual address
	Then      string // ThenStop, ThenNothing or a command of the person's there
	Save      string // a command there that must succeed before
}

// What a GuardSpec may do besides a command.
const (
	ThenStop    = "stop"    // the provider's own way from inside
	ThenNothing = "nothing" // it is told, and the history is kept
)

const saveFor = 30 * time.Minute

// Guard is where the guard on an instance stands. Times are by our clock.
type Guard struct {
	ID      string
	Phase   string // guard.Phase; "" where there never was one
	Armed   bool   // proven: its process lives and wrote so a moment ago
	Rules   []GuardRule
	Then    string // ThenStop, ThenNothing or the command
	Save    string
	ArmedAt time.Time
	SeenAt  time.Time   // when it was read back
	Source  string      // of its samples
	Text    phrase.Text // all of it in a sentence
	Problem phrase.Text // what is wrong; none where all is well
	Journal []guard.Entry
	Reclaim *Reclaim // the machine will be taken back

	tripped string // when, for Text
	stopped bool   // the instance
}

// GuardRule is one rule.
type GuardRule struct {
	Kind  string
	Text  phrase.Text    // "idle for 20 min"
	Due   time.Time      // zero where it does not count down
	Left  *time.Duration // as things are
	Why   phrase.Text    // why it does not count down
	Doubt phrase.Text
	Met   bool
}

// ErrAtOnce marks what is refused because a guard would act at once.
var ErrAtOnce = errors.New("so it would act at once")

// PlanGuard makes rules of what a person wants, and says what would happen. Nothing
// is armed.
func (s *Session) PlanGuard(ctx context.Context, want GuardSpec) (Guard, error) {
	spec, err := s.guardSpec(ctx, want)
	if err != nil {
		return Guard{}, err
	}
	now := s.f.opt.Now()
	w, err := guard.NewWatch(spec.Rules, 0, now)
	if err != nil {
		return Guard{}, err
	}
	m := &guard.Moment{Wall: now, None: "not asked yet"}
	if _, facts, err := s.connected(ctx); err != nil {
		return Guard{}, err
	} else if want.Idle > 0 && facts != nil && facts.NvidiaSMI != "" {
		if sm, err := s.Sample(ctx); err == nil {
			m.Sample = sm
		} else {
			m.None = remote.Short(err.Error(), 200)
		}
	}
	jobs, err := s.Jobs(ctx)
	if err != nil {
		return Guard{}, err
	}
	for _, j := range jobs {
		if j.State == tmux.Running || j.State == tmux.Starting {
			m.Jobs.Running = append(m.Jobs.Running, j.ID)
		}
	}
	st := &guard.State{Spec: spec, Now: now, Rules: w.Step(m)}
	st.Phase = guard.Watching
	g := guardOf(&guard.Report{Now: now, Alive: true, State: st}, now)
	g.Armed, g.Phase, g.ID = false, "", ""
	return g, nil
}

// Arm arms a guard, in place of one that is there, and returns what is read back: it
// is armed, or there is an error.
func (s *Session) Arm(ctx context.Context, want GuardSpec) (Guard, error) {
	spec, err := s.guardSpec(ctx, want)
	if err != nil {
		return Guard{}, err
	}
	at := s.f.opt.Now()
	var g Guard
	err = s.again(ctx, func() (err error) {
		if err = s.sendSpec(ctx, late(spec, s.f.opt.Now().Sub(at))); err == nil {
			g, err = s.Guard(ctx)
		}
		return err
	})
	switch {
	case err != nil:
		return g, fmt.Errorf("%s: no guard was armed: %w", s.cfg().Name, err)
	case g.ID != spec.ID:
		return g, fmt.Errorf("%s: another rentop armed other rules meanwhile: %s", s.cfg().Name, g.Text)
	case !g.Armed:
		return g, fmt.Errorf("%s: no guard was armed: %s", s.cfg().Name, orElse(g.Problem, g.Text))
	}
	if what := differs(spec, g, at); what != "" {
		return g, fmt.Errorf("%s: the guard there is not what was asked for: %s; end it with --off", s.cfg().Name, what)
	}
	return g, nil
}

// differs compares what was read back with what was asked for at a time.
func differs(spec guard.Spec, g Guard, at time.Time) string {
	const slack = 2 * time.Minute // the way there, and a helper that is sent first
	if len(g.Rules) != len(spec.Rules) {
		return fmt.Sprintf("it has %d rules of %d", len(g.Rules), len(spec.Rules))
	}
	for i, r := range spec.Rules {
		is := g.Rules[i]
		if is.Kind != string(r.Kind) {
			return fmt.Sprintf("rule %d is %s", i+1, is.Kind)
		}
		if r.Kind != guard.At && r.Kind != guard.Lease || is.Met {
			continue
		}
		if want := at.Add(time.Duration(r.Seconds) * time.Second); is.Due.Sub(want).Abs() > slack {
			return fmt.Sprintf("it is due %s, not %s", moment(is.Due), moment(want))
		}
	}
	return ""
}

func orElse(a, b phrase.Text) phrase.Text {
	if len(a) > 0 {
		return a
	}
	return b
}

// late takes from the deadlines what sending took.
func late(spec guard.Spec, by time.Duration) guard.Spec {
	rules := append([]guard.Rule(nil), spec.Rules...)
	for i := range rules {
		if k := rules[i].Kind; k == guard.At || k == guard.Lease {
			rules[i].Seconds = max(rules[i].Seconds-int64(by/time.Second), 0)
		}
	}
	spec.Rules = rules
	return spec
}

// sendSpec sends the helpers where need be, and the spec.
func (s *Session) sendSpec(ctx context.Context, spec guard.Spec) error {
	conn, facts, err := s.connected(ctx)
	if err != nil {
		return err
	}
	spec.Reader = s.gpuReader(ctx, conn, facts)
	h, err := s.openGuard(ctx, conn, facts)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Explain(guard.Arm(h.Link(), spec))
}

func (s *Session) openGuard(ctx context.Context, conn *remote.Conn, facts *remote.Facts) (*agent.Session, error) {
	o := agent.Options{Binaries: s.f.opt.guardHelper, MaxStripes: 1}
	if o.Binaries == nil {
		o.Binaries = agent.Guard()
	}
	return agent.Open(ctx, conn, facts, "guard", o)
}

// gpuReader puts the helper that reads GPUs there, and says where; "" where it cannot
// be had: then the guard reads nvidia-smi.
func (s *Session) gpuReader(ctx context.Context, conn *remote.Conn, facts *remote.Facts) string {
	if s.f.opt.Simulated || facts != nil && facts.NvidiaSMI == "" {
		return ""
	}
	h, err := agent.Open(ctx, conn, facts, "gpu", agent.Options{Binaries: agent.GPU(nvml.Built), MaxStripes: 1})
	if err != nil {
		return ""
	}
	defer h.Close()
	return h.Hello().Program
}

// Guard reads the guard back from the instance.
func (s *Session) Guard(ctx context.Context) (Guard, error) {
	return s.askGuard(ctx, guard.ReadScript())
}

// Disarm ends the guard on the instance, with what it runs.
func (s *Session) Disarm(ctx context.Context) (Guard, error) {
	g, err := s.askGuard(ctx, guard.OffScript())
	if err == nil && g.Armed {
		err = fmt.Errorf("%s: the guard does not end: %s", s.cfg().Name, g.Text)
	}
	return g, err
}

func (s *Session) askGuard(ctx context.Context, script string) (Guard, error) {
	var g Guard
	err := s.again(ctx, func() error {
		out, err := remote.Output(ctx, s, script)
		if err != nil {
			return err
		}
		r, err := guard.ParseReport(out)
		if err != nil {
			return err
		}
		g = guardOf(r, s.f.opt.Now())
		return nil
	})
	if err != nil {
		return g, fmt.Errorf("%s: ask for the guard: %w", s.cfg().Name, err)
	}
	s.send(func(st *state) { st.guard.saw(g) })
	return g, nil
}

// guardSpec checks what a person wants, and makes the rules.
func (s *Session) guardSpec(ctx context.Context, want GuardSpec) (guard.Spec, error) {
	spec := guard.Spec{Version: guard.Version, ID: strings.ToLower(rand.Text()[:16])}
	fail := func(format string, args ...any) (guard.Spec, error) {
		return guard.Spec{}, fmt.Errorf("%s: "+format, append([]any{s.cfg().Name}, args...)...)
	}
	then := strings.TrimSpace(want.Then)
	if then == "" && want.onlyReclaim() { // nothing else would ever do it
		then = ThenNothing
	}
	switch then {
	case ThenNothing:
	case ThenStop, "":
		in, err := provider.StopInside(s.cfg().Provider)
		if err != nil {
			return fail("it cannot stop itself: %w", err)
		}
		spec.Then, spec.Check, spec.Stops = in.Stop, in.Check, true
	default:
		spec.Then = then
	}
	if spec.Save = strings.TrimSpace(want.Save); spec.Save != "" {
		spec.SaveSeconds = int64(saveFor / time.Second)
	}
	if want.Idle > 0 {
		spec.Rules = append(spec.Rules, guard.Rule{Kind: guard.Idle, Seconds: int64(want.Idle / time.Second), Below: limits(s.cfg()).IdleBelow})
	}
	if want.After != "" {
		j, err := s.findJob(ctx, want.After)
		if err != nil {
			return guard.Spec{}, err
		}
		if j.State != tmux.Running && j.State != tmux.Starting {
			return fail("job %s has ended already (%s), %w", j.Name, j.State, ErrAtOnce)
		}
		spec.Rules = append(spec.Rules, guard.Rule{Kind: guard.After, Job: j.ID})
	}
	now := s.f.opt.Now()
	for _, d := range []struct {
		kind guard.Kind
		on   bool
		at   time.Time
	}{{guard.At, !want.At.IsZero(), want.At}, {guard.Lease, want.Lease, s.leaseEnd()}} {
		switch {
		case !d.on:
		case d.at.IsZero():
			return fail("its config does not say when the rental ends: give rate.prepaid, or --at")
		case !d.at.After(now):
			return fail("%s is over, %w", d.at.Local().Format(time.DateTime), ErrAtOnce)
		default:
			spec.Rules = append(spec.Rules, guard.Rule{Kind: d.kind, Seconds: int64((d.at.Sub(now) + time.Second - 1) / time.Second)}) // whole seconds, never sooner
		}
	}
	if want.Budget != "" {
		r, err := s.budgetRule(want.Budget, now)
		if err != nil {
			return fail("%w", err)
		}
		spec.Rules = append(spec.Rules, r)
	}
	if want.Reclaim {
		r, err := s.reclaimRule(want.ReclaimAt)
		if err != nil {
			return fail("it cannot hear that it will be taken back: %w", err)
		}
		spec.Rules = append(spec.Rules, r)
	}
	if err := spec.Validate(); err != nil {
		return fail("%w", err)
	}
	return spec, nil
}

func (s *Session) leaseEnd() time.Time {
	if p := s.plan().Prepaid; p != nil {
		return p.To
	}
	return time.Time{}
}

// budgetRule gives the numbers that the guard counts with: no price list and no
// ledger is on the instance.
func (s *Session) budgetRule(limit string, now time.Time) (guard.Rule, error) {
	v, err := billing.ParseDecimal(limit)
	if err != nil {
		return guard.Rule{}, fmt.Errorf("the budget: %w", err)
	}
	var m Meter
	if !s.sendWait(func(st *state) { m = s.meter(st, now) }) {
		return guard.Rule{}, errors.New("rentop is ending")
	}
	cost := m.Cost
	if cost == nil {
		return guard.Rule{}, errors.New("what it has cost is not known, so nobody can say when a budget is used up: give rate and disk in its config")
	}
	if m.Running == nil || m.Running.Value == nil || m.Running.Value.Sign() <= 0 {
		return guard.Rule{}, errors.New("what an hour costs is not known: give rate.per_hour in its config")
	}
	if cost.Value != nil && cost.Value.Cmp(v) >= 0 {
		return guard.Rule{}, fmt.Errorf("it has cost %s by now, %w", cost, ErrAtOnce)
	}
	return guard.Rule{Kind: guard.Budget, Limit: number(v), Spent: number(cost.Value), PerHour: number(m.Running.Value), Currency: m.Running.Currency}, nil
}

// GuardTime reads a time as a person writes it: "23:30" is the next such, "2h" from
// now. ok is false for what is none.
func GuardTime(s string, now time.Time) (t time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if d, err := time.ParseDuration(strings.TrimPrefix(s, "+")); err == nil && d > 0 {
		return now.Add(d), true
	}
	if t, err := time.ParseInLocation("15:04", s, time.Local); err == nil {
		l := now.Local()
		t = time.Date(l.Year(), l.Month(), l.Day(), t.Hour(), t.Minute(), 0, 0, time.Local)
		if !t.After(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t, true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// number is an amount for the guard, to a billionth.
func number(r *big.Rat) string {
	if r == nil {
		return "0"
	}
	return strings.TrimSuffix(strings.TrimRight(r.FloatString(guard.Places), "0"), ".")
}
