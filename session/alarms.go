package session

import (
	"math/big"
	"time"

	"rentop/remote/gpu/alarm"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/phrase"
	"rentop/session/release"
)

// look gives what needs the person now, and what did before.
func (s *Session) look(st *state, m Meter, now time.Time) ([]Alert, []PastAlert) {
	var out []Alert
	for _, f := range st.alarms.Step(s.moment(st, m, now), limits(s.cfg())) {
		out = append(out, alertOf(f))
	}
	if a, ok := st.unfinished(now); ok {
		out = append(out, a)
	}
	if a, ok := st.guardAlert(now); ok {
		out = append(out, a)
	}
	var past []PastAlert
	if a, ok := st.reclaimAlert(s.cfg().Name, now); a.ID != "" {
		past = append(past, PastAlert{Alert: a}) // the person's own line hears of it
		if ok {
			out = append(out, a)
		}
	}
	for _, p := range st.alarms.Past() {
		past = append(past, PastAlert{Alert: alertOf(p.Finding), Ended: p.Ended})
	}
	return out, s.keepAlarms(st, past, now)
}

// unfinished is the alert of a release that was left unfinished by a rentop before.
func (st *state) unfinished(now time.Time) (Alert, bool) {
	const id = "release"
	if r := st.release; r == nil || !r.Resumed || r.Phase == release.Review || r.Phase == release.Cancelled {
		st.unfinishedAt = time.Time{}
		return Alert{}, false
	}
	if st.unfinishedAt.IsZero() {
		st.unfinishedAt = now
	}
	return Alert{ID: id, Level: Urgent, Text: phrase.Say("alert.release"), Since: st.unfinishedAt}, !now.Before(st.alarms.Quiet(id))
}

// moment is what the rules are to know.
func (s *Session) moment(st *state, m Meter, now time.Time) alarm.Moment {
	x := alarm.Moment{At: now, Live: st.State == Live, Sample: st.sample, Billed: st.timeline.State == billing.Running}
	if st.State == Waiting || st.State == Refused || st.State == Stalled {
		x.Unreachable, x.Why = now.Sub(st.Since), alarm.Text{Key: reasonKey, Args: []any{st.Reason}}
	}
	x.Runway, x.RunwayAtMost = s.f.runway(s.cfg().Provider)
	if m.PerHour != nil {
		x.PerHour = m.PerHour
		x.Hourly = func(d time.Duration) any { return costOf(*m.PerHour, d) }
	}
	if m.Budget != nil && m.Cost != nil && m.Budget.Value != nil && m.Budget.Value.Sign() > 0 {
		x.Budget, x.Cost = m.Budget, m.Cost
		if m.Cost.Value != nil {
			x.Spent, _ = new(big.Rat).Quo(m.Cost.Value, m.Budget.Value).Float64()
		}
	}
	if st.saved.Known {
		x.Unsaved = st.saved.Files
	}
	for _, j := range st.jobs {
		x.Jobs = append(x.Jobs, alarm.Job{Name: j.Name, Running: j.State == tmux.Running || j.State == tmux.Starting,
			Code: j.ExitCode, Lost: j.State == tmux.Lost, Began: j.StartedAt, Ended: j.EndedAt})
	}
	for _, w := range s.cfg().Watch {
		newest, ok := st.watched[w.Path]
		if limit, err := time.ParseDuration(w.StaleAfter); ok && err == nil {
			x.Watched = append(x.Watched, alarm.Watched{Path: w.Path, Newest: newest, Limit: limit})
		}
	}
	return x
}

// costOf is what a time costs at a rate; nil where it cannot be told.
func costOf(perHour billing.Amount, d time.Duration) any {
	if perHour.Value == nil {
		return nil
	}
	hours := new(big.Rat).SetFrac64(int64(d), int64(time.Hour))
	return billing.Amount{Value: hours.Mul(hours, perHour.Value), Currency: perHour.Currency}
}

// limits are the usual ones with what the person set.
func limits(in config.Instance) alarm.Limits {
	l := alarm.Usual()
	if in.Idle != nil {
		l.IdleBelow = float64(in.Idle.Below)
		l.IdleFor, _ = time.ParseDuration(in.Idle.For) // checked when the config was read
	}
	if a := in.Alarm; a != nil {
		a.Set(&l)
	}
	return l
}

// reasonKey marks a text that session made itself.
const reasonKey = "reason"

func alertOf(f alarm.Finding) Alert {
	return Alert{ID: f.ID, Level: Level(f.Level), Text: textOf(f.Text), Since: f.Since}
}

// textOf makes phrases of a rule's text.
func textOf(t alarm.Text) phrase.Text {
	var out phrase.Text
	const throttled = "throttle."
	switch {
	case t.Key == "":
	case t.Key == reasonKey:
		out, _ = t.Args[0].(phrase.Text)
	case len(t.Key) > len(throttled) && t.Key[:len(throttled)] == throttled:
		out = phrase.Word(throttled, t.Key[len(throttled):])
	case t.Many:
		out = phrase.Count(phrase.ID(t.Key), t.N, t.Args...)
	default:
		out = phrase.Say(phrase.ID(t.Key), t.Args...)
	}
	for _, m := range t.More {
		out = out.Then(textOf(m))
	}
	return out
}

// span writes a duration so that it is read in every language: 24 min, 3 h 12 min, 2 d.
func span(d time.Duration) string { return alarm.Span(d) }
