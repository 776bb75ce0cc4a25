package session

// What a command is likely to take, from what it took before.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/ledger"
)

// JobEstimate is what past runs of a command say about the next.
type JobEstimate struct {
	Runs                      int           // that ended well
	Similar                   bool          // none was of the very same command: of the same program and script
	OtherGPUs                 bool          // all of them ran on other GPUs than this instance has, or on unknown ones
	Took                      time.Duration // the median
	Shortest, Longest         time.Duration
	Cost, CostLeast, CostMost *billing.Amount // at this instance's price of an hour; nil: not known
}

// maxPast is how many of the newest runs count: the older ones were of other code.
const maxPast = 10

// EstimateJob looks for past runs of a command on any instance. ok is false where
// there are none that ended well. It asks nothing of anybody.
func (s *Session) EstimateJob(ctx context.Context, command string) (e JobEstimate, ok bool, err error) {
	events, err := s.f.ledger.Events(ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.JobEnded}})
	if err != nil {
		return e, false, err
	}
	about, err := s.f.ledger.About(ctx)
	if err != nil {
		return e, false, err
	}
	here := gpusAt(about, s.uid)
	var best []time.Duration
	rank := -1
	for _, ev := range slices.Backward(events) {
		var j tmux.Job
		if json.Unmarshal(ev.Data, &j) != nil || j.State != tmux.Done || j.ExitCode == nil || *j.ExitCode != 0 || !j.StartedAt.Before(j.EndedAt) {
			continue
		}
		r := 0
		switch {
		case words(j.Command) == words(command):
			r = 2
		case stem(j.Command) != stem(command) || stem(command) == "":
			continue
		}
		if there := gpusAt(about, ev.Instance); here != "" && there == here {
			r++
		}
		if r > rank { // only the runs that are most alike are compared
			rank, best = r, nil
		}
		if r == rank && len(best) < maxPast {
			best = append(best, j.EndedAt.Sub(j.StartedAt))
		}
	}
	if len(best) == 0 {
		return e, false, nil
	}
	slices.Sort(best)
	e = JobEstimate{Runs: len(best), Similar: rank < 2, OtherGPUs: rank%2 == 0, Shortest: best[0], Longest: best[len(best)-1], Took: median(best)}
	if hour := billing.BurnAt(s.plan(), billing.Running, s.f.opt.Now()); hour != nil {
		at := func(d time.Duration) *billing.Amount { a := hour.Over(d); return &a }
		e.Cost, e.CostLeast, e.CostMost = at(e.Took), at(e.Shortest), at(e.Longest)
	}
	return e, true, nil
}

func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// gpusAt are an instance's GPUs as one text; "" is not known.
func gpusAt(about map[string]*ledger.About, uid string) string {
	if a := about[uid]; a != nil {
		return strings.Join(a.GPUs, "\x00")
	}
	return ""
}

// words is a command without the spaces that make no difference.
func words(command string) string { return strings.Join(strings.Fields(command), " ") }

// stem is the program with its script: what stands before the first flag and holds a
// dot or a slash, as in "python train.py". It is "" where that is only a shell's word.
func stem(command string) string {
	if i := strings.LastIndexAny(command, ";&"); i >= 0 { // cd project && python …
		command = command[i+1:]
	}
	var out []string
	for _, w := range strings.Fields(command) {
		if strings.HasPrefix(w, "-") && len(out) > 0 {
			if w == "-m" { // python -m package
				continue
			}
			break
		}
		out = append(out, w)
		if len(out) > 1 && strings.ContainsAny(w, "./") {
			break
		}
		if len(out) == 4 {
			break
		}
	}
	if len(out) < 2 {
		return ""
	}
	return strings.Join(out, " ")
}
