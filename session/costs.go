package session

import (
	"context"
	"time"

	"rentop/session/billing"
	"rentop/session/ledger"
	"rentop/session/phrase"
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
	if err := f.tellUnlisted(ctx, rows, now); err != nil {
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

// tellUnlisted says so on the last day of each instance whose section was deleted
// from the config by hand: nobody said that it ended, so it goes on counting.
func (f *Fleet) tellUnlisted(ctx context.Context, rows []ledger.Row, now time.Time) error {
	f.mu.Lock()
	faulty, listed := f.cfgErr != "", map[string]bool{}
	for _, s := range f.sessions {
		listed[s.uid] = true
	}
	f.mu.Unlock()
	if faulty { // nothing is listed
		return nil
	}
	instances, err := f.ledger.Instances(ctx)
	if err != nil {
		return err
	}
	last := map[string]*ledger.Row{}
	for i := range rows {
		if rows[i].Kind == ledger.RowDay {
			last[rows[i].UID] = &rows[i]
		}
	}
	for _, i := range instances {
		row := last[i.UID]
		if row == nil || listed[i.UID] || !i.Removed.IsZero() {
			continue
		}
		events, err := f.ledger.Events(ctx, ledger.Filter{Instance: i.UID, Kinds: ledger.MeterKinds})
		if err != nil {
			return err
		}
		t := ledger.Fold(events, now)
		if t.State != billing.Running && t.State != billing.Stopped && t.State != billing.Hibernated {
			continue
		}
		row.Note = phrase.Say("note.forgotten."+phrase.ID(t.State),
			t.LastObserved.Local().Format("2006-01-02 15:04"), i.Name)
	}
	return nil
}
