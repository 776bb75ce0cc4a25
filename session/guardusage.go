package session

// What the GPUs did while nobody was connected, from a guard's record: it fills the
// receipts of jobs, and what is known of the instance's use.

import (
	"context"
	"time"

	agentlink "rentop/remote/agent/link"
	"rentop/remote/gpu/guard"
	"rentop/remote/gpu/sample"
	"rentop/session/usage"
)

const (
	guardKeeps = 24 * time.Hour
	guardStep  = 10 * time.Second // of its record over that time
	guardSlack = guardStep
)

// fetchUsage asks for the hours that nobody watched, and only for those: on a slow link a
// day of them takes a while. Where it fails they stay unwatched.
func (s *Session) fetchUsage(ctx context.Context, l agentlink.Link) {
	s.keepUsage(ctx) // what was watched since this connection began is not asked for
	rec, err := s.usageRecord(ctx)
	if err != nil {
		return
	}
	now := s.f.opt.Now()
	from := now.Add(-guardKeeps)
	if begin := rec.timeline.Begin(); begin.After(from) {
		from = begin
	}
	gaps := usage.Gaps(rec.segments[""], from, now, shortestGap)
	if len(gaps) == 0 {
		return
	}
	from = gaps[0][0]
	points, err := guard.History(l, now.Sub(from)+guardSlack, guardStep)
	if err != nil || len(points) == 0 {
		return
	}
	_ = s.MergeUsage(ctx, pastOf(points, now), from, now) // what is not written is asked for again
}

// guardPast is a guard's record by our clock.
type guardPast []*sample.Sample

func pastOf(points []guard.Past, now time.Time) guardPast {
	out := make(guardPast, 0, len(points))
	for i := range points {
		p := &points[i].Sample
		p.TakenAt = now.Add(-points[i].Ago)
		out = append(out, p)
	}
	return out
}

func (g guardPast) Samples(_ context.Context, from, to time.Time, each func(*sample.Sample)) error {
	for _, s := range g {
		if !s.TakenAt.Before(from) && s.TakenAt.Before(to) {
			each(s)
		}
	}
	return nil
}
