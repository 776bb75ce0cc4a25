package session

// The provider takes a machine back: what the guard there heard of it, as an alert.

import (
	"time"

	"rentop/remote"
	"rentop/remote/gpu/guard"
	"rentop/remote/provider"
	"rentop/session/phrase"
)

// Reclaim is a notice that the machine will be taken back. Times are by our clock.
type Reclaim struct {
	At     time.Time // zero where that was not told
	SeenAt time.Time
	Save   bool   // there was something to run
	Saved  bool   // and it succeeded
	Saving bool   // it runs
	Error  string // of its last attempt
}

// reclaimRule asks where the provider tells a machine, or where the person says.
func (s *Session) reclaimRule(address string) (guard.Rule, error) {
	script, err := provider.NoticeInside(s.cfg().Provider)
	if address != "" {
		script, err = provider.NoticeAt(address)
	}
	return guard.Rule{Kind: guard.Reclaim, Script: script}, err
}

// onlyReclaim says that no rule would do anything but save.
func (w GuardSpec) onlyReclaim() bool {
	return w.Reclaim && w.Idle == 0 && w.After == "" && w.At.IsZero() && w.Budget == "" && !w.Lease
}

func reclaimOf(st *guard.State, ours func(time.Time) time.Time) *Reclaim {
	t := st.Trip
	if t == nil || t.Kind != guard.Reclaim {
		return nil
	}
	return &Reclaim{At: ours(t.Due), SeenAt: ours(t.At), Save: st.Spec.Save != "", Saved: t.Saved, Saving: st.Phase == guard.Saving, Error: remote.Short(t.Error, 200)}
}

// text is the notice in a sentence, with what to do.
func (r *Reclaim) text(name string) phrase.Text {
	at := "?"
	if !r.At.IsZero() {
		at = r.At.Local().Format("15:04")
	}
	t := phrase.Say("reclaim.at", at)
	switch {
	case r.Saved:
		t = t.Then(phrase.Say("reclaim.saved"))
	case r.Saving:
		t = t.Then(phrase.Say("reclaim.saving"))
	case !r.Save:
		t = t.Then(phrase.Say("reclaim.nothing"))
	default:
		t = t.Then(phrase.Say("reclaim.unsaved", r.Error))
	}
	return t.Then(phrase.Say("reclaim.move", name))
}

// reclaimAlert lasts while the guard tells of it: nothing takes a notice back.
func (st *state) reclaimAlert(name string, now time.Time) (Alert, bool) {
	const id = "reclaim"
	if st.guard.seen == nil || st.guard.seen.Reclaim == nil {
		return Alert{}, false
	}
	r := st.guard.seen.Reclaim
	since := r.SeenAt
	if since.IsZero() {
		since = st.guard.seen.SeenAt
	}
	return Alert{ID: id, Level: Urgent, Text: r.text(name), Since: since}, !now.Before(st.alarms.Quiet(id))
}
