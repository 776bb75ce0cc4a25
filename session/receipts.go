package session

import (
	"context"
	"encoding/json"
	"time"

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

// Receipts are what the instance's jobs have used, by the job's id. It asks nothing
// of the instance.
func (s *Session) Receipts(ctx context.Context) (map[string]Receipt, error) {
	rec, err := s.usageRecord(ctx)
	if err != nil {
		return nil, err
	}
	for _, seg := range s.usage.peek() {
		rec.segments[seg.Job] = append(rec.segments[seg.Job], seg)
	}
	out := make(map[string]Receipt, len(rec.jobs))
	for _, j := range rec.jobs {
		out[j.JobID] = Receipt{Receipt: usage.Merge(rec.segments[j.JobID], j.From, j.To), Cost: j.Amount, AtLeast: j.AtLeast, Running: j.Open}
	}
	return out, nil
}

// refreshReceipts brings them into the view.
func (s *Session) refreshReceipts(ctx context.Context) {
	got, err := s.Receipts(ctx)
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
