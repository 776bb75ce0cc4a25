package metrics

// What only rentop knows: states, money, jobs, alarms, and the machine around the cards.

import (
	"io"
	"strings"
	"time"

	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
)

// Stale is the age from which a sample is no longer told: its series end, as those
// of a target that is gone, and rentop_sample_stale is 1.
const Stale = 15 * time.Second

// Write gives everything that a view shows at the time now.
func Write(w io.Writer, v *session.FleetView, version string, now time.Time) error {
	var p page
	p.add("rentop_build_info", gauge, "1, with rentop's version.", labels{{"version", version}}, 1)
	for _, s := range v.Sessions {
		p.state(&s, now)
	}
	for _, s := range v.Sessions {
		p.meter(&s)
	}
	p.balances(v.Balances)
	for _, s := range v.Sessions {
		p.work(&s)
	}
	for _, s := range v.Sessions {
		if fresh(&s, now) {
			p.gpus(s.Sample, labels{{"Hostname", s.Name}, {"instance", s.Name}})
			p.host(&s.Sample.Host, named(&s))
		}
	}
	return p.write(w)
}

// named are the labels of what is about a whole instance.
func named(s *session.View) labels { return labels{{"instance", s.Name}} }

// fresh says whether the sample tells of now.
func fresh(s *session.View, now time.Time) bool {
	return s.State == session.Live && s.Sample != nil && now.Sub(s.Sample.TakenAt) < Stale
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// states are all of a session's, so that each has a series of its own from the start.
var states = []session.State{session.Idle, session.Connecting, session.Asking, session.Live, session.Stalled,
	session.Waiting, session.Refused, session.Stopped, session.Gone}

func (p *page) state(s *session.View, now time.Time) {
	l := named(s)
	for _, x := range states {
		p.add("rentop_instance_state", gauge, "1 for the state that the instance is in, 0 for the others.", l.with(label{"state", string(x)}), truth(s.State == x))
	}
	if !s.Since.IsZero() {
		p.add("rentop_instance_state_since_seconds", gauge, "When that state began, as Unix time.", l, seconds(s.Since))
	}
	p.add("rentop_sample_stale", gauge, "1 where there is no sample of the last 15 s: the series of its cards and host have ended.", l, truth(!fresh(s, now)))
	if s.Sample != nil {
		p.add("rentop_sample_time_seconds", gauge, "When the newest sample was taken, as Unix time.", l.with(label{"source", s.Sample.Source}), seconds(s.Sample.TakenAt))
	}
	if s.State == session.Live && s.RTT > 0 {
		p.add("rentop_round_trip_seconds", gauge, "Round trip to the instance.", l, s.RTT.Seconds())
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (p *page) meter(s *session.View) {
	m := &s.Meter
	for _, x := range []struct {
		name, help string
		amount     *billing.Amount
	}{
		{"rentop_cost", "What this rental has cost until now; absent where it is not known.", m.Cost},
		{"rentop_cost_at_least", "The known part of a cost that is not known whole.", m.AtLeast},
		{"rentop_cost_today", "Since local midnight.", m.Today},
		{"rentop_cost_per_hour", "At present, in the present state.", m.PerHour},
		{"rentop_budget", "What may be spent.", m.Budget},
		{"rentop_budget_left", "What is left of it.", m.BudgetLeft},
	} {
		if x.amount != nil {
			p.put(x.name, gauge, x.help, named(s).with(label{"currency", x.amount.Currency}), x.amount.Exact(6))
		}
	}
	p.add("rentop_cost_known", gauge, "1 where rentop_cost is known.", named(s), truth(m.Cost != nil))
}

// balances: what accounts have left, and for how long.
func (p *page) balances(list []session.Balance) {
	for _, b := range list {
		l := labels{{"provider", b.Provider}, {"currency", b.Left.Currency}}
		p.put("rentop_balance", gauge, "What an account has left, as its provider last told.", l, b.Left.Exact(6))
		p.add("rentop_balance_time_seconds", gauge, "When it was told, as Unix time.", l, seconds(b.At))
		switch {
		case b.Lasts > 0 && b.AtMost:
			p.add("rentop_balance_lasts_at_most_seconds", gauge, "How long it lasts at most: the rate of one of its instances is not known.", l, b.Lasts.Seconds())
		case b.Lasts > 0:
			p.add("rentop_balance_lasts_seconds", gauge, "How long it lasts at the present rate of all its instances.", l, b.Lasts.Seconds())
		}
	}
}

// jobStates are all that a job may be in.
var jobStates = []tmux.State{tmux.Starting, tmux.Running, tmux.Done, tmux.Killed, tmux.Lost}

// work: jobs, what is not saved, transfers and alarms.
func (p *page) work(s *session.View) {
	l := named(s)
	if s.Jobs != nil { // they were read
		n, failed := map[tmux.State]int{}, 0
		for _, j := range s.Jobs {
			n[j.State]++
			if j.State == tmux.Done && j.ExitCode != nil && *j.ExitCode != 0 {
				failed++
			}
		}
		for _, x := range jobStates {
			p.add("rentop_jobs", gauge, "Jobs known, by state.", l.with(label{"state", string(x)}), float64(n[x]))
		}
		p.add("rentop_jobs_failed", gauge, "Of those done, the ones with another exit code than 0.", l, float64(failed))
	}
	if s.Saved.Known {
		p.add("rentop_unsaved_files", gauge, "Files on the instance that exist nowhere else.", l, float64(s.Saved.Files))
		p.add("rentop_unsaved_bytes", gauge, "Their size.", l, float64(s.Saved.Bytes))
	}
	for _, a := range s.Alerts {
		name, of, _ := strings.Cut(a.ID, " ")
		name, card := cutNumber(name)
		if card != "" {
			of = card
		}
		p.add("rentop_alarm", gauge, "1 for each alarm that is on; what it is about, where that is one thing of several.",
			l.with(label{"alarm", name}, label{"level", a.Level.String()}, label{"of", of}), 1)
	}
}

// cutNumber parts an alarm's name from the card that it is about: hot3.
func cutNumber(id string) (name, n string) {
	name = strings.TrimRight(id, "0123456789")
	return name, id[len(name):]
}

func (p *page) host(h *gpu.Host, l labels) {
	for _, x := range []struct {
		name, help string
		v          gpu.Value
	}{
		{"rentop_host_cpu_percent", "Of all cores.", h.CPU},
		{"rentop_host_io_wait_percent", "Of all cores' time that waited for disks.", h.IOWait},
		{"rentop_host_steal_percent", "Of all cores' time that went to other machines.", h.Steal},
		{"rentop_host_load1", "Load over a minute.", h.Load1},
		{"rentop_host_memory_used_bytes", "Of the container's own limit where there is one.", h.MemUsed},
		{"rentop_host_memory_bytes", "The container's own limit where there is one.", h.MemTotal},
		{"rentop_host_network_receive_bytes_per_second", "Received, all interfaces.", h.NetRx},
		{"rentop_host_network_transmit_bytes_per_second", "Sent, all interfaces.", h.NetTx},
		{"rentop_host_uptime_seconds", "Since it was started.", h.UptimeSec},
	} {
		if v, ok := x.v.Get(); ok {
			p.add(x.name, gauge, x.help, l, v)
		}
	}
	if h.CPUs > 0 {
		p.add("rentop_host_cpus", gauge, "Cores.", l, float64(h.CPUs))
	}
	for _, d := range h.Disks {
		l := l.with(label{"mount", d.Mount})
		if v, ok := d.Used.Get(); ok {
			p.add("rentop_host_disk_used_bytes", gauge, "Of a disk.", l, v)
		}
		if v, ok := d.Total.Get(); ok {
			p.add("rentop_host_disk_bytes", gauge, "A disk's size.", l, v)
		}
		if v, ok := d.InodesUsed.Get(); ok {
			p.add("rentop_host_disk_inodes_used_percent", gauge, "Of a disk's inodes.", l, v)
		}
	}
}
