package session

// A guard in words.

import (
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/gpu/guard"
	"rentop/session/phrase"
)

// guardOf makes a view of what an instance told. Its clock may be wrong: only what
// lies between its times is believed.
func guardOf(r *guard.Report, now time.Time) Guard {
	g := Guard{SeenAt: now, Journal: r.Journal}
	st := r.State
	if st == nil {
		g.Text = phrase.Say("guard.none")
		return g
	}
	ours := func(t time.Time) time.Time {
		if t.IsZero() || r.Now.IsZero() {
			return time.Time{}
		}
		return now.Add(t.Sub(r.Now)).Round(time.Second)
	}
	g.ID, g.Phase, g.Armed, g.Source, g.ArmedAt = st.Spec.ID, string(st.Phase), r.Armed(), st.Source, ours(st.ArmedAt)
	g.Save, g.Then = remote.Short(st.Spec.Save, 400), remote.Short(st.Spec.Then, 400)
	switch {
	case st.Spec.Stops:
		g.Then = ThenStop
	case g.Then == "":
		g.Then = ThenNothing
	}
	age := max(r.Now.Sub(st.Now), 0)
	for i, x := range st.Rules {
		rule := GuardRule{Kind: string(x.Kind), Why: whyOf(x.Why), Doubt: whyOf(x.Doubt), Met: x.Met}
		if x.Left != nil && r.Alive {
			left := max(time.Duration(min(*x.Left, 1<<32))*time.Second-age, 0)
			rule.Left, rule.Due = &left, now.Add(left).Round(time.Second)
		}
		rule.Text = ruleText(x, st, i, rule.Due)
		g.Rules = append(g.Rules, rule)
	}
	g.Problem = problemOf(r, g.Then)
	g.Reclaim = reclaimOf(st, ours)
	if g.tripped, g.stopped = "?", r.Stopped(); st.Trip != nil {
		g.tripped = moment(ours(st.Trip.At))
	}
	g.Text = g.sentence()
	return g
}

func ruleText(x guard.Status, st *guard.State, i int, due time.Time) phrase.Text {
	switch x.Kind {
	case guard.Idle:
		return phrase.Say("guard.idle", span(time.Duration(min(x.Total, 1<<32))*time.Second))
	case guard.After:
		return phrase.Say("guard.after", x.Job)
	case guard.Budget:
		if i < len(st.Spec.Rules) {
			b := st.Spec.Rules[i]
			return phrase.Say("guard.budget", strings.TrimSpace(remote.Short(b.Limit, 40)+" "+remote.Short(b.Currency, 8)))
		}
	case guard.Lease:
		return phrase.Say("guard.lease", moment(due))
	case guard.Reclaim:
		return phrase.Say("guard.reclaim")
	}
	return phrase.Say("guard.at", moment(due))
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.Local().Format("01-02 15:04")
}

// whyOf is a reason of the guard's in our words. One that we do not know is of
// another rentop's guard.
func whyOf(s guard.Say) phrase.Text {
	arg := func(i int) string {
		if i < len(s.Args) {
			return s.Args[i]
		}
		return "?"
	}
	switch s.Key {
	case "":
		return nil
	case "nosample":
		return phrase.Say("guard.why.nosample", arg(0))
	case "noutil":
		return phrase.Say("guard.why.noutil", arg(0), arg(1))
	case "held":
		return phrase.Say("guard.why.held", arg(0), arg(1))
	case "nojobs":
		return phrase.Say("guard.why.nojobs", arg(0))
	case "busy":
		return phrase.Say("guard.why.busy", arg(0), arg(1))
	case "job":
		return phrase.Say("guard.why.job", arg(0))
	case "moves":
		return phrase.Say("guard.why.moves")
	case "jobended":
		return phrase.Say("guard.why.jobended", arg(0), arg(1))
	case "nojob":
		return phrase.Say("guard.why.nojob", arg(0))
	case "clock":
		return phrase.Say("guard.why.clock", arg(0))
	case "reclaim":
		return phrase.Say("guard.why.reclaim", arg(0))
	case "noanswer":
		return phrase.Say("guard.why.noanswer", arg(0))
	case "spent":
		return phrase.Say("guard.why.spent", arg(0), arg(1))
	case "cannotact":
		return phrase.Say("guard.why.cannotact", arg(0))
	}
	return phrase.Plain(s.Key + " " + strings.Join(s.Args, " "))
}

// problemOf is what is wrong with a guard.
func problemOf(r *guard.Report, then string) phrase.Text {
	st := r.State
	switch {
	case st.Phase == guard.Refused:
		return phrase.Say("guard.refused").Then(whyOf(st.Why))
	case st.Phase == guard.Unsure:
		return phrase.Say("guard.unsure", then)
	case r.Gone():
		return phrase.Say("guard.gone")
	case r.Hangs():
		return phrase.Say("guard.hangs", span(r.Now.Sub(st.Now).Abs()))
	case st.Phase == guard.Waiting && st.Trip != nil && st.Spec.Save != "" && !st.Trip.Saved:
		return phrase.Say("guard.unsaved", st.Trip.Saves, st.Trip.Error)
	case st.Phase == guard.Waiting && st.Trip != nil:
		return phrase.Say("guard.failing", st.Trip.Acts, st.Trip.Error)
	case st.Fault != "":
		return phrase.Plain(st.Fault)
	}
	for _, x := range st.Rules {
		if x.Doubt.Key != "" {
			return whyOf(x.Doubt)
		}
	}
	return nil
}

// sentence is all of it.
func (g *Guard) sentence() phrase.Text {
	var rules []phrase.Text
	for _, r := range g.Rules {
		t := r.Text
		switch {
		case len(r.Why) > 0:
			t = t.Then(phrase.Say("guard.not"), r.Why, phrase.Say("guard.close"))
		case r.Left != nil:
			t = t.Then(phrase.Say("guard.left", span(*r.Left)))
		}
		rules = append(rules, t)
	}
	what := phrase.List(rules...)
	if len(rules) == 0 {
		what = phrase.Say("guard.history")
	}
	switch g.Then {
	case ThenStop:
		what = what.Then(phrase.Say("guard.stops"))
	case ThenNothing:
	default:
		what = what.Then(phrase.Say("guard.does", remote.Short(g.Then, 60)))
	}
	if g.Save != "" {
		what = what.Then(phrase.Say("guard.saves", remote.Short(g.Save, 60)))
	}
	if g.stopped {
		return phrase.Say("guard.stopped", g.tripped)
	}
	switch guard.Phase(g.Phase) {
	case guard.Off:
		return phrase.Say("guard.off")
	case guard.Saving:
		return phrase.Say("guard.saving", g.tripped)
	case guard.Acting, guard.Stopping:
		return phrase.Say("guard.acting", g.tripped)
	case guard.Done:
		return phrase.Say("guard.done", g.tripped)
	}
	if len(g.Problem) > 0 && !g.Armed {
		return g.Problem
	}
	return what
}
