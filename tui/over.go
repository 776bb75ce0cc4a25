package tui

import (
	"context"
	"io"
	"slices"
	"time"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/config"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// Over makes a Fleet of session's: every call finds the instance's session by name.
func Over(f *session.Fleet) Fleet { return over{f} }

type over struct{ f *session.Fleet }

func (o over) View() *session.FleetView                      { return o.f.View() }
func (o over) Changed() <-chan struct{}                      { return o.f.Changed() }
func (o over) Answer(id int, a remote.Answer)                { o.f.Answer(id, a) }
func (o over) Instance(name string) (config.Instance, error) { return o.f.Instance(name) }
func (o over) Add(in config.Instance) error                  { return o.f.Add(in) }
func (o over) Edit(name string, in config.Instance) error    { return o.f.Edit(name, in) }
func (o over) Remove(name string) error                      { return o.f.Remove(name) }

func (o over) Keep(instance, alert string, d time.Duration) {
	if s, err := o.f.Session(instance); err == nil {
		s.Keep(alert, d)
	}
}

func (o over) Nudge(instance string) {
	if s, err := o.f.Session(instance); err == nil {
		s.Nudge()
	}
}

func (o over) CancelTransfer(instance string, id int) {
	if s, err := o.f.Session(instance); err == nil {
		s.CancelTransfer(id)
	}
}

func (o over) PauseTransfer(instance string, id int, on bool) {
	s, err := o.f.Session(instance)
	switch {
	case err != nil:
	case on:
		s.PauseTransfer(id)
	default:
		s.ResumeTransfer(id)
	}
}

func (o over) MoveTransfer(instance string, id int, forward bool) bool {
	s, err := o.f.Session(instance)
	return err == nil && s.MoveTransfer(id, forward)
}

func (o over) LimitTransfers(instance string, bytesPerSecond int64) {
	if s, err := o.f.Session(instance); err == nil {
		s.LimitTransfers(bytesPerSecond)
	}
}

func (o over) Outline(instance string, d sync.Direction, p *sync.Plan) session.Outline {
	s, err := o.f.Session(instance)
	if err != nil {
		return session.Outline{}
	}
	return s.Outline(d, p)
}

// on calls f with an instance's session.
func on[T any](o over, instance string, f func(*session.Session) (T, error)) (T, error) {
	s, err := o.f.Session(instance)
	if err != nil {
		var none T
		return none, err
	}
	return f(s)
}

func (o over) Start(ctx context.Context, instance string) error {
	_, err := on(o, instance, func(s *session.Session) (struct{}, error) { return struct{}{}, s.Start(ctx) })
	return err
}

func (o over) Doctor(ctx context.Context, instance string) ([]session.Finding, error) {
	return on(o, instance, func(s *session.Session) ([]session.Finding, error) { return s.Doctor(ctx) })
}

func (o over) Terminal(ctx context.Context, instance string, t remote.TerminalOptions) (int, error) {
	return on(o, instance, func(s *session.Session) (int, error) { return s.Terminal(ctx, t) })
}

func (o over) JobTerminal(ctx context.Context, instance, job string, t remote.TerminalOptions) (int, error) {
	return on(o, instance, func(s *session.Session) (int, error) { return s.JobTerminal(ctx, job, t) })
}

func (o over) StartJob(ctx context.Context, instance string, spec session.JobSpec) (tmux.Job, error) {
	return on(o, instance, func(s *session.Session) (tmux.Job, error) { return s.StartJob(ctx, spec) })
}

func (o over) KillJob(ctx context.Context, instance, job string) (tmux.Job, error) {
	return on(o, instance, func(s *session.Session) (tmux.Job, error) { return s.KillJob(ctx, job) })
}

func (o over) RestartJob(ctx context.Context, instance, job string) (tmux.Job, error) {
	return on(o, instance, func(s *session.Session) (tmux.Job, error) { return s.RestartJob(ctx, job) })
}

func (o over) Arm(ctx context.Context, instance string, spec session.GuardSpec) (session.Guard, error) {
	return on(o, instance, func(s *session.Session) (session.Guard, error) { return s.Arm(ctx, spec) })
}

func (o over) Disarm(ctx context.Context, instance string) (session.Guard, error) {
	return on(o, instance, func(s *session.Session) (session.Guard, error) { return s.Disarm(ctx) })
}

func (o over) OpenPort(ctx context.Context, instance, port string) (session.Port, error) {
	return on(o, instance, func(s *session.Session) (session.Port, error) { return s.OpenPort(ctx, port) })
}

func (o over) ClosePort(instance, port string) bool {
	s, err := o.f.Session(instance)
	return err == nil && s.ClosePort(port)
}

func (o over) Snapshot(ctx context.Context, instance string) (session.Snapshot, error) {
	spec := session.SnapshotSpec{Kind: release.PortableSnapshot}
	return on(o, instance, func(s *session.Session) (session.Snapshot, error) {
		return s.TakeSnapshot(ctx, spec, func(phrase.Text) {})
	})
}

func (o over) Follow(ctx context.Context, instance, job string, from int64, w io.Writer) error {
	_, err := on(o, instance, func(s *session.Session) (int64, error) { return s.Follow(ctx, job, from, true, w) })
	return err
}

func (o over) PlanTransfer(ctx context.Context, instance string, spec session.TransferSpec) (*sync.Plan, error) {
	return on(o, instance, func(s *session.Session) (*sync.Plan, error) { return s.PlanTransfer(ctx, spec) })
}

func (o over) StartTransfer(instance string, spec session.TransferSpec) (int, error) {
	return on(o, instance, func(s *session.Session) (int, error) { return s.StartTransfer(spec) })
}

func (o over) KeepSaving(instance string, on bool) error {
	s, err := o.f.Session(instance)
	if err != nil {
		return err
	}
	return s.KeepSaving(on)
}

func (o over) StartRelease(instance string, goal release.Goal) error {
	_, err := on(o, instance, func(s *session.Session) (struct{}, error) { return struct{}{}, s.StartRelease(goal) })
	return err
}

func (o over) Decide(instance string, d release.Decision) error {
	_, err := on(o, instance, func(s *session.Session) (struct{}, error) { return struct{}{}, s.Decide(d) })
	return err
}

func (o over) PastRuns(ctx context.Context, instance string) (*session.PastRuns, error) {
	return on(o, instance, func(s *session.Session) (*session.PastRuns, error) { return s.PastRuns(ctx) })
}

func (o over) Costs(ctx context.Context, since time.Time) (Costs, error) {
	r, err := o.f.Spending(ctx, since)
	if err != nil {
		return Costs{}, err
	}
	c := Costs{Since: r.Since, Until: r.Until, Total: r.All, Parts: r.Parts, Month: r.Month}
	for _, row := range slices.Concat(r.Rows, r.Extras) {
		l := CostLine{Instance: row.Instance, Day: row.Day, Amount: row.Amount, AtLeast: row.AtLeast}
		if a := r.About[row.UID]; a != nil {
			l.Provider, l.Tags = a.Provider, a.Tags
		}
		switch {
		case row.Kind == ledger.RowJob:
			l.Job = row.Job
		case row.Kind == ledger.RowTraffic && row.Amount == nil: // mostly free: it leaves no doubt on the whole
			l.Amount = row.AtLeast
		}
		c.Lines = append(c.Lines, l)
	}
	for _, i := range r.Instances {
		for _, t := range i.Said() {
			c.Said = append(c.Said, CostSaid{i.Name, t})
		}
	}
	return c, nil
}
