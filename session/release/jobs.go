// The lines that need no look at files: jobs, and what goes on costing money.

package release

import (
	"context"
	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session/phrase"
)

func (m *Machine) checkJobs(ctx context.Context) finding {
	if m.runner == nil {
		return unknown(CheckJobs, m.offline, phrase.Say("release.cure.connect"))
	}
	if m.d.Jobs == nil {
		return unknown(CheckJobs, phrase.Say("jobs.unlisted"), phrase.Say("release.cure.type"))
	}
	jobs, err := m.d.Jobs(ctx)
	if err != nil {
		return unknown(CheckJobs, why(err), phrase.Say("release.cure.connect"))
	}
	f := finding{Check: Check{ID: CheckJobs, State: Passed}, rests: map[string]string{}}
	running := 0
	for _, j := range jobs {
		if j.State != tmux.Running && j.State != tmux.Starting {
			continue
		}
		running++
		name := j.Name
		if name == "" {
			name = j.ID
		}
		detail := phrase.Say("jobs.one", remote.Short(j.Command, 120))
		if j.State == tmux.Starting {
			detail = phrase.Say("jobs.starting", remote.Short(j.Command, 120))
		}
		f.rests["job "+j.ID] = "running"
		f.Evidence = append(f.Evidence, Evidence{What: remote.Short(name, 80), Size: -1, Detail: detail, Lost: true})
	}
	switch running {
	case 0:
		f.Summary = phrase.Say("jobs.none", len(jobs))
		if len(jobs) == 0 {
			f.Summary = phrase.Say("jobs.never")
		}
	default:
		f.State = Failed
		f.Summary = phrase.Count("jobs.running", running)
		f.Cure = phrase.Say("jobs.cure", m.d.Instance)
	}
	return f
}

func (m *Machine) checkCosts(ctx context.Context) finding {
	f := finding{Check: Check{ID: CheckCosts, State: Passed}, rests: map[string]string{}}
	var list []GoesOn
	if m.d.GoesOn != nil {
		var err error
		if list, err = m.d.GoesOn(ctx, m.goal); err != nil {
			return unknown(CheckCosts, why(err), phrase.Say("costs.cure"))
		}
	} else {
		list = []GoesOn{{What: phrase.Say("costs.noprovider"), PerMonth: "?"}}
	}
	m.v.GoesOn = list
	f.Summary = phrase.Say("costs.none")
	if len(list) > 0 {
		f.Summary = phrase.Count("costs.some", len(list))
	}
	for _, g := range list {
		per := g.PerMonth
		if per == "" {
			per = "?"
		}
		f.Evidence = append(f.Evidence, Evidence{What: remote.Short(g.What.String(), 120), Size: -1, Detail: phrase.Say("costs.permonth", per)})
	}
	return f
}
