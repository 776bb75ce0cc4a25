package session

// The guard while rentop is connected: read back each minute, missed when it is gone,
// and asked once for what happened while nobody looked.

import (
	"context"
	"slices"
	"time"

	"rentop/remote"
	"rentop/remote/gpu/guard"
	"rentop/session/phrase"
)

const (
	guardEvery = time.Minute
	guardSoon  = 10 * time.Second // while it may act within
	soonIs     = 5 * time.Minute
	dayStep    = 2 * time.Minute
	daySteps   = 720 // 24 hours
)

// guardState is what a session knows of its guard.
type guardState struct {
	seen  *Guard // nil: not asked yet
	armed bool   // one was armed while we watched, or an instance told so
	err   string // why it could not be asked
	since time.Time
}

// saw takes what was read back.
func (w *guardState) saw(g Guard) {
	w.seen, w.err = &g, ""
	switch {
	case g.Armed:
		w.armed = true
	case g.Phase != "" && len(g.Problem) == 0: // off, done, or it stopped the instance
		w.armed = false
	}
}

// view is the guard at a moment: what counts down goes on between two readings.
func (w *guardState) view(now time.Time) *Guard {
	if w.seen == nil || !w.seen.Armed {
		return w.seen
	}
	g := *w.seen
	g.Rules = slices.Clone(g.Rules)
	for i := range g.Rules {
		if r := &g.Rules[i]; r.Left != nil {
			left := max(r.Due.Sub(now), 0)
			r.Left = &left
		}
	}
	g.Text = g.sentence()
	return &g
}

// soon says whether the guard may act before long.
func (g *Guard) soon() bool {
	return g.Armed && (g.Phase != string(guard.Watching) ||
		slices.ContainsFunc(g.Rules, func(r GuardRule) bool {
			return r.Left != nil && *r.Left < soonIs || r.Kind == string(guard.Reclaim) // a notice is given minutes before
		}))
}

// watchGuard reads the guard back now and each minute, more often where it may act
// soon.
func (s *Session) watchGuard(ctx context.Context, conn *remote.Conn, facts *remote.Facts) {
	first := true
	for wait := time.Duration(0); ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = guardEvery
		ask, cancel := context.WithTimeout(ctx, 30*time.Second)
		g, err := s.Guard(ask)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				s.sendQuietly(func(st *state) { st.guard.err = remote.Clean(err.Error()) })
			}
			continue
		}
		if first && g.Phase != "" {
			s.fetchHistory(ctx, conn, facts)
		}
		if first = false; g.soon() {
			wait = guardSoon
		}
	}
}

// fetchHistory fills the hours away with what the guard recorded. Where it fails, the
// gap stays a gap.
func (s *Session) fetchHistory(ctx context.Context, conn *remote.Conn, facts *remote.Facts) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	h, err := s.openGuard(ctx, conn, facts)
	if err != nil {
		return
	}
	defer h.Close()
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	near, err := guard.History(h.Link(), historySteps*historyStep, historyStep)
	if err != nil {
		return
	}
	day, err := guard.History(h.Link(), daySteps*dayStep, dayStep)
	if err != nil {
		return
	}
	now := s.f.opt.Now()
	s.sendQuietly(func(st *state) {
		st.history.fill(recorded(newHistory(historyStep, historySteps), near, now))
		st.day.fill(recorded(newHistory(dayStep, daySteps), day, now))
	})
	s.fetchUsage(ctx, h.Link())
}

func recorded(h *history, points []guard.Past, now time.Time) *history {
	for _, p := range points {
		p.Sample.TakenAt = now.Add(-p.Ago)
		h.add(&p.Sample)
	}
	return h
}

// guardAlert is the alert of a guard that is gone, cannot act or is in doubt. What was
// armed and cannot be seen any more is missed too.
func (st *state) guardAlert(now time.Time) (Alert, bool) {
	const id = "guard"
	w := &st.guard
	var text phrase.Text
	level := Urgent
	switch {
	case w.seen == nil:
	case w.seen.Reclaim != nil: // an alert of its own
	case len(w.seen.Problem) > 0:
		text = phrase.Say("alert.guard").Then(w.seen.Problem)
		if w.seen.Armed && w.seen.Phase == string(guard.Watching) {
			level = Warn
		}
	case w.seen.Armed && w.seen.Phase != string(guard.Watching): // it acts now
		text = phrase.Say("alert.guard").Then(w.seen.Text)
	case w.armed && !w.seen.Armed && w.seen.Phase == "":
		text = phrase.Say("alert.guard").Then(phrase.Say("guard.gone"))
	case w.armed && w.err != "" && st.State == Live:
		text, level = phrase.Say("alert.guard.unread", w.err), Warn
	}
	if len(text) == 0 {
		w.since = time.Time{}
		return Alert{}, false
	}
	if w.since.IsZero() {
		w.since = now
	}
	return Alert{ID: id, Level: level, Text: text, Since: w.since}, !now.Before(st.alarms.Quiet(id))
}
