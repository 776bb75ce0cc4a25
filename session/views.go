package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rentop/remote/tmux"
	"rentop/session/billing"
)

// publish draws the session's state into a new view.
func (s *Session) publish(st *state) {
	now := s.f.opt.Now()
	m := s.meter(st, now)
	can := s.can()
	v := &View{
		Name: s.cfg().Name, Provider: s.cfg().Provider, Address: st.address,
		State: st.State, Reason: st.Reason, Since: st.Since, RetryAt: st.RetryAt, RTT: st.rtt,
		Facts: st.facts, Sample: st.sample, History: st.history.view(), Day: st.day.view(), Guard: st.guard.view(now), Meter: m,
		Jobs: slices.Clone(st.jobs), JobsErr: st.jobsErr, Receipts: st.receipts, Saved: st.saved, Artifacts: len(s.cfg().Artifacts), Saving: st.saving,
		Transfer: s.queue.list(), Limit: s.limit.Rate(), Ports: st.ports, Release: st.release,
		CanStop: can.Stop, CanStart: can.Start, CanDestroy: can.Destroy, CanSnapshot: can.Snapshot,
	}
	for _, j := range st.jobs {
		if j.State == tmux.Running || j.State == tmux.Starting {
			v.Running++
		}
	}
	for _, p := range s.cfg().Sync {
		v.Syncs = append(v.Syncs, SyncPair(p))
	}
	v.Alerts, v.PastAlerts = s.look(st, m, now)
	s.view.Store(v)
	if st.urgent {
		s.f.touch()
	} else {
		s.f.touchQuietly()
	}
	st.dirty, st.urgent, st.published = false, false, now
}

// publish builds the fleet's view from its sessions'.
func (f *Fleet) publish() {
	now := f.opt.Now()
	v := &FleetView{At: now, Simulated: f.opt.Simulated, Questions: f.ask.list()}
	f.mu.Lock()
	for _, s := range f.sessions {
		v.Sessions = append(v.Sessions, s.View())
	}
	v.Notices = slices.Clone(f.notices)
	v.ConfigErr = f.cfgErr
	if list := f.funds.Load(); list != nil {
		v.Balances = *list
	}
	ex := f.exchange
	f.mu.Unlock()
	slices.SortFunc(v.Sessions, byNeed)
	var hour, today, left summer
	for _, s := range v.Sessions {
		if s.State != Gone {
			hour.add(s.Meter.PerHour, true)
		}
		today.add(s.Meter.Today, true)
		left.add(s.Meter.BudgetLeft, false)
	}
	v.PerHour, v.Today, v.BudgetLeft = hour.sums(ex, now), today.sums(ex, now), left.sums(ex, now)
	f.view.Store(v)
}

// byNeed sorts what needs the person first: urgent alerts, open questions and
// refusals, warnings, then what is live, then the rest; by name within each.
func byNeed(a, b View) int {
	if d := need(a) - need(b); d != 0 {
		return d
	}
	return strings.Compare(a.Name, b.Name)
}

func need(v View) int {
	worst := -1
	for _, a := range v.Alerts {
		worst = max(worst, int(a.Level))
	}
	switch {
	case worst == int(Urgent):
		return 0
	case v.State == Asking || v.State == Refused:
		return 1
	case worst == int(Warn):
		return 2
	case v.State == Gone:
		return 5
	case v.State == Stopped:
		return 4
	}
	return 3
}

// summer adds amounts by currency.
type summer struct {
	by      map[string]billing.Amount
	unknown int
}

func (s *summer) add(a *billing.Amount, countUnknown bool) {
	if a == nil {
		if countUnknown {
			s.unknown++
		}
		return
	}
	if a.Currency == "" { // the zero of a sum to which nothing was added
		return
	}
	if s.by == nil {
		s.by = map[string]billing.Amount{}
	}
	sum, err := a.Add(s.by[a.Currency])
	if err != nil { // the zero amount of a new currency
		sum = *a
	}
	s.by[a.Currency] = sum
}

// sums gives one amount where the person's exchange rates allow it, else one a currency.
func (s *summer) sums(ex billing.Exchange, at time.Time) Sums {
	out := Sums{Unknown: s.unknown}
	var all []billing.Amount
	for _, a := range s.by {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b billing.Amount) int { return strings.Compare(a.Currency, b.Currency) })
	if len(all) > 1 {
		if one, err := ex.Sum(all, all[0].Currency, at); err == nil {
			all = []billing.Amount{one}
		}
	}
	out.Amounts = all
	return out
}

// expandHome replaces a leading ~ of a local path.
func expandHome(p string) string {
	if p != "~" && !strings.HasPrefix(p, "~/") && !strings.HasPrefix(p, `~\`) {
		return p
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return p
	}
	return filepath.Join(home, p[1:])
}
