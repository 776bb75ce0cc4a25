package alarm

// Rules about the host, the money and the jobs.

import (
	"fmt"
	"math"
	"strings"
	"time"

	"rentop/remote/gpu/sample"
)

func percentOf(used, total sample.Value) float64 {
	u, t := num(used), num(total)
	if t <= 0 {
		return math.NaN()
	}
	return 100 * u / t
}

// disks: full, or growing to full soon.
func disks(w *Watch, m *Moment, l *Limits) (out []Finding) {
	if !m.Live || m.Sample == nil {
		return nil
	}
	ticks, whole := w.window.last(5 * time.Minute)
	for _, d := range m.Sample.Host.Disks {
		p := percentOf(d.Used, d.Total)
		limit := l.Disk
		if a := w.active["disk "+d.Mount]; a != nil && a.said {
			limit-- // a file that comes and goes does not flicker
		}
		f := Finding{ID: "disk " + d.Mount, Level: Warn}
		if p >= limit {
			f.Text = Text{Key: "alert.disk", Args: []any{d.Mount, math.Floor(p)}}
			out = append(out, f)
			continue
		}
		if !whole || !(p > 70) {
			continue
		}
		rate, ok := growth(ticks, func(t *tick) float64 {
			for _, x := range t.disks {
				if x.mount == d.Mount {
					return x.used
				}
			}
			return math.NaN()
		})
		left := num(d.Total) - num(d.Used)
		if ok && rate > 0 && left/rate < l.DiskWithin.Seconds() {
			f.Text = Text{Key: "alert.disk.soon", Args: []any{d.Mount, span(time.Duration(left / rate * float64(time.Second))), math.Floor(p)}}
			out = append(out, f)
		}
	}
	return out
}

func inodes(w *Watch, m *Moment, l *Limits) (out []Finding) {
	if !m.Live || m.Sample == nil {
		return nil
	}
	for _, d := range m.Sample.Host.Disks {
		if p, ok := d.InodesUsed.Get(); ok && p >= l.Disk {
			out = append(out, Finding{ID: "inodes " + d.Mount, Level: Warn, Text: Text{Key: "alert.inodes", Args: []any{d.Mount, math.Floor(p)}}})
		}
	}
	return out
}

// starved: the GPUs work in bursts while the CPUs are busy or wait for disks.
func starved(w *Watch, m *Moment, l *Limits) []Finding {
	ticks, whole := w.window.last(3 * time.Minute)
	if !whole || len(m.gpus()) == 0 {
		return nil
	}
	cpu, _, ok1 := steady(ticks, func(t *tick) float64 { return t.cpu })
	wait, _, ok2 := steady(ticks, func(t *tick) float64 { return t.wait })
	busy := ok1 && cpu >= l.StarvedCPU
	waits := ok2 && wait >= l.StarvedWait
	if !busy && !waits {
		return nil
	}
	for i, g := range m.gpus() {
		mean, swing, ok := steady(ticks, func(t *tick) float64 {
			if i >= len(t.cards) {
				return math.NaN()
			}
			return t.cards[i].util
		})
		if !ok || mean < l.IdleBelow || mean >= l.StarvedBelow || swing <= l.StarvedSwing {
			continue
		}
		f := Finding{ID: "starved", Level: Warn, Text: Text{Key: "alert.starved", Args: []any{g.Index, math.Round(mean)}}}
		if busy {
			f.Text.More = []Text{{Key: "alert.starved.cpu", Args: []any{math.Round(cpu)}}}
		} else {
			f.Text.More = []Text{{Key: "alert.starved.disk", Args: []any{math.Round(wait)}}}
		}
		return []Finding{f}
	}
	return nil
}

// steal: the hypervisor gives our CPU time to others.
func steal(w *Watch, m *Moment, l *Limits) []Finding {
	ticks, whole := w.window.last(2 * time.Minute)
	if !whole {
		return nil
	}
	if s, _, ok := steady(ticks, func(t *tick) float64 { return t.steal }); ok && s >= l.Steal {
		return []Finding{{ID: "steal", Level: Warn, Text: Text{Key: "alert.steal", Args: []any{math.Round(s)}}}}
	}
	return nil
}

// neighbour: a GPU works although nothing on this instance has the driver open. The
// count is known where the helper is; a driver's list alone cannot tell a
// container's own processes from others'.
func neighbour(w *Watch, m *Moment, l *Limits) []Finding {
	gpus := m.gpus()
	if len(gpus) == 0 || m.Sample.Host.GPUOpen != sample.Of(0) || len(m.Sample.Processes) > 0 {
		return nil
	}
	for _, g := range gpus {
		util, mem := num(g.Util), num(g.HiddenMem)
		if util >= 20 || mem >= 2<<30 {
			return []Finding{{ID: "neighbour", Level: Warn, Text: Text{Key: "alert.neighbour", Args: []any{g.Index, unknownAs(util, "%.0f %%"), unknownAs(mem/(1<<30), "%.1f GiB")}}}}
		}
	}
	return nil
}

func unknownAs(v float64, format string) string {
	if math.IsNaN(v) {
		return "?"
	}
	return fmt.Sprintf(format, v)
}

func unreachable(w *Watch, m *Moment, l *Limits) []Finding {
	if !m.Billed || m.Unreachable <= time.Minute {
		return nil
	}
	f := Finding{ID: "unreachable", Level: Warn, Text: Text{Key: "alert.unreachable", Args: []any{span(m.Unreachable)}, More: []Text{m.Why}}, Since: m.At.Add(-m.Unreachable)}
	return []Finding{f}
}

func budget(w *Watch, m *Moment, l *Limits) []Finding {
	if m.Budget == nil {
		return nil
	}
	f := Finding{ID: "budget", Text: Text{Key: "alert.budget.part", Args: []any{math.Floor(100 * m.Spent), m.Budget}}}
	switch {
	case m.Spent >= 1:
		f.Level, f.Text = Urgent, Text{Key: "alert.budget.used", Args: []any{m.Budget, m.Cost}}
	case m.Spent >= 0.8:
		f.Level = Warn
	case m.Spent >= 0.5:
		f.Level = Info
	default:
		return nil
	}
	return []Finding{f}
}

// runway: the balance is used up soon, or before a job can be expected to end.
func runway(w *Watch, m *Moment, l *Limits) []Finding {
	limit := l.RunwayIdle
	if m.running() {
		limit = l.RunwayJob
	}
	if m.Runway <= 0 || m.Runway >= limit || !m.Billed {
		return nil
	}
	f := Finding{ID: "runway", Level: Urgent, Text: Text{Key: "alert.runway", Args: []any{span(m.Runway)}}}
	if m.RunwayAtMost {
		f.Text = Text{Key: "alert.runway.most", Args: []any{span(m.Runway)}}
	}
	if m.running() {
		f.Text.More = []Text{{Key: "alert.runway.job"}}
	}
	return []Finding{f}
}

func stale(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, p := range m.Watched {
		if age := m.At.Sub(p.Newest); p.Limit > 0 && age > p.Limit && m.running() {
			out = append(out, Finding{ID: "stale " + p.Path, Level: Warn, Text: Text{Key: "alert.stale", Args: []any{p.Path, span(age)}}})
		}
	}
	return out
}

// jobShown is how long the end of a job stays in sight.
const jobShown = 10 * time.Minute

// jobs: those that were seen running and have failed or been lost. One that ended
// well is a notice, which is session's.
func jobs(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, j := range m.Jobs {
		if j.Running || !w.running[j.Name+j.Began.String()] || m.At.Sub(j.Ended) > jobShown {
			continue
		}
		f := Finding{ID: "job " + j.Name, Level: Warn, Since: j.Ended}
		switch {
		case j.Lost:
			f.Text = Text{Key: "alert.job.lost", Args: []any{j.Name}}
		case j.Code != nil && *j.Code != 0:
			f.Text = Text{Key: "alert.job.failed", Args: []any{j.Name, *j.Code}}
		case j.Code != nil:
			f.Level, f.Text = Info, Text{Key: "alert.job.ended", Args: []any{j.Name}}
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// leftovers: processes that were started while a job ran, and hold memory after
// its end.
func leftovers(w *Watch, m *Moment, l *Limits) []Finding {
	if !m.Live || m.Sample == nil || m.running() {
		return nil
	}
	var held float64
	var who *sample.Process
	var of string
	for i := range m.Sample.Processes {
		p := &m.Sample.Processes[i]
		mem, ok := p.Mem.Get()
		if !ok || mem < l.LeftoverBytes || p.StartedAt.IsZero() {
			continue
		}
		for _, j := range m.Jobs {
			if !j.Running && !j.Ended.IsZero() && !p.StartedAt.Before(j.Began.Add(-2*time.Second)) && p.StartedAt.Before(j.Ended) {
				held += mem
				if who == nil || mem > who.Mem.V {
					who, of = p, j.Name
				}
				break
			}
		}
	}
	if who == nil {
		return nil
	}
	name, _, _ := strings.Cut(who.Command, " ")
	return []Finding{{ID: "leftover", Level: Warn, Text: Text{Key: "alert.leftover", Args: []any{of, gib(held), name, who.PID}}}}
}
