package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

// Kinds of a Row.
const (
	RowDay = "day" // an instance on one day
	RowJob = "job" // a job, a part of its instance's days: never add both
)

// Row is one line of the cost report.
type Row struct {
	Instance string // its name, the last one
	UID      string
	Kind     string          // RowDay or RowJob
	Day      time.Time       // its midnight where the person is; of a job the day it began
	Job      string          // RowJob: its name
	JobID    string          // RowJob: its id, which is unique
	From, To time.Time       // what the row covers
	Amount   *billing.Amount // nil: not known
	AtLeast  *billing.Amount // the known part, never nil
	Parts    billing.Bill    // Amount by kind
	Open     bool            // RowJob: its end was not seen; To is the end of what was asked for
	Note     phrase.Text     // what is not known, or is assumed
}

// MeterKinds are the kinds that Fold reads.
var MeterKinds = []Kind{Observed, FirstSeen, PlanSet, Removed}

// Costs lists what every instance cost in [since, until), by days of the zone and
// by jobs, also of those that left the config. A zero since is the beginning.
// Days are as long as the zone makes them: 23 or 25 hours where clocks change.
func (l *Ledger) Costs(ctx context.Context, since, until time.Time, zone *time.Location) ([]Row, error) {
	instances, err := l.Instances(ctx)
	if err != nil {
		return nil, err
	}
	events, err := l.Events(ctx, Filter{Kinds: append(slices.Clone(MeterKinds), JobStarted, JobEnded)})
	if err != nil {
		return nil, err
	}
	byUID := map[string][]Event{}
	for _, e := range events {
		byUID[e.Instance] = append(byUID[e.Instance], e)
	}
	var rows []Row
	for _, i := range instances {
		t := Fold(byUID[i.UID], l.clock().In(zone))
		of := Row{Instance: i.Name, UID: i.UID}
		days, err := dayRows(of, t, since, until, zone)
		if err != nil {
			return nil, fmt.Errorf("the costs of %s: %w", i.Name, err)
		}
		jobs, err := jobRows(of, t, byUID[i.UID], since, until, zone)
		if err != nil {
			return nil, fmt.Errorf("the costs of %s: %w", i.Name, err)
		}
		rows = append(append(rows, days...), jobs...)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.Day.Compare(b.Day), strings.Compare(a.Instance, b.Instance)) })
	return rows, nil
}

// midnight is the first moment of a day in a zone; add moves it by days. Where
// clocks skip midnight the day begins later, at what they show then.
func midnight(t time.Time, zone *time.Location, add int) time.Time {
	y, m, d := t.In(zone).Date()
	noon := time.Date(y, m, d+add, 12, 0, 0, 0, zone)
	first := time.Date(y, m, d+add, 0, 0, 0, 0, zone)
	for first.Day() != noon.Day() {
		first = first.Add(15 * time.Minute)
	}
	return first
}

// dayRows gives a row for each day on which the instance existed or cost something.
func dayRows(of Row, t Timeline, since, until time.Time, zone *time.Location) ([]Row, error) {
	begin := t.Begin()
	for _, i := range t.Intervals { // what was paid in advance may come before it
		if p := i.Plan.Prepaid; p != nil && p.From.Before(begin) {
			begin = p.From
		}
	}
	if begin.IsZero() {
		return nil, nil
	}
	var rows []Row
	for from := latest(begin, since); from.Before(until); {
		day := midnight(from, zone, 0)
		to := midnight(from, zone, 1)
		if to.After(until) {
			to = until
		}
		r := of
		r.Kind, r.Day, r.From, r.To = RowDay, day, from, to
		if err := r.fill(t); err != nil {
			return nil, err
		}
		if r.Amount == nil || r.Amount.Sign() != 0 || exists(t, from, to) {
			rows = append(rows, r)
		}
		from = to
	}
	if n := len(rows); n > 0 && len(t.Notes) > 0 {
		rows[n-1].Note = join(rows[n-1].Note, t.Notes[len(t.Notes)-1])
	}
	return rows, nil
}

// exists says whether the instance was there at any time in [from, to).
func exists(t Timeline, from, to time.Time) bool {
	return slices.ContainsFunc(t.Intervals, func(i billing.Interval) bool {
		return i.State != billing.Gone && i.From.Before(to) && (i.To.IsZero() || i.To.After(from))
	})
}

// fill bills the row's stretch of time.
func (r *Row) fill(t Timeline) error {
	bill, err := t.Between(r.From, r.To)
	if err != nil {
		return err
	}
	r.Parts, r.Amount, r.AtLeast = bill, bill.Total, bill.Known
	if len(bill.Missing) > 0 {
		var names []phrase.Text
		for _, m := range bill.Missing {
			names = append(names, phrase.Word("missing.", m))
		}
		r.Note = phrase.Say("note.unknown").Then(phrase.List(names...))
	}
	return nil
}

func join(a, b phrase.Text) phrase.Text {
	if len(a) == 0 || len(b) == 0 {
		return a.Then(b)
	}
	return a.Then(phrase.Say("note.and"), b)
}

// jobData is what a row needs of a tmux.Job.
type jobData struct {
	ID, Name  string
	StartedAt time.Time
}

// jobRows gives a row for each job, by the times of its events; one that goes on
// counts until now.
func jobRows(of Row, t Timeline, events []Event, since, until time.Time, zone *time.Location) ([]Row, error) {
	var rows []Row
	byID := map[string]int{}
	var ended []bool
	for _, e := range events {
		if e.Kind != JobStarted && e.Kind != JobEnded {
			continue
		}
		var j jobData
		if json.Unmarshal(e.Data, &j) != nil || j.ID == "" {
			continue // a newer rentop's
		}
		n, known := byID[j.ID]
		if !known {
			r := of
			r.Kind, r.Job, r.JobID, r.From, r.To = RowJob, cmp.Or(j.Name, j.ID), j.ID, e.At, until
			if e.Kind == JobEnded && !j.StartedAt.IsZero() {
				r.From = j.StartedAt // its start was told nowhere else
			}
			n = len(rows)
			byID[j.ID], rows, ended = n, append(rows, r), append(ended, false)
		}
		if e.Kind == JobEnded && !ended[n] {
			rows[n].To, ended[n] = latest(e.At, rows[n].From), true
		}
	}
	kept := rows[:0]
	for n, r := range rows {
		if r.To.After(until) {
			r.To = until
		}
		if r.From = latest(r.From, since); !r.From.Before(r.To) {
			continue
		}
		r.Day = midnight(r.From, zone, 0)
		if err := r.fill(t); err != nil {
			return nil, err
		}
		if r.Open = !ended[n]; r.Open {
			r.Note = join(r.Note, phrase.Say("note.open"))
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// JobRows are the jobs among one instance's events, each until its end or until now.
func JobRows(events []Event, t Timeline, now time.Time) ([]Row, error) {
	return jobRows(Row{}, t, events, time.Time{}, now, time.UTC)
}
