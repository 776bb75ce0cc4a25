package session

// Silences of alarms are kept in the ledger with their end: an alarm that a person has
// silenced does not ring again because rentop was started anew.

import (
	"context"
	"encoding/json"
	"time"

	"rentop/session/ledger"
	"rentop/session/phrase"
)

// silenceData is the Data of ledger.Silenced. The newest of an id counts.
type silenceData struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until"` // not after Event.At: it is said again
}

// silenceWithin is how long writing one may take while rentop ends.
const silenceWithin = 2 * time.Second

// Keep silences an alert of an instance for a while; 0 lets it be said again.
func (s *Session) Keep(id string, d time.Duration) {
	now := s.f.opt.Now()
	until := now.Add(d)
	e := ledger.NewEvent(ledger.Silenced, s.uid, "user", silenceData{id, until.UTC()})
	e.At = now
	s.send(func(st *state) {
		st.alarms.Silence(id, until)
		s.owned.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), silenceWithin)
			defer cancel()
			if _, err := s.f.ledger.Append(ctx, e); err != nil {
				s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.ledger.write", err))
			}
		})
	})
}

// silencesOf are the ends that lie ahead, by alarm.
func silencesOf(events []ledger.Event, now time.Time) map[string]time.Time {
	newest := map[string]time.Time{}
	out := map[string]time.Time{}
	for _, e := range events {
		var d silenceData
		if e.Kind != ledger.Silenced || json.Unmarshal(e.Data, &d) != nil || d.ID == "" || e.At.Before(newest[d.ID]) {
			continue
		}
		newest[d.ID] = e.At
		if delete(out, d.ID); d.Until.After(now) {
			out[d.ID] = d.Until
		}
	}
	return out
}
