package session

// What alarms said is kept in the ledger: it is there after rentop has ended, and
// for `rentop alarms`.

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"rentop/session/ledger"
	"rentop/session/phrase"
)

// alarmLog is what a session knows of its alarms beyond alarm.Watch. loop owns it.
type alarmLog struct {
	earlier []PastAlert          // that a rentop before has said, newest last
	open    map[string]time.Time // written as begun, by id: since when
}

// alarmData is the Data of ledger.Alarm: one event when it is said, one when it ends.
type alarmData struct {
	ID    string          `json:"id"`
	Level Level           `json:"level"`
	Text  []phrase.Phrase `json:"text"` // ids and arguments: read in any language
	Since time.Time       `json:"since"`
	Ended time.Time       `json:"ended,omitzero"`
}

// maxEarlier is how many alarms of before a view holds.
const maxEarlier = 100

// keepAlarms writes what is new of the watch's alarms, and puts those of before in front.
func (s *Session) keepAlarms(st *state, past []PastAlert, now time.Time) []PastAlert {
	for i := range past {
		if until := st.alarms.Quiet(past[i].ID); until.After(now) {
			past[i].Silenced = until
		}
	}
	if s.f.opt.Live && !s.f.opt.Aside {
		write := st.alarmLog.fresh(past)
		for _, d := range write {
			if d.Ended.IsZero() && !st.alarms.Quiet(d.ID).After(now) {
				s.f.raise(s.cfg().Name, d)
			}
		}
		if len(write) > 0 {
			s.owned.Go(func() { s.writeAlarms(write) })
		}
	}
	return append(slices.Clip(st.alarmLog.earlier), past...)
}

// fresh is what the ledger does not have yet.
func (l *alarmLog) fresh(past []PastAlert) (out []alarmData) {
	if l.open == nil {
		l.open = map[string]time.Time{}
	}
	seen := map[string]bool{}
	for _, p := range slices.Backward(past) { // of one id only the newest lasts
		since, open := l.open[p.ID]
		switch {
		case seen[p.ID]:
		case open && !p.Ended.IsZero():
			delete(l.open, p.ID)
			out = append(out, alarmData{p.ID, p.Level, p.Text, since, p.Ended})
		case !open && p.Ended.IsZero():
			l.open[p.ID] = p.Since
			out = append(out, alarmData{p.ID, p.Level, p.Text, p.Since, time.Time{}})
		}
		seen[p.ID] = true
	}
	return out
}

func (s *Session) writeAlarms(list []alarmData) {
	for _, d := range list {
		e := ledger.NewEvent(ledger.Alarm, s.uid, "rentop", d)
		e.At = cmp.Or(d.Ended, d.Since)
		if _, err := s.f.ledger.Append(s.ctx, e); err != nil && s.ctx.Err() == nil {
			s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.ledger.write", err))
			return
		}
	}
}

// nearly is how far apart two rentops say the begin of the same alarm.
const nearly = 15 * time.Second

// alarmsOf folds the events of one instance, oldest first. What has no end is Unseen:
// rentop ended before it.
func alarmsOf(events []ledger.Event) []PastAlert {
	var out []PastAlert
	for _, e := range events {
		var d alarmData
		if e.Kind != ledger.Alarm || json.Unmarshal(e.Data, &d) != nil || d.ID == "" {
			continue
		}
		same := func(p PastAlert) bool {
			return p.ID == d.ID && (p.Since.Sub(d.Since).Abs() < nearly || !p.Unseen && d.Since.After(p.Since) && d.Since.Before(p.Ended))
		}
		i := slices.IndexFunc(out, same)
		if i < 0 {
			i = len(out)
			out = append(out, PastAlert{Alert: Alert{ID: d.ID, Since: d.Since}, Unseen: true})
		}
		p := &out[i]
		p.Level, p.Text = d.Level, d.Text
		if d.Ended.After(p.Ended) {
			p.Ended, p.Unseen = d.Ended, false
		}
	}
	slices.SortStableFunc(out, func(a, b PastAlert) int { return a.Since.Compare(b.Since) })
	return out
}

// recall reads what was said before this rentop.
func (l *alarmLog) recall(events []ledger.Event) {
	l.earlier = alarmsOf(events)
	l.earlier = slices.Clip(l.earlier[max(0, len(l.earlier)-maxEarlier):])
}

// KeptAlarm is an alarm that the ledger has.
type KeptAlarm struct {
	Instance string
	PastAlert
}

// Alarms is what alarms have said since a moment, oldest first: of one instance, or
// of all, also those that are gone from the config. It connects to nothing.
func (f *Fleet) Alarms(ctx context.Context, instance string, since time.Time) ([]KeptAlarm, error) {
	list, err := f.ledger.Instances(ctx)
	if err != nil {
		return nil, err
	}
	if instance != "" && !slices.ContainsFunc(list, func(i ledger.Instance) bool { return i.Name == instance }) {
		_, err := f.Session(instance)
		return nil, err
	}
	names := map[string]string{}
	for _, i := range list {
		names[i.UID] = i.Name
	}
	events, err := f.ledger.Events(ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.Alarm}})
	if err != nil {
		return nil, err
	}
	by := map[string][]ledger.Event{}
	for _, e := range events {
		by[e.Instance] = append(by[e.Instance], e)
	}
	var out []KeptAlarm
	for uid, events := range by {
		for _, p := range alarmsOf(events) {
			if (instance == "" || names[uid] == instance) && !cmp.Or(p.Ended, p.Since).Before(since) {
				out = append(out, KeptAlarm{names[uid], p})
			}
		}
	}
	slices.SortFunc(out, func(a, b KeptAlarm) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}
