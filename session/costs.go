package session

import (
	"context"
	"time"

	"rentop/session/ledger"
)

// CostReport is what was spent since a moment, from the ledger: also for
// instances that are gone from the config.
type CostReport struct {
	Since time.Time
	Until time.Time
	Rows  []ledger.Row // one an instance and day, and one a job
	Rest  []ledger.Row // ledger.Jobless: with the jobs they add up to Total
	Total Sums
}

// Costs folds the whole ledger. The person's days are local.
func (f *Fleet) Costs(ctx context.Context, since time.Time) (*CostReport, error) {
	now := f.opt.Now()
	rows, err := f.ledger.Costs(ctx, since, now, time.Local)
	if err != nil {
		return nil, err
	}
	rest, err := f.ledger.Jobless(ctx, rows)
	if err != nil {
		return nil, err
	}
	r := &CostReport{Since: since, Until: now, Rows: rows, Rest: rest}
	var sum summer
	for _, row := range rows {
		if row.Kind != ledger.RowJob { // a job's cost is part of its instance's
			sum.add(row.Amount, true)
		}
	}
	f.mu.Lock()
	ex := f.exchange
	f.mu.Unlock()
	r.Total = sum.sums(ex, now)
	return r, nil
}
