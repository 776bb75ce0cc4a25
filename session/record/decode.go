package record

// From a chunk to session's views. Whoever wrote the file: text is cleaned and cut,
// counts are not negative, and money is a number or unknown.

import (
	"math/big"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// maxText bounds every text, in characters.
const maxText = 2000

func text(s string) string { return remote.Short(s, maxText) }

func (s said) text() phrase.Text {
	var out phrase.Text
	for _, p := range s {
		x := phrase.Phrase{ID: phrase.ID(text(p.ID))}
		for _, a := range p.Args {
			x.Args = append(x.Args, text(a))
		}
		out = append(out, x)
	}
	return out
}

// amount is unknown where it is no plain number: an exponent could ask for gigabytes.
func (a *amount) amount() *billing.Amount {
	if a == nil || len(a.Value) > 100 || strings.Trim(a.Value, "-0123456789/") != "" {
		return nil
	}
	v, ok := new(big.Rat).SetString(a.Value)
	if !ok {
		return nil
	}
	return &billing.Amount{Value: v, Currency: remote.Short(a.Currency, 10)}
}

func (s sums) sums() session.Sums {
	out := session.Sums{Unknown: max(s.Unknown, 0)}
	for i := range s.Amounts {
		if a := s.Amounts[i].amount(); a != nil {
			out.Amounts = append(out.Amounts, *a)
		} else {
			out.Unknown++
		}
	}
	return out
}

func level(n int) session.Level {
	return session.Level(min(max(n, int(session.Info)), int(session.Urgent)))
}

func count[T int | int64](n T) T { return max(n, 0) }

func (w fleetWire) view() session.FleetView {
	v := session.FleetView{Simulated: w.Simulated, PerHour: w.PerHour.sums(), Today: w.Today.sums(), BudgetLeft: w.BudgetLeft.sums(), ConfigErr: text(w.ConfigErr)}
	for _, b := range w.Balances {
		if x, ok := b.balance(); ok {
			v.Balances = append(v.Balances, x)
		}
	}
	for _, n := range w.Notices {
		v.Notices = append(v.Notices, session.Notice{At: n.At, Instance: text(n.Instance), Level: level(n.Level), Text: n.Text.text()})
	}
	return v
}

func (w viewWire) view(name string) session.View {
	v := session.View{
		Name: text(name), Provider: text(w.Provider), Address: text(w.Address), State: state(w.State), Reason: w.Reason.text(),
		Since: w.Since, RetryAt: w.RetryAt, RTT: count64(w.RTT), JobsErr: text(w.JobsErr), Limit: count(w.Limit),
		Saved: session.Saved{Known: w.Saved.Known, Files: count(w.Saved.Files), Bytes: count(w.Saved.Bytes), At: w.Saved.At},
	}
	if f := w.Facts; f != nil {
		v.Facts = &remote.Facts{User: text(f.User), Home: text(f.Home), Root: f.Root, OS: text(f.OS), Arch: text(f.Arch), Container: text(f.Container), Tmux: text(f.Tmux)}
		for _, g := range f.GPUs {
			v.Facts.GPUs = append(v.Facts.GPUs, text(g))
		}
	}
	m := &w.Meter
	v.Meter = session.Meter{Cost: m.Cost.amount(), AtLeast: m.AtLeast.amount(), Today: m.Today.amount(), PerHour: m.PerHour.amount(), Running: m.Running.amount(),
		ByMidnight: m.ByMidnight.amount(), Budget: m.Budget.amount(), BudgetLeft: m.BudgetLeft.amount(), Since: m.Since, Note: m.Note.text()}
	for _, x := range m.Missing {
		v.Meter.Missing = append(v.Meter.Missing, text(x))
	}
	if w.JobsRead {
		v.Jobs = []tmux.Job{}
	}
	for i := range w.Jobs {
		j := w.Jobs[i].job()
		if j.State == tmux.Running || j.State == tmux.Starting {
			v.Running++
		}
		v.Jobs = append(v.Jobs, j)
	}
	for i := range w.Transfer {
		v.Transfer = append(v.Transfer, w.Transfer[i].view())
	}
	for _, p := range w.Syncs {
		v.Syncs = append(v.Syncs, session.SyncPair{Local: text(p.Local), Remote: text(p.Remote)})
	}
	for _, a := range w.Alerts {
		v.Alerts = append(v.Alerts, a.alert())
	}
	for _, a := range w.Past {
		v.PastAlerts = append(v.PastAlerts, session.PastAlert{Alert: a.alert(), Ended: a.Ended, Silenced: a.Silenced, Unseen: a.Unseen})
	}
	for id, r := range w.Receipts {
		if v.Receipts == nil {
			v.Receipts = map[string]session.Receipt{}
		}
		v.Receipts[text(id)] = r.receipt()
	}
	if w.Guard != nil {
		v.Guard = w.Guard.guard()
	}
	v.Artifacts, v.Saving = count(w.Artifacts), w.Saving.view()
	if w.Release != nil {
		v.Release = w.Release.view(v.Name)
	}
	if len(w.Can) == 4 {
		v.CanStop, v.CanStart, v.CanDestroy, v.CanSnapshot = w.Can[0], w.Can[1], w.Can[2], w.Can[3]
	}
	return v
}

func count64(d time.Duration) time.Duration { return max(d, 0) }

// state is one that session knows; another is not connected.
func state(s string) session.State {
	switch x := session.State(s); x {
	case session.Connecting, session.Asking, session.Live, session.Stalled, session.Waiting, session.Refused, session.Stopped, session.Gone:
		return x
	}
	return session.Idle
}

func (j job) job() tmux.Job {
	return tmux.Job{ID: text(j.ID), Name: text(j.Name), Command: text(j.Command), Dir: text(j.Dir), State: tmux.State(text(j.State)), ExitCode: j.ExitCode,
		StartedAt: j.Started, EndedAt: j.Ended, PID: j.PID, LogSize: count(j.LogSize), LastLine: text(j.LastLine), Tmux: j.Tmux, Why: text(j.Why)}
}

func (a alert) alert() session.Alert {
	return session.Alert{ID: text(a.ID), Level: level(a.Level), Text: a.Text.text(), Since: a.Since}
}

func (t transfer) view() session.TransferView {
	v := session.TransferView{
		ID: t.ID, Direction: sync.Direction(text(t.Direction)), Local: text(t.Local), Remote: text(t.Remote),
		Err: text(t.Err), Cancelled: t.Cancelled, Paused: t.Paused,
		Progress: sync.Progress{Stage: text(t.Stage), Files: count(t.Files), FilesAll: count(t.FilesAll), Bytes: count(t.Bytes), BytesAll: count(t.BytesAll), Growing: t.Growing,
			Wire: count(t.Wire), Reused: count(t.Reused), Current: text(t.Current), Rate: finite(t.Rate), Left: t.Left, Transport: text(t.Transport), WhySlower: text(t.WhySlower), FailedSoon: count(t.Failures)},
	}
	if r := t.Result; r != nil {
		v.Result = &sync.Result{Files: count(r.Files), Unchanged: count(r.Unchanged), FailedAll: count(r.Failed), Bytes: count(r.Bytes),
			Wire: count(r.Wire), Reused: count(r.Reused), Took: count64(r.Took), Verified: r.Verified}
	}
	return v
}

func (c checklist) view(instance string) *release.View {
	v := &release.View{ID: text(c.ID), Instance: instance, Goal: release.Goal(text(c.Goal)), Phase: release.Phase(text(c.Phase)), Why: c.Why.text(), Lost: found(c.Lost), LostSize: count(c.LostSize), PullTraffic: text(c.Traffic),
		CanStop: c.CanStop, CanDestroy: c.CanDestroy, StopNote: text(c.StopNote), StartedAt: c.StartedAt, Resumed: c.Resumed,
		Proof: c.Proof.text(), Ended: provider.State(text(c.Ended)), Cost: text(c.Cost), Pulled: count(c.Pulled), PulledTo: text(c.PulledTo)}
	for _, x := range c.Checks {
		v.Checks = append(v.Checks, release.Check{ID: release.CheckID(text(x.ID)), State: release.CheckState(text(x.State)), Summary: x.Summary.text(),
			Evidence: found(x.Evidence), At: x.At, Cure: x.Cure.text()})
	}
	for _, g := range c.GoesOn {
		v.GoesOn = append(v.GoesOn, release.GoesOn{What: g.What.text(), PerMonth: text(g.PerMonth)})
	}
	return v
}

func found(list []evidence) (out []release.Evidence) {
	for _, x := range list {
		out = append(out, release.Evidence{What: text(x.What), Size: max(x.Size, -1), Detail: x.Detail.text(), Lost: x.Lost, More: count(x.More)})
	}
	return out
}
