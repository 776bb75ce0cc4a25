package record

// From session's views to what a chunk holds.

import (
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/phrase"
	"rentop/session/release"
)

// encoder makes wire types of views, with stand-ins where words are hidden.
type encoder struct{ *stands }

func (e encoder) say(t phrase.Text) said {
	out := make(said, len(t))
	for i, p := range t {
		out[i].ID = string(p.ID)
		for _, a := range p.Args {
			if p.ID == "" { // a library's own words
				a = e.text(a)
			} else {
				a = e.arg(a)
			}
			out[i].Args = append(out[i].Args, a)
		}
	}
	return out
}

func money(a *billing.Amount) *amount {
	if a == nil || a.Value == nil {
		return nil
	}
	return &amount{a.Value.RatString(), a.Currency}
}

func total(s session.Sums) sums {
	out := sums{Unknown: s.Unknown}
	for i := range s.Amounts {
		if a := money(&s.Amounts[i]); a != nil {
			out.Amounts = append(out.Amounts, *a)
		}
	}
	return out
}

func (e encoder) fleet(v *session.FleetView) fleetWire {
	out := fleetWire{Simulated: v.Simulated, PerHour: total(v.PerHour), Today: total(v.Today), BudgetLeft: total(v.BudgetLeft), ConfigErr: e.text(v.ConfigErr), Balances: balancesOf(v.Balances)}
	for _, n := range v.Notices {
		out.Notices = append(out.Notices, notice{n.At, e.instance(n.Instance), int(n.Level), e.say(n.Text)})
	}
	return out
}

func (e encoder) view(v *session.View) viewWire {
	out := viewWire{
		Provider: v.Provider, Address: e.address(v.Address), State: string(v.State), Reason: e.say(v.Reason), Since: v.Since, RetryAt: v.RetryAt, RTT: v.RTT,
		JobsRead: v.Jobs != nil, JobsErr: e.text(v.JobsErr), Limit: v.Limit,
		Saved: saved{v.Saved.Known, v.Saved.Files, v.Saved.Bytes, v.Saved.At},
		Can:   []bool{v.CanStop, v.CanStart, v.CanDestroy, v.CanSnapshot},
	}
	if f := v.Facts; f != nil {
		out.Facts = &facts{e.user(f.User), e.path(f.Home), f.Root, e.machine(f.OS), e.machine(f.Arch), e.machine(f.Container), e.machine(f.Tmux), nil}
		for _, name := range f.GPUs {
			out.Facts.GPUs = append(out.Facts.GPUs, e.machine(name))
		}
	}
	m := &v.Meter
	out.Meter = meter{money(m.Cost), money(m.AtLeast), money(m.Today), money(m.PerHour), money(m.Running), money(m.ByMidnight),
		money(m.Budget), money(m.BudgetLeft), m.Since, nil, e.say(m.Note)}
	for _, x := range m.Missing {
		out.Meter.Missing = append(out.Meter.Missing, e.missing(x))
	}
	for i := range v.Jobs {
		out.Jobs = append(out.Jobs, e.jobOf(&v.Jobs[i]))
	}
	for i := range v.Transfer {
		out.Transfer = append(out.Transfer, e.transfer(&v.Transfer[i]))
	}
	for _, p := range v.Syncs {
		out.Syncs = append(out.Syncs, pair{e.path(p.Local), e.path(p.Remote)})
	}
	for _, a := range v.Alerts {
		out.Alerts = append(out.Alerts, alert{ID: e.id(a.ID), Level: int(a.Level), Text: e.say(a.Text), Since: a.Since})
	}
	for _, a := range v.PastAlerts {
		out.Past = append(out.Past, alert{e.id(a.ID), int(a.Level), e.say(a.Text), a.Since, a.Ended, a.Silenced, a.Unseen})
	}
	for id, r := range v.Receipts {
		if out.Receipts == nil {
			out.Receipts = map[string]receipt{}
		}
		out.Receipts[id] = receiptOf(r)
	}
	if v.Guard != nil {
		out.Guard = e.guard(v.Guard)
	}
	out.Artifacts, out.Saving = v.Artifacts, e.saving(v.Saving)
	if v.Release != nil {
		out.Release = e.release(v.Release)
	}
	return out
}

// missing leaves the words of session itself for what the meter lacks.
func (e encoder) missing(s string) string {
	switch s {
	case billing.MissingPrice, billing.MissingStopped, billing.MissingHibern, billing.MissingDisk, billing.MissingDiskSize,
		billing.MissingPrepaid, billing.MissingState, "when it started":
		return s
	}
	return e.text(s)
}

func (e encoder) jobOf(j *tmux.Job) job {
	return job{j.ID, e.job(j.Name), e.command(j.Command), e.path(j.Dir), string(j.State), j.ExitCode, j.StartedAt, j.EndedAt,
		j.PID, j.LogSize, e.text(j.LastLine), j.Tmux, e.text(j.Why)}
}

func (e encoder) transfer(t *session.TransferView) transfer {
	p := &t.Progress
	out := transfer{
		ID: t.ID, Direction: string(t.Direction), pair: pair{e.path(t.Local), e.path(t.Remote)}, Stage: p.Stage,
		Files: p.Files, FilesAll: p.FilesAll, Bytes: p.Bytes, BytesAll: p.BytesAll, Growing: p.Growing, Wire: p.Wire, Reused: p.Reused,
		Current: e.path(p.Current), Rate: finite(p.Rate), Left: p.Left, Transport: p.Transport, WhySlower: e.text(p.WhySlower), Failures: p.FailedSoon,
		Err: e.text(t.Err), Cancelled: t.Cancelled, Paused: t.Paused,
	}
	if r := t.Result; r != nil {
		out.Result = &result{r.Files, r.Unchanged, r.FailedAll, r.Bytes, r.Wire, r.Reused, r.Took, r.Verified}
	}
	return out
}

// release leaves out Shown: nobody answers a recording.
func (e encoder) release(r *release.View) *checklist {
	out := &checklist{
		ID: r.ID, Goal: string(r.Goal), Phase: string(r.Phase), Why: e.say(r.Why), Lost: e.found(r.Lost), LostSize: r.LostSize, Traffic: r.PullTraffic,
		CanStop: r.CanStop, CanDestroy: r.CanDestroy, StopNote: e.text(r.StopNote), StartedAt: r.StartedAt, Resumed: r.Resumed,
		Proof: e.say(r.Proof), Ended: string(r.Ended), Cost: r.Cost, Pulled: r.Pulled, PulledTo: e.path(r.PulledTo),
	}
	for _, c := range r.Checks {
		out.Checks = append(out.Checks, check{string(c.ID), string(c.State), e.say(c.Summary), e.found(c.Evidence), c.At, e.say(c.Cure)})
	}
	for _, g := range r.GoesOn {
		out.GoesOn = append(out.GoesOn, goesOn{e.say(g.What), e.arg(g.PerMonth)})
	}
	return out
}

// maxEvidence is how many things of one check are kept: a screen shows fewer.
const maxEvidence = 200

func (e encoder) found(list []release.Evidence) (out []evidence) {
	for _, x := range list[:min(len(list), maxEvidence)] {
		out = append(out, evidence{e.path(x.What), x.Size, e.say(x.Detail), x.Lost, x.More})
	}
	return out
}
