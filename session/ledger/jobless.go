package ledger

// What instances cost while no job ran: the rest of a bill by jobs.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

// Kinds of a Row that Jobless makes.
const (
	RowRest  = "no job"  // an instance while none of its jobs ran
	RowTwice = "at once" // what jobs that ran at once are each charged: negative, so that a list by jobs adds up
)

// Jobless completes the jobs among the rows of Costs: for each instance what it
// cost while no job ran, so that these and the jobs add up to its days. Where
// something is not known, Amount is nil.
func (l *Ledger) Jobless(ctx context.Context, rows []Row) ([]Row, error) {
	var uids []string
	days, jobs := map[string][]Row{}, map[string][]Row{}
	for _, r := range rows {
		if r.Kind == RowJob {
			jobs[r.UID] = append(jobs[r.UID], r)
			continue
		}
		if days[r.UID] == nil {
			uids = append(uids, r.UID)
		}
		days[r.UID] = append(days[r.UID], r)
	}
	var out []Row
	for _, uid := range uids {
		events, err := l.Events(ctx, Filter{Instance: uid, Kinds: MeterKinds})
		if err != nil {
			return nil, err
		}
		rest, twice := emptyRow(RowRest, days[uid]), emptyRow(RowTwice, days[uid])
		t := Fold(events, l.clock())
		err = rest.with(billing.Amount.Add, days[uid])
		busy := merged(jobs[uid])
		for n := range busy {
			err = errors.Join(err, busy[n].fill(t))
		}
		err = errors.Join(err, rest.with(billing.Amount.Sub, busy), twice.with(billing.Amount.Add, busy), twice.with(billing.Amount.Sub, jobs[uid]))
		if err != nil {
			return nil, fmt.Errorf("the costs of %s: %w", rest.Instance, err)
		}
		rest.Note, twice.Note = join(phrase.Say("note.rest"), rest.Note), join(phrase.Say("note.twice"), twice.Note)
		if out = append(out, rest); len(busy) < len(jobs[uid]) && twice.AtLeast.Sign() != 0 {
			out = append(out, twice)
		}
	}
	return out, nil
}

// emptyRow is a row of no cost over the time of others.
func emptyRow(kind string, over []Row) Row {
	first, last := over[0], over[len(over)-1]
	return Row{Instance: last.Instance, UID: last.UID, Kind: kind, Day: first.Day, From: first.From, To: last.To,
		Amount: &billing.Amount{}, AtLeast: &billing.Amount{}}
}

// with adds or takes away the rows' amounts; what is not known stays so.
func (r *Row) with(op func(a, b billing.Amount) (billing.Amount, error), rows []Row) error {
	for _, x := range rows {
		known, err := op(*r.AtLeast, *x.AtLeast)
		if err != nil {
			return err
		}
		r.AtLeast = &known
		if len(x.Note) > 0 && len(r.Note) == 0 && x.Amount == nil {
			r.Note = x.Note
		}
		if r.Amount == nil || x.Amount == nil {
			r.Amount = nil
			continue
		}
		sum, err := op(*r.Amount, *x.Amount)
		if err != nil {
			return err
		}
		r.Amount = &sum
	}
	return nil
}

// merged are the stretches of time in which at least one of the rows lies.
func merged(rows []Row) []Row {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return a.From.Compare(b.From) })
	var out []Row
	var end time.Time
	for _, r := range rows {
		if n := len(out); n > 0 && !r.From.After(end) {
			end = latest(end, r.To)
			out[n-1].To = end
			continue
		}
		end = r.To
		out = append(out, Row{From: r.From, To: r.To})
	}
	return out
}
