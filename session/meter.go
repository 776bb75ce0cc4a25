package session

import (
	"bytes"
	"encoding/json"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/ledger"
	"rentop/session/phrase"
)

// readLedger folds what is known about the instance into its timeline.
func (s *Session) readLedger(st *state) {
	st.ended = map[string]bool{}
	events, err := s.f.ledger.Events(s.ctx, ledger.Filter{Instance: s.uid, Kinds: append([]ledger.Kind{ledger.JobEnded, ledger.Alarm, ledger.Silenced}, ledger.MeterKinds...)})
	if err != nil {
		if s.ctx.Err() == nil {
			s.f.notice(s.cfg().Name, Urgent, phrase.Say("notice.ledger.read", err))
		}
		return
	}
	for _, e := range events {
		if e.Kind != ledger.JobEnded {
			continue
		}
		var j tmux.Job
		if json.Unmarshal(e.Data, &j) == nil {
			st.ended[j.ID] = true
		}
	}
	st.alarmLog.recall(events)
	for id, until := range silencesOf(events, s.f.opt.Now()) {
		st.alarms.Silence(id, until)
	}
	st.timeline = ledger.Fold(events, s.f.opt.Now())
	st.urgent = true
}

// record appends an event and folds the timeline anew.
func (s *Session) record(kind ledger.Kind, at time.Time, source string, data any) {
	e := ledger.NewEvent(kind, s.uid, source, data)
	e.At = at
	if _, err := s.f.ledger.Append(s.ctx, e); err != nil && s.ctx.Err() == nil {
		s.f.notice(s.cfg().Name, Urgent, phrase.Say("notice.ledger.meter", err))
		return
	}
	s.refold()
}

func (s *Session) refold() {
	events, err := s.f.ledger.Events(s.ctx, ledger.Filter{Instance: s.uid, Kinds: ledger.MeterKinds})
	if err != nil {
		return
	}
	tl := ledger.Fold(events, s.f.opt.Now())
	s.send(func(st *state) { st.timeline = tl })
}

// firstContact writes what a connection proves: the instance runs, since when,
// and (once) what its clock said when rentop first saw it.
func (s *Session) firstContact(facts *remote.Facts) {
	seen, err := s.f.ledger.Events(s.ctx, ledger.Filter{Instance: s.uid, Kinds: []ledger.Kind{ledger.FirstSeen}})
	if err == nil && len(seen) == 0 {
		s.record(ledger.FirstSeen, s.f.opt.Now(), "ssh", ledger.FirstSeenData{
			InstanceClock: facts.Clock, BoxStartedAt: facts.BoxStart, Box: facts.Box,
		})
	}
	s.recordHardware(facts)
	if s.prov() != nil {
		s.hearProvider()
	}
	s.observeRunning(facts)
}

// recordHardware writes which GPUs there are, where that is new.
func (s *Session) recordHardware(facts *remote.Facts) {
	if len(facts.GPUs) == 0 {
		return
	}
	e := ledger.NewEvent(ledger.Hardware, s.uid, "ssh", ledger.HardwareData{GPUs: facts.GPUs})
	seen, err := s.f.ledger.Events(s.ctx, ledger.Filter{Instance: s.uid, Kinds: []ledger.Kind{ledger.Hardware}})
	if err != nil || len(seen) > 0 && bytes.Equal(seen[len(seen)-1].Data, e.Data) {
		return
	}
	if _, err := s.f.ledger.Append(s.ctx, e); err != nil && s.ctx.Err() == nil {
		s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.ledger.write", err))
	}
}

// providerWait is how long a new connection waits for the provider's word.
const providerWait = 3 * time.Second

// hearProvider asks the provider, whose word is worth a moment; one that hangs
// holds no connection up.
func (s *Session) hearProvider() {
	heard := make(chan struct{})
	s.owned.Go(func() {
		defer close(heard)
		if got, err := s.askProvider(s.ctx); err == nil {
			s.observeProvider(got)
		}
	})
	select {
	case <-heard:
	case <-time.After(providerWait):
	case <-s.ctx.Done():
	}
}

// observeRunning says in the ledger that the instance runs. The start is told by
// the instance's clock, so it is moved to ours; a provider that tells the start
// knows it better than PID 1.
func (s *Session) observeRunning(facts *remote.Facts) {
	o := ledger.Observation{State: string(billing.Running), Box: facts.Box,
		StartedAt: ledger.StartedAt(facts.BoxStart, facts.Clock, facts.At)}
	if !s.sendWait(func(st *state) {
		if !st.provider.StartedAt.IsZero() {
			o.StartedAt = time.Time{}
		}
	}) {
		return
	}
	s.record(ledger.Observed, s.f.opt.Now(), "ssh", o)
}

// hibernated is a provider's own word for stopped with nothing but the disk and
// the address billed (Hyperstack's).
const hibernated = "HIBERNATED"

// observeProvider writes the provider's word.
func (s *Session) observeProvider(p provider.Status) {
	o := ledger.Observation{State: string(billing.Unknown), StartedAt: p.StartedAt, Why: p.Detail}
	switch p.State {
	case provider.Running:
		o.State = string(billing.Running)
	case provider.Stopped:
		o.State = string(billing.Stopped)
		if p.Detail == hibernated {
			o.State = string(billing.Hibernated)
		}
	case provider.Gone:
		o.State = string(billing.Gone)
	default:
		return // changing or not understood: nothing to bill by
	}
	s.record(ledger.Observed, s.f.opt.Now(), "provider", o)
}

// meter is what the timeline costs at now.
func (s *Session) meter(st *state, now time.Time) Meter {
	var m Meter
	if len(st.timeline.Notes) > 0 {
		m.Note = st.timeline.Notes[len(st.timeline.Notes)-1]
	}
	m.Since = st.timeline.Begin()
	m.Running = billing.BurnAt(s.plan(), billing.Running, now)
	budget := s.budget()
	m.Budget = budget
	if len(st.timeline.Intervals) == 0 {
		m.Missing = []string{"when it started"}
		return m
	}
	bill, err := st.timeline.Bill(now)
	if err != nil {
		m.Missing = []string{err.Error()}
		return m
	}
	m.Cost, m.Missing = bill.Total, bill.Missing
	if m.Cost == nil {
		m.AtLeast = bill.Known
	}
	day := midnight(now)
	if today, err := st.timeline.Between(day, now); err == nil {
		m.Today = today.Total
	}
	m.PerHour = st.timeline.PerHour(now)
	if all, err := st.timeline.Between(day, day.AddDate(0, 0, 1)); err == nil {
		m.ByMidnight = all.Total
	}
	if budget != nil && m.Cost != nil {
		if left, err := budget.Sub(*m.Cost); err == nil {
			m.BudgetLeft = &left
		}
	}
	return m
}

func (s *Session) budget() *billing.Amount {
	if s.cfg().Budget == "" {
		return nil
	}
	v, err := billing.ParseDecimal(s.cfg().Budget)
	if err != nil {
		return nil // refused when the config was read
	}
	return &billing.Amount{Value: v, Currency: s.plan().Currency}
}

// midnight is the last one where the person is.
func midnight(t time.Time) time.Time {
	l := t.Local()
	return time.Date(l.Year(), l.Month(), l.Day(), 0, 0, 0, 0, time.Local)
}
