// The lines that need no look at files: jobs, and what goes on costing money.

package release

import (
	"context"
	"fmt"

	"rentop/remote"
	"rentop/remote/tmux"
)

func (m *Machine) checkJobs(ctx context.Context) finding {
	if m.runner == nil {
		return unknown(CheckJobs, m.offline, "connect, or type the name to go on without")
	}
	if m.d.Jobs == nil {
		return unknown(CheckJobs, "nothing lists jobs here", "type the name to go on without")
	}
	jobs, err := m.d.Jobs(ctx)
	if err != nil {
		return unknown(CheckJobs, why(err), "connect, or type the name to go on without")
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
		f.rests["job "+j.ID] = "running"
		f.Evidence = append(f.Evidence, Evidence{What: remote.Short(name, 80), Size: -1, Detail: string(j.State) + ": " + remote.Short(j.Command, 120), Lost: true})
	}
	switch running {
	case 0:
		f.Summary = fmt.Sprintf("no job runs (%d ended)", len(jobs))
	default:
		f.State = Failed
		f.Summary = count(running, "job") + " still running"
		f.Cure = "wait for the end, or kill: rentop kill " + m.d.Instance + " JOB"
	}
	return f
}

func (m *Machine) checkCosts(ctx context.Context) finding {
	f := finding{Check: Check{ID: CheckCosts, State: Passed}, rests: map[string]string{}}
	var list []GoesOn
	if m.d.GoesOn != nil {
		var err error
		if list, err = m.d.GoesOn(ctx, m.goal); err != nil {
			return unknown(CheckCosts, why(err), "look in the provider's console for disks, addresses and snapshots")
		}
	} else {
		list = []GoesOn{{What: "not known: no provider is configured", PerMonth: "?"}}
	}
	m.v.GoesOn = list
	f.Summary = "nothing known goes on costing money"
	if len(list) > 0 {
		f.Summary = count(len(list), "thing") + " may go on costing money"
	}
	for _, g := range list {
		per := g.PerMonth
		if per == "" {
			per = "?"
		}
		f.Evidence = append(f.Evidence, Evidence{What: remote.Short(g.What, 120), Size: -1, Detail: per + " a month"})
	}
	return f
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
