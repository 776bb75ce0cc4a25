package session

// The bill taken apart: what was spent on what, what the provider itself charged,
// and where the month is going.

import (
	"context"
	"slices"
	"time"

	"rentop/session/billing"
	"rentop/session/ledger"
)

// Spending is CostReport with what money went into, and what comes.
type Spending struct {
	*CostReport
	Extras    []ledger.Row // traffic and what is left behind: beside Rows, never in them
	Parts     Parts        // of Rows and Extras
	All       Sums         // Total with Extras; traffic of no known price is not in it
	About     map[string]*ledger.About
	Instances []InstanceSpending
	Month     Forecast
}

// Parts are sums by what they were spent on.
type Parts struct {
	Compute, Stopped, Disk, Other, Traffic, Left Sums
}

// InstanceSpending is one instance as a whole, whatever time was asked for.
type InstanceSpending struct {
	Name, UID  string
	Gone       bool // or out of the config
	PerHour    *billing.Amount
	Budget     *billing.Amount
	BudgetLeft *billing.Amount
	Runway     *time.Duration // of the budget; nil: there is none, it has no end, or it is not known
	Left       []ledger.LeftItem
	Charges    []Reconciled
}

// Reconciled is what a provider charged for a time beside what rentop reckons.
type Reconciled struct {
	ledger.Charge
	Estimate *billing.Amount // nil: not known
	AtLeast  *billing.Amount
	Missing  []string        // what keeps it from being known
	Off      *billing.Amount // charged less estimate; nil: not known
}

// Forecast is this calendar month where the person is.
type Forecast struct {
	From, To time.Time
	SoFar    Sums
	ByEnd    Sums // if all stays as it is now
}

// Spending folds the whole ledger. The person's days are local.
func (f *Fleet) Spending(ctx context.Context, since time.Time) (*Spending, error) {
	report, err := f.Costs(ctx, since)
	if err != nil {
		return nil, err
	}
	s := &Spending{CostReport: report}
	if s.Extras, err = f.ledger.Extras(ctx, since, report.Until, time.Local); err != nil {
		return nil, err
	}
	if s.About, err = f.ledger.About(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	ex := f.exchange
	f.mu.Unlock()
	s.sum(ex)
	return s, f.look(ctx, s, ex)
}

// sum adds up by what the money was spent on.
func (s *Spending) sum(ex billing.Exchange) {
	var compute, stopped, disk, other, traffic, left, all summer
	for _, r := range s.Rows {
		if r.Kind != ledger.RowDay {
			continue
		}
		compute.add(r.Parts.Compute, true)
		stopped.add(r.Parts.Stopped, true)
		disk.add(r.Parts.Disk, true)
		other.add(r.Parts.Other, true)
		all.add(r.Amount, true)
	}
	for _, r := range s.Extras {
		to := &traffic
		if r.Kind == ledger.RowLeft {
			to = &left
		}
		to.add(r.Amount, true)
		if r.Amount == nil && r.Kind == ledger.RowTraffic { // mostly free: said apart, it leaves no doubt on the whole
			all.add(r.AtLeast, false)
			continue
		}
		all.add(r.Amount, true)
	}
	at := s.Until
	s.Parts = Parts{compute.sums(ex, at), stopped.sums(ex, at), disk.sums(ex, at), other.sums(ex, at), traffic.sums(ex, at), left.sums(ex, at)}
	s.All = all.sums(ex, at)
}

// meterAndLeft are the kinds that an instance's money comes from.
var meterAndLeft = append([]ledger.Kind{ledger.LeftBehind}, ledger.MeterKinds...)

// look adds what goes by instance, and the month.
func (f *Fleet) look(ctx context.Context, s *Spending, ex billing.Exchange) error {
	instances, err := f.ledger.Instances(ctx)
	if err != nil {
		return err
	}
	sessions := map[string]*Session{}
	f.mu.Lock()
	for _, x := range f.sessions {
		sessions[x.uid] = x
	}
	f.mu.Unlock()
	now := s.Until
	local := now.Local()
	month := Forecast{From: time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, time.Local)}
	month.To = month.From.AddDate(0, 1, 0)
	var soFar, byEnd summer
	told := map[string]bool{} // what is left is named once, also where several instances left it
	for _, i := range instances {
		events, err := f.ledger.Events(ctx, ledger.Filter{Instance: i.UID, Kinds: meterAndLeft})
		if err != nil {
			return err
		}
		t := ledger.Fold(events, now)
		x := InstanceSpending{Name: i.Name, UID: i.UID, Gone: !i.Removed.IsZero() || t.State == billing.Gone}
		left, _ := ledger.Left(events)
		for _, l := range left {
			if key := l.Kind + "\x00" + l.ID; l.ID == "" || !told[key] {
				told[key] = true
				x.Left = append(x.Left, l)
			}
		}
		if in := sessions[i.UID]; in != nil && !x.Gone {
			x.money(t, in.budget(), now)
		}
		if a := s.About[i.UID]; a != nil {
			x.reconcile(t, a.Charges, now)
		}
		s.Instances = append(s.Instances, x)
		for _, part := range []struct {
			to  *summer
			end time.Time
		}{{&soFar, now}, {&byEnd, month.To}} {
			if bill, err := t.Between(month.From, part.end); err != nil || bill.Total == nil {
				part.to.add(nil, true)
			} else {
				part.to.add(bill.Total, true)
			}
		}
	}
	extras, err := f.ledger.Extras(ctx, month.From, now, time.Local)
	if err != nil {
		return err
	}
	coming, err := f.ledger.Extras(ctx, month.From, month.To, time.Local)
	if err != nil {
		return err
	}
	for _, r := range extras {
		soFar.add(r.Amount, r.Kind == ledger.RowLeft)
	}
	for _, r := range coming {
		byEnd.add(r.Amount, r.Kind == ledger.RowLeft)
	}
	month.SoFar, month.ByEnd = soFar.sums(ex, now), byEnd.sums(ex, now)
	s.Month = month
	return nil
}

// money is what an hour costs now, and how long the budget lasts at that.
func (x *InstanceSpending) money(t ledger.Timeline, budget *billing.Amount, now time.Time) {
	x.PerHour, x.Budget = t.PerHour(now), budget
	bill, err := t.Bill(now)
	if budget == nil || err != nil || bill.Total == nil {
		return
	}
	left, err := budget.Sub(*bill.Total)
	if err != nil {
		return
	}
	x.BudgetLeft = &left
	if x.PerHour == nil {
		return
	}
	if d, ends, err := billing.Runway(left, *x.PerHour); err == nil && ends {
		x.Runway = &d
	}
}

// reconcile sets what was charged against what rentop reckons for the very same time.
func (x *InstanceSpending) reconcile(t ledger.Timeline, charges []ledger.Charge, now time.Time) {
	for _, c := range charges {
		r := Reconciled{Charge: c}
		to := c.To
		if to.After(now) {
			to = now
		}
		if bill, err := t.Between(c.From, to); err == nil {
			r.Estimate, r.AtLeast, r.Missing = bill.Total, bill.Known, bill.Missing
		}
		if r.Estimate != nil {
			if off, err := c.Amount.Sub(*r.Estimate); err == nil {
				r.Off = &off
			}
		}
		x.Charges = append(x.Charges, r)
	}
	slices.SortStableFunc(x.Charges, func(a, b Reconciled) int { return a.From.Compare(b.From) })
}

// RecordCharge writes down what the provider charged for an instance in a time, as a
// person copied it from the provider's bill. The name may be one that is gone.
func (f *Fleet) RecordCharge(ctx context.Context, name string, c ledger.ChargeData, source string) error {
	uid, err := f.everNamed(ctx, name)
	if err != nil {
		return err
	}
	_, err = f.ledger.Append(ctx, ledger.NewEvent(ledger.Charged, uid, source, c))
	return err
}
