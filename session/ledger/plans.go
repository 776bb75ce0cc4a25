package ledger

import (
	"encoding/json"
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

// plans gives the plans in force, by EffectiveFrom. facts are in the order of
// writing: a later plan replaces all that would hold from its At on.
func (f *folder) plans(facts []fact) []billing.Plan {
	var plans []billing.Plan
	for _, e := range facts {
		if e.Kind != PlanSet {
			continue
		}
		var d PlanData
		err := json.Unmarshal(e.Data, &d)
		var p billing.Plan
		if err == nil {
			p, err = d.Plan()
		}
		if err != nil {
			f.note("note.price", e.Seq, err)
			continue
		}
		p.EffectiveFrom = e.at
		for n := len(plans); n > 0 && !plans[n-1].EffectiveFrom.Before(e.at); n-- {
			plans = plans[:n-1]
		}
		plans = append(plans, p)
	}
	fillUnknown(plans)
	return plans
}

// fillUnknown gives a plan what it did not know when a later one of the same
// currency tells it: a price that was entered a day late was the price that day.
func fillUnknown(plans []billing.Plan) {
	for n := len(plans) - 2; n >= 0; n-- {
		p, next := &plans[n], plans[n+1]
		if p.Currency == "" {
			p.Currency = next.Currency
		}
		if p.Currency != next.Currency {
			continue
		}
		if p.PerHour == nil {
			p.PerHour, p.Billed, p.MinSeconds = next.PerHour, next.Billed, next.MinSeconds
			p.Steps, p.Floor, p.Settle = next.Steps, next.Floor, next.Settle
		}
		if p.WhileHibernated == nil {
			p.WhileHibernated = next.WhileHibernated
		}
		if p.WhileStopped == nil {
			p.WhileStopped = next.WhileStopped
		}
		if p.DiskGB != nil && p.PerGBMonth == nil {
			p.PerGBMonth, p.MonthHours = next.PerGBMonth, next.MonthHours
		}
	}
}

// planAt is the plan in force at a moment, and when the next one takes over
// (zero: never).
func planAt(plans []billing.Plan, at time.Time) (p billing.Plan, until time.Time) {
	for n, q := range plans {
		if n > 0 && q.EffectiveFrom.After(at) {
			return p, q.EffectiveFrom
		}
		p = q
	}
	return p, time.Time{}
}

// timeline cuts the spans by the plans and says what is assumed.
func (f *folder) timeline(plans []billing.Plan, now time.Time) Timeline {
	t := Timeline{LastObserved: f.seen, State: f.state()}
	t.Plan, _ = planAt(plans, now)
	for n, s := range f.spans {
		var to time.Time
		if n+1 < len(f.spans) {
			to = f.spans[n+1].from
			if !s.from.Before(to) {
				continue
			}
		}
		t.Intervals = appendCut(t.Intervals, s, to, plans)
		t.Since = s.from
	}
	if f.run >= 0 && !f.spans[f.run].exact && f.state() == billing.Running {
		f.note("note.contact", f.spans[f.run].from)
	}
	if f.gaps > 0 {
		f.note("note.nobody", f.gapFrom, f.gapTo, f.gaps)
	}
	if s := f.state(); held(s) && now.Sub(f.seen) > silence {
		t.UnconfirmedSince = f.seen
		f.note("note.still."+phrase.ID(s), f.seen)
	}
	t.Notes = f.notes
	if over := len(t.Notes) - maxNotes; over > 0 {
		t.Notes = t.Notes[over:]
	}
	return t
}

// appendCut adds a span as one interval for each plan that it meets.
func appendCut(list []billing.Interval, s span, to time.Time, plans []billing.Plan) []billing.Interval {
	for from := s.from; ; {
		p, until := planAt(plans, from)
		last := until.IsZero() || !to.IsZero() && !until.Before(to)
		if last {
			until = to
		}
		list = append(list, billing.Interval{State: s.state, From: from, To: until, Plan: p, NewStart: s.newStart && from.Equal(s.from)})
		if last {
			return list
		}
		from = until
	}
}
