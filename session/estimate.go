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
	"rentop/session/phrase"
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

// PastRuns are the runs that ended well, on any instance, newest first.
type PastRuns struct {
	runs    []pastRun
	perHour *billing.Amount // of the instance that is asked for, while it runs
}

type pastRun struct {
	words, stem string
	took        time.Duration
	sameGPUs    bool
}

// mostRuns bounds PastRuns.
const mostRuns = 5000

// PastRuns reads what there is to estimate by. It asks nothing of anybody.
func (s *Session) PastRuns(ctx context.Context) (*PastRuns, error) {
	events, err := s.f.ledger.Events(ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.JobEnded}})
	if err != nil {
		return nil, err
	}
	about, err := s.f.ledger.About(ctx)
	if err != nil {
		return nil, err
	}
	here := gpusAt(about, s.uid)
	p := &PastRuns{perHour: billing.BurnAt(s.plan(), billing.Running, s.f.opt.Now())}
	for _, ev := range slices.Backward(events) {
		var j tmux.Job
		if json.Unmarshal(ev.Data, &j) != nil || j.State != tmux.Done || j.ExitCode == nil || *j.ExitCode != 0 || !j.StartedAt.Before(j.EndedAt) {
			continue
		}
		p.runs = append(p.runs, pastRun{words(j.Command), stem(j.Command), j.EndedAt.Sub(j.StartedAt), ev.Instance == s.uid || here != "" && gpusAt(about, ev.Instance) == here})
		if len(p.runs) == mostRuns {
			break
		}
	}
	return p, nil
}

// For says what a command is likely to take. ok is false where nothing like it ended
// well before.
func (p *PastRuns) For(command string) (e JobEstimate, ok bool) {
	text, kind := words(command), stem(command)
	var best []time.Duration
	rank := -1
	for _, run := range p.runs {
		r := 0
		switch {
		case text == "":
			continue
		case run.words == text:
			r = 2
		case kind == "" || run.stem != kind:
			continue
		}
		if run.sameGPUs {
			r++
		}
		if r > rank { // only the runs that are most alike are compared
			rank, best = r, nil
		}
		if r == rank && len(best) < maxPast {
			best = append(best, run.took)
		}
	}
	if len(best) == 0 {
		return e, false
	}
	slices.Sort(best)
	e = JobEstimate{Runs: len(best), Similar: rank < 2, OtherGPUs: rank%2 == 0, Shortest: best[0], Longest: best[len(best)-1], Took: median(best)}
	if p.perHour != nil {
		at := func(d time.Duration) *billing.Amount { a := p.perHour.Over(d); return &a }
		e.Cost, e.CostLeast, e.CostMost = at(e.Took), at(e.Shortest), at(e.Longest)
	}
	return e, true
}

// Text is the estimate in words.
func (e JobEstimate) Text() phrase.Text {
	var t phrase.Text
	switch {
	case e.Runs == 1 && e.Similar:
		t = phrase.Say("estimate.like.one", span(e.Took))
	case e.Runs == 1:
		t = phrase.Say("estimate.same.one", span(e.Took))
	case e.Similar:
		t = phrase.Say("estimate.like", e.Runs, span(e.Shortest), span(e.Longest))
	default:
		t = phrase.Say("estimate.same", e.Runs, span(e.Shortest), span(e.Longest))
	}
	if e.OtherGPUs {
		t = t.Then(phrase.Say("estimate.elsewhere"))
	}
	if e.Cost != nil {
		return t.Then(phrase.Say("estimate.cost", e.Cost))
	}
	return t.Then(phrase.Say("estimate.unpriced"))
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
