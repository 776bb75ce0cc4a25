package session

import (
	"context"
	"slices"
	stdsync "sync"
	"time"

	"rentop/remote/gpu"
	"rentop/remote/gpu/sample"
	"rentop/remote/tmux"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/session/usage"
)

// usageKeeper adds up what the GPUs do while a session watches: for the instance, and
// for each job that runs. A job's beginning and end are heard of some seconds late, so
// the newest samples are kept and given to a job only when it is known whose they are.
type usageKeeper struct {
	mu     stdsync.Mutex // protects what follows; never held over I/O
	all    usage.Meter
	jobs   map[string]*jobUsage
	recent []*gpu.Sample // of the last lateness
	kept   time.Time     // when segments were last written
}

// jobUsage is one job that runs.
type jobUsage struct {
	meter usage.Meter
	begun time.Time
}

const (
	// lateness is how long after it a job's beginning or end may be heard of.
	lateness = 45 * time.Second
	// keepEvery is how much of a watch a killed rentop loses.
	keepEvery = 20 * time.Minute
)

// add takes in the newest sample.
func (k *usageKeeper) add(s *gpu.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.Add(s)
	if n := len(k.recent); n > 0 && !s.TakenAt.After(k.recent[n-1].TakenAt) {
		k.recent = nil // a clock was set back
	}
	k.recent = append(k.recent, s)
	settled := s.TakenAt.Add(-lateness)
	for _, j := range k.jobs {
		k.feed(j, settled)
	}
	n := 0
	for n < len(k.recent)-1 && k.recent[n+1].TakenAt.Before(settled) {
		n++
	}
	k.recent = slices.Delete(k.recent, 0, n)
}

// feed gives a job the samples that are its own, up to a moment.
func (k *usageKeeper) feed(j *jobUsage, until time.Time) {
	for _, s := range k.recent {
		if at := s.TakenAt; !at.Before(j.begun) && !at.After(until) && at.After(j.meter.Last()) {
			j.meter.Add(s)
		}
	}
}

// follow learns which jobs run. What has ended is closed by end.
func (k *usageKeeper) follow(jobs []tmux.Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range jobs {
		if j.State != tmux.Running || k.jobs[j.ID] != nil {
			continue
		}
		if k.jobs == nil {
			k.jobs = map[string]*jobUsage{}
		}
		k.jobs[j.ID] = &jobUsage{begun: j.StartedAt}
	}
}

// end closes a job's account.
func (k *usageKeeper) end(j tmux.Job) (usage.Segment, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	u := k.jobs[j.ID]
	if u == nil {
		return usage.Segment{}, false
	}
	delete(k.jobs, j.ID)
	until := j.EndedAt
	if until.IsZero() && len(k.recent) > 0 {
		until = k.recent[len(k.recent)-1].TakenAt
	}
	k.feed(u, until)
	return named(u.meter.Cut())(j.ID)
}

func named(s usage.Segment, ok bool) func(job string) (usage.Segment, bool) {
	return func(job string) (usage.Segment, bool) { s.Job = job; return s, ok }
}

// due says whether segments are to be written.
func (k *usageKeeper) due(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept.IsZero() {
		k.kept = now
	}
	return now.Sub(k.kept).Abs() >= keepEvery
}

// cut ends all segments; the jobs go on. last says that nobody watches any more: then the
// newest samples are given to whom they seem to belong.
func (k *usageKeeper) cut(now time.Time, last bool) (out []usage.Segment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = now
	if n := len(k.recent); last && n > 0 {
		for _, j := range k.jobs {
			k.feed(j, k.recent[n-1].TakenAt)
		}
		k.recent = nil
	}
	if s, ok := k.all.Cut(); ok {
		out = append(out, s)
	}
	for id, j := range k.jobs {
		if s, ok := named(j.meter.Cut())(id); ok {
			out = append(out, s)
		}
	}
	return out
}

// peek is what was watched of the jobs and is not written yet. They run, as far as is
// known, so the newest samples are theirs.
func (k *usageKeeper) peek() (out []usage.Segment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, j := range k.jobs {
		now := &jobUsage{meter: *j.meter.Clone(), begun: j.begun}
		if n := len(k.recent); n > 0 {
			k.feed(now, k.recent[n-1].TakenAt)
		}
		if s, ok := named(now.meter.Peek())(id); ok {
			out = append(out, s)
		}
	}
	return out
}

// keepUsage writes down what was watched until now. It must be written also where the
// session ends just now.
func (s *Session) keepUsage(ctx context.Context) {
	s.writeUsage(ctx, s.usage.cut(s.f.opt.Now(), false))
}

// endUsage is keepUsage where the connection has ended.
func (s *Session) endUsage(ctx context.Context) {
	s.writeUsage(ctx, s.usage.cut(s.f.opt.Now(), true))
}

// followStep is the time between two samples for a command that follows a job.
const followStep = 5 * time.Second

// Watched runs f, and has a look at the GPUs each few seconds meanwhile: a job that a
// command follows has a receipt, too. A session on the screen watches anyway.
func (s *Session) Watched(ctx context.Context, f func(context.Context) error) error {
	if s.f.opt.Live {
		return f(ctx)
	}
	watch, cancel := context.WithCancel(ctx)
	var wg stdsync.WaitGroup
	wg.Go(func() {
		for watch.Err() == nil {
			conn, facts, err := s.connected(watch)
			if err != nil || facts == nil || len(facts.GPUs) == 0 {
				return
			}
			_ = gpu.Stream(watch, conn, facts, gpu.Options{Clock: s.f.opt.Now, Interval: followStep}, func(sm gpu.Sample) { s.usage.add(&sm) })
			select { // its end is no news: the job is what counts
			case <-time.After(followStep):
			case <-watch.Done():
			}
		}
	})
	err := f(ctx)
	cancel()
	wg.Wait()
	return err
}

// keepJobUsage writes down what was watched of a job that has ended.
func (s *Session) keepJobUsage(j tmux.Job) {
	if seg, ok := s.usage.end(j); ok {
		s.writeUsage(s.ctx, []usage.Segment{seg})
	}
}

func (s *Session) writeUsage(ctx context.Context, segments []usage.Segment) {
	var events []ledger.Event
	for _, seg := range segments {
		e := ledger.NewEvent(ledger.Used, s.uid, "ssh", seg)
		e.At = seg.To
		events = append(events, e)
	}
	if len(events) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := s.f.ledger.Append(ctx, events...); err != nil {
		s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.ledger.write", err))
	}
}

// PastSamples is a record of samples that was kept while nobody was connected: a
// guard's ring. each is called for the samples in [from, to), oldest first.
type PastSamples interface {
	Samples(ctx context.Context, from, to time.Time, each func(*sample.Sample)) error
}

// shortestGap is the least time that is worth asking a guard about.
const shortestGap = time.Minute

// MergeUsage fills what nobody watched of [from, to) from a record that was kept there,
// for the instance and for its jobs.
func (s *Session) MergeUsage(ctx context.Context, past PastSamples, from, to time.Time) error {
	rec, err := s.usageRecord(ctx)
	if err != nil {
		return err
	}
	var out []usage.Segment
	fill := func(job string, from, to time.Time) error {
		for _, gap := range usage.Gaps(rec.segments[job], from, to, shortestGap) {
			var m usage.Meter
			if err := past.Samples(ctx, gap[0], gap[1], m.Add); err != nil {
				return err
			}
			if seg, ok := named(m.Cut())(job); ok {
				out = append(out, seg)
			}
		}
		return nil
	}
	if err := fill("", from, to); err != nil {
		return err
	}
	for _, j := range rec.jobs {
		begin, end := j.From, j.To
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if err := fill(j.JobID, begin, end); err != nil {
			return err
		}
	}
	s.writeUsage(ctx, out)
	s.refreshReceipts(ctx)
	return nil
}
