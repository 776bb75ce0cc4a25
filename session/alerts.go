package session

import (
	"fmt"
	"math"
	"time"

	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/phrase"
	"rentop/session/release"
)

// alerts keeps each alert's beginning while it lasts, and what was silenced.
type alerts struct {
	since  map[string]time.Time
	silent map[string]time.Time // until
	idle   time.Time            // since when every GPU has been below the limit
}

// Keep silences an alert of an instance for a while.
func (s *Session) Keep(id string, d time.Duration) {
	s.send(func(st *state) {
		if st.alerts.silent == nil {
			st.alerts.silent = map[string]time.Time{}
		}
		st.alerts.silent[id] = s.f.opt.Now().Add(d)
	})
}

// look gives what needs the person now.
func (s *Session) look(st *state, m Meter, now time.Time) []Alert {
	var found []Alert
	say := func(id string, l Level, text phrase.Text) {
		found = append(found, Alert{ID: id, Level: l, Text: text})
	}
	s.lookIdle(st, m, now, say)
	s.lookMachine(st, say)
	if m.Budget != nil && m.Cost != nil && m.Budget.Value.Sign() > 0 {
		used, _ := m.Cost.Value.Float64()
		all, _ := m.Budget.Value.Float64()
		switch part := 100 * used / all; {
		case part >= 100:
			say("budget", Urgent, phrase.Say("alert.budget.used", m.Budget, m.Cost))
		case part >= 80:
			say("budget", Warn, phrase.Say("alert.budget.part", math.Floor(part), m.Budget))
		}
	}
	billed := st.timeline.State == billing.Running
	if billed && (st.State == Waiting || st.State == Refused || st.State == Stalled) && now.Sub(st.Since) > time.Minute {
		say("unreachable", Warn, phrase.Say("alert.unreachable", span(now.Sub(st.Since))).Then(st.Reason))
	}
	for _, w := range s.cfg().Watch {
		newest, ok := st.watched[w.Path]
		limit, err := time.ParseDuration(w.StaleAfter)
		if ok && err == nil && now.Sub(newest) > limit && hasRunning(st.jobs) {
			say("stale "+w.Path, Warn, phrase.Say("alert.stale", w.Path, span(now.Sub(newest))))
		}
	}
	if r := st.release; r != nil && r.Resumed && r.Phase != release.Review && r.Phase != release.Cancelled {
		say("release", Urgent, phrase.Say("alert.release"))
	}
	return st.alerts.keepSince(found, now)
}

// lookIdle warns about GPUs that cost money and do nothing.
func (s *Session) lookIdle(st *state, m Meter, now time.Time, say func(string, Level, phrase.Text)) {
	below, after := 5.0, 10*time.Minute
	if i := s.cfg().Idle; i != nil {
		below = float64(i.Below)
		after, _ = time.ParseDuration(i.For) // checked when the config was read
	}
	if st.State != Live || st.sample == nil || len(st.sample.GPUs) == 0 || busy(st, below) {
		st.alerts.idle = time.Time{}
		return
	}
	if st.alerts.idle.IsZero() {
		st.alerts.idle = st.idleSince(below, now)
	}
	long := now.Sub(st.alerts.idle)
	if long < after {
		return
	}
	text := phrase.Say("alert.idle", span(long))
	if m.PerHour != nil {
		text = text.Then(phrase.Say("alert.idle.rate", m.PerHour))
	}
	level := Warn
	if st.saved.Known && st.saved.Files > 0 {
		text = text.Then(phrase.Count("alert.idle.files", st.saved.Files))
		level = Urgent
	}
	say("idle", level, text)
	st.alerts.begin("idle", st.alerts.idle)
}

// busy is true where a GPU works or a job of ours runs; a GPU whose use cannot
// be read counts as working.
func busy(st *state, below float64) bool {
	for _, g := range st.sample.GPUs {
		if u, ok := g.Util.Get(); !ok || u >= below {
			return true
		}
	}
	return hasRunning(st.jobs)
}

// idleSince looks back in the history: rentop may have been busy elsewhere.
func (st *state) idleSince(below float64, now time.Time) time.Time {
	since := now
	for i := len(st.history.done) - 1; i >= 0; i-- {
		for _, u := range st.history.done[i].util {
			if v := u.value(); math.IsNaN(v) || v >= below {
				return since
			}
		}
		since = st.history.begin.Add(-time.Duration(len(st.history.done)-i) * historyStep)
	}
	return since
}

func hasRunning(jobs []tmux.Job) bool {
	for _, j := range jobs {
		if j.State == tmux.Running || j.State == tmux.Starting {
			return true
		}
	}
	return false
}

// lookMachine warns about the machine itself.
func (s *Session) lookMachine(st *state, say func(string, Level, phrase.Text)) {
	if st.sample == nil || st.State != Live {
		return
	}
	var hot, full []gpu.GPU
	for _, g := range st.sample.GPUs {
		if g.Problem != "" {
			say(fmt.Sprintf("gpu%d", g.Index), Urgent, phrase.Say("alert.gpu", g.Index, g.Problem))
		}
		if g.ThrottleHot {
			hot = append(hot, g)
		}
		if memUse(g) > 97 {
			full = append(full, g)
		}
	}
	// A node of eight says one thing once, not eight times.
	if len(hot) > 0 {
		say("hot", Warn, slowed(hot))
	}
	if len(full) == 1 {
		say("memory", Info, phrase.Say("alert.memory", full[0].Index, math.Floor(memUse(full[0]))))
	} else if len(full) > 1 {
		say("memory", Info, phrase.Say("alert.memory.many", len(full), 97))
	}
	for _, d := range st.sample.Host.Disks {
		used, ok1 := d.Used.Get()
		total, ok2 := d.Total.Get()
		if ok1 && ok2 && total > 0 && used/total >= 0.95 {
			say("disk "+d.Mount, Warn, phrase.Say("alert.disk", d.Mount, math.Floor(100*used/total)))
		}
		if i, ok := d.InodesUsed.Get(); ok && i >= 95 {
			say("inodes "+d.Mount, Warn, phrase.Say("alert.inodes", d.Mount, math.Floor(i)))
		}
	}
}

// memUse is in percent, 0 where it cannot be told.
func memUse(g gpu.GPU) float64 {
	used, ok1 := g.MemUsed.Get()
	total, ok2 := g.MemTotal.Get()
	if !ok1 || !ok2 || total <= 0 {
		return 0
	}
	return 100 * used / total
}

// slowed says why cards are throttled, as far as the driver tells.
func slowed(hot []gpu.GPU) phrase.Text {
	g := hot[0]
	for _, o := range hot {
		if o.Temp.State == gpu.OK && (g.Temp.State != gpu.OK || o.Temp.V > g.Temp.V) {
			g = o
		}
	}
	if t, ok := g.Temp.Get(); ok && len(hot) > 1 && len(g.Throttle) > 0 {
		return phrase.Say("alert.hot.many", len(hot), math.Round(t), g.Throttle[0])
	}
	if len(g.Throttle) == 0 {
		return phrase.Say("alert.hot.untold", g.Index)
	}
	why := phrase.Word("throttle.", g.Throttle[0])
	if t, ok := g.Temp.Get(); ok {
		return phrase.Say("alert.hot.at", g.Index, math.Round(t)).Then(why)
	}
	return phrase.Say("alert.hot", g.Index).Then(why)
}

// begin says when an alert began, where that is known better than by when it was
// first said.
func (a *alerts) begin(id string, at time.Time) {
	if a.since == nil {
		a.since = map[string]time.Time{}
	}
	a.since[id] = at
}

// keepSince gives each alert the time at which it began, drops the silenced and
// forgets those that ended.
func (a *alerts) keepSince(found []Alert, now time.Time) []Alert {
	since := map[string]time.Time{}
	var out []Alert
	for _, x := range found {
		began, ok := a.since[x.ID]
		if !ok {
			began = now
		}
		since[x.ID], x.Since = began, began
		if now.Before(a.silent[x.ID]) {
			continue
		}
		out = append(out, x)
	}
	a.since = since
	return out
}

// span writes a duration so that it is read in every language: 24 min, 3 h 12 min, 2 d.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}
