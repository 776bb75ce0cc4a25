package billing

// One start of an instance: minimums, started units, steps of the price and
// settlements are counted from it.

import (
	"math/big"
	"time"
)

// run is the walk over one start: everything before pos is paid.
type run struct {
	pos   time.Time
	fresh bool          // the minimum is still to be charged
	used  time.Duration // billed so far: what the steps go by
	open  settlement
}

// settlement is the part of a run that is charged at once, with a least amount.
type settlement struct {
	floor *big.Rat // nil: none is open
	end   time.Time
	sum   big.Rat
}

// advance gives the time to charge for a part of the run, and moves past it.
func (r *run) advance(p part) (from time.Time, d time.Duration) {
	from = r.pos
	if p.covered {
		r.fresh = false
		if p.To.After(r.pos) {
			r.pos = p.To
		}
		return from, 0
	}
	if !r.fresh && !p.To.After(r.pos) {
		return from, 0 // inside a unit that is already paid
	}
	d = p.To.Sub(r.pos)
	if minimum := time.Duration(p.Plan.MinSeconds) * time.Second; r.fresh && d < minimum {
		d = minimum
	}
	r.fresh = false
	if unit := p.Plan.Billed.unit(); unit > 0 {
		d = (d + unit - 1) / unit * unit
	}
	r.pos = r.pos.Add(d)
	return from, d
}

// spend charges d of a run from a moment on, cut where a step or a settlement ends.
func (t *tally) spend(r *run, p *Plan, from time.Time, d time.Duration, sign int64) {
	floored := p.Floor != nil && p.PerHour != nil
	if !floored && d > 0 {
		t.settle(r, sign)
	}
	for d > 0 {
		rate, left := p.stepAt(r.used)
		cut := d
		if left > 0 {
			cut = min(cut, left)
		}
		if floored {
			if end := r.open.end; r.open.floor != nil && !end.IsZero() && !from.Before(end) {
				t.settle(r, sign)
			}
			if r.open.floor == nil {
				r.open.floor = p.Floor
				if p.Settle > 0 {
					r.open.end = from.Truncate(p.Settle).Add(p.Settle)
				}
			}
			if end := r.open.end; !end.IsZero() {
				cut = min(cut, end.Sub(from))
			}
			hours := big.NewRat(int64(cut), int64(time.Hour))
			r.open.sum.Add(&r.open.sum, hours.Mul(hours, rate))
		}
		charge(&t.compute, rate, cut, sign)
		r.used, from, d = r.used+cut, from.Add(cut), d-cut
	}
}

// settle closes what is open: at least its floor is due. One that is closed while
// it could still grow has reached its floor already, so a bill never falls.
func (t *tally) settle(r *run, sign int64) {
	o := &r.open
	if o.floor == nil {
		return
	}
	if o.sum.Cmp(o.floor) < 0 {
		more := new(big.Rat).Sub(o.floor, &o.sum)
		if sign < 0 {
			more.Neg(more)
		}
		t.floors.Add(&t.floors, more)
	}
	*o = settlement{}
}

// stepAt is the price of an hour after so much of a run, and how much of it is
// left at that price; 0 is without an end.
func (p *Plan) stepAt(used time.Duration) (perHour *big.Rat, left time.Duration) {
	perHour = p.PerHour
	for _, s := range p.Steps {
		if used < s.After {
			return perHour, s.After - used
		}
		perHour = s.PerHour
	}
	return perHour, 0
}

// After is the plan as it bills once a run has lasted so long: PerHour is the
// price of the step that is reached.
func (p Plan) After(d time.Duration) Plan {
	p.PerHour, _ = p.stepAt(d)
	return p
}
