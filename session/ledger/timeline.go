package ledger

import (
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

// Timeline is what an instance's events say about its time: the meter.
type Timeline struct {
	Intervals        []billing.Interval // adjacent, oldest first; the last has no end
	Notes            []phrase.Text      // what is assumed, for the person
	LastObserved     time.Time          // when the state was last seen; zero: never
	UnconfirmedSince time.Time          // zero where it was seen lately: else the last interval is assumed to go on since then
	State            billing.State      // now; Unknown where never seen
	Since            time.Time          // when the present state began; zero: never seen
	Plan             billing.Plan       // in force now
}

// Bill is the cost until at.
func (t Timeline) Bill(at time.Time) (billing.Bill, error) {
	return billing.Cost(t.Intervals, at)
}

// Between is the part of the cost that arose in [from, to): today, a job.
func (t Timeline) Between(from, to time.Time) (billing.Bill, error) {
	return billing.Between(t.Intervals, from, to)
}

// PerHour is what an hour costs from at on; nil where it is not known.
func (t Timeline) PerHour(at time.Time) *billing.Amount {
	return billing.BurnAt(t.Plan.After(at.Sub(t.Since)), t.State, at)
}

// Begin is when the first known interval began, zero where there is none.
func (t Timeline) Begin() time.Time {
	if len(t.Intervals) == 0 {
		return time.Time{}
	}
	return t.Intervals[0].From
}
