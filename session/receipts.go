package session

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/ledger"
	"rentop/session/usage"
)

// Receipt is what a job has used and cost, or is using until now.
type Receipt struct {
	usage.Receipt
	Cost    *billing.Amount // of the whole instance while the job ran; nil: not known
	AtLeast *billing.Amount // the known part
	Running bool            // To is now
}

// PerBusyHour is what an hour of one GPU at work cost; nil where it is not known or
// nothing was done.
func (r Receipt) PerBusyHour() *billing.Amount {
	if r.Partial || r.Cost == nil || r.Busy == nil || *r.Busy < 1.0/3600 {
		return nil
	}
	v := r.Cost.Per(*r.Busy)
	return &v
}

// usageRecord is what the ledger has of an instance's use.
type usageRecord struct {
	segments map[string][]usage.Segment // by job; "" is the instance
	jobs     []ledger.Row               // as ledger.JobRows gives them
	timeline ledger.Timeline
}

func (s *Session) usageRecord(ctx context.Context) (*usageRecord, error) {
	return s.f.usageRecord(ctx, s.uid)
}

func (f *Fleet) usageRecord(ctx context.Context, uid string) (*usageRecord, error) {
	events, err := f.ledger.Events(ctx, ledger.Filter{Instance: uid, Kinds: append([]ledger.Kind{ledger.JobStarted, ledger.JobEnded, ledger.Used}, ledger.MeterKinds...)})
	if err != nil {
		return nil, err
	}
	now := f.opt.Now()
	rec := &usageRecord{segments: segmentsOf(events), timeline: ledger.Fold(events, now)}
	rec.jobs, err = ledger.JobRows(events, rec.timeline, now)
	return rec, err
}

// segmentsOf reads what was watched, by job.
func segmentsOf(events []ledger.Event) map[string][]usage.Segment {
	out := map[string][]usage.Segment{}
	for _, e := range events {
		var seg usage.Segment
		if e.Kind == ledger.Used && json.Unmarshal(e.Data, &seg) == nil {
			out[seg.Job] = append(out[seg.Job], seg)
		}
	}
	return out
}

// Receipts are what those jobs have used, by the job's id. It asks nothing of the
// instance. Their own times count: an end may not be in the ledger yet.
func (s *Session) Receipts(ctx context.Context, jobs []tmux.Job) (map[string]Receipt, error) {
	rec, err := s.usageRecord(ctx)
	if err != nil {
		return nil, err
	}
	for _, seg := range s.usage.peek() {
		rec.segments[seg.Job] = append(rec.segments[seg.Job], seg)
	}
	noted := map[string]ledger.Row{}
	for _, j := range rec.jobs {
		noted[j.JobID] = j
	}
	out := make(map[string]Receipt, len(jobs))
	for _, j := range jobs {
		row := noted[j.ID]
		row.From = j.StartedAt
		switch {
		case !j.EndedAt.IsZero():
			row.To = j.EndedAt
		case j.State == tmux.Running:
			row.To, row.Open = s.f.opt.Now(), true
		}
		if row.From.IsZero() || row.To.Before(row.From) {
			continue // lost, and nobody knows when
		}
		r := Receipt{Receipt: usage.Merge(rec.segments[j.ID], row.From, row.To), Running: j.State == tmux.Running}
		if bill, err := rec.timeline.Between(row.From, row.To); err == nil && bill.Known != nil {
			r.Cost, r.AtLeast = bill.Total, bill.Known
		}
		out[j.ID] = r
	}
	return out, nil
}

// refreshReceipts brings them into the view.
func (s *Session) refreshReceipts(ctx context.Context) {
	var jobs []tmux.Job
	if !s.sendWait(func(st *state) { jobs = slices.Clone(st.jobs) }) {
		return
	}
	got, err := s.Receipts(ctx, jobs)
	if err != nil {
		return // told where it is written to
	}
	s.sendQuietly(func(st *state) { st.receipts = got })
}

// Energy in kWh; nil where it is not known.
func (r Receipt) KWh() *float64 {
	if r.Energy == nil {
		return nil
	}
	v := *r.Energy / 3.6e6
	return &v
}

// Took is how long the job ran.
func (r Receipt) Took() time.Duration { return r.To.Sub(r.From) }
