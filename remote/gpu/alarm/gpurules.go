package alarm

// Rules about the GPUs. Where a figure is not known a rule finds nothing.

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rentop/remote/gpu/sample"
)

// gpus are the GPUs of the moment, where they are read.
func (m *Moment) gpus() []sample.GPU {
	if !m.Live || m.Sample == nil {
		return nil
	}
	return m.Sample.GPUs
}

// lost: a GPU that does not answer, or wants a reset.
func lost(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, g := range m.gpus() {
		if g.Problem != "" {
			out = append(out, Finding{ID: fmt.Sprintf("gpu%d", g.Index), Level: Urgent, Text: Text{Key: "alert.gpu", Args: []any{g.Index, g.Problem}}})
		}
	}
	return out
}

// hung: the driver does not answer at all.
func hung(w *Watch, m *Moment, l *Limits) []Finding {
	if m.Live && m.Sample != nil && m.Sample.Problem != nil && strings.Contains(m.Sample.Problem.What, "driver hung") {
		return []Finding{{ID: "driver", Level: Urgent, Text: Text{Key: "alert.driver", Args: []any{m.Sample.Problem.What, m.Sample.Problem.Cure}}}}
	}
	return nil
}

// xidKinds are the driver's errors by what they mean (NVIDIA's XID catalogue):
// the machine's fault, or the program's.
var xidKinds = map[int]string{
	13: "app", 31: "app", 43: "app", 45: "app", 68: "app", 69: "app",
	48: "memory", 63: "memory", 64: "memory", 92: "memory", 94: "memory", 95: "memory",
	62: "hardware", 74: "nvlink", 79: "bus", 110: "hardware", 119: "firmware", 120: "firmware", 121: "hardware", 136: "hardware", 140: "memory", 143: "hardware",
}

// xidShown is how long an error event stays in sight.
const xidShown = 30 * time.Minute

func xids(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, g := range m.gpus() {
		byCode := map[int]time.Time{}
		for _, x := range g.XIDs {
			if m.At.Sub(x.At) < xidShown && x.At.After(byCode[x.Code]) {
				byCode[x.Code] = x.At
			}
		}
		for code, at := range byCode {
			kind, known := xidKinds[code]
			f := Finding{ID: fmt.Sprintf("xid %d gpu %d", code, g.Index), Level: Urgent, Since: at}
			switch {
			case !known:
				f.Level, kind = Warn, "other"
			case kind == "app":
				f.Level = Info
			}
			f.Text = Text{Key: "alert.xid", Args: []any{g.Index, code}, More: []Text{{Key: "alert.xid." + kind}}}
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// eccErrors: uncorrected errors since this watch began. Those of before it are the
// machine's past, but a card that has many is named too.
func eccErrors(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, g := range m.gpus() {
		n, ok := g.ECCErrors.Get()
		if !ok {
			continue
		}
		key := fmt.Sprintf("ecc %s %d", g.UUID, g.Index)
		base, seen := w.base[key]
		if !seen || n < base { // a reset counts anew
			w.base[key] = n
			base = n
		}
		if n > base {
			out = append(out, Finding{ID: fmt.Sprintf("ecc%d", g.Index), Level: Urgent, Text: Text{Key: "alert.ecc", Args: []any{g.Index, int(n - base)}}})
		}
	}
	return out
}

// remaps: rows that wait for a reset to be remapped, or could not be.
func remaps(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, g := range m.gpus() {
		switch id := fmt.Sprintf("remap%d", g.Index); {
		case g.RemapFailed == sample.Of(1):
			out = append(out, Finding{ID: id, Level: Urgent, Text: Text{Key: "alert.remap.failed", Args: []any{g.Index}}})
		case g.RemapPending == sample.Of(1):
			out = append(out, Finding{ID: id, Level: Warn, Text: Text{Key: "alert.remap.pending", Args: []any{g.Index}}})
		}
	}
	return out
}

// hot: cards that are slowed down by heat. A node of eight says one thing once.
func hot(w *Watch, m *Moment, l *Limits) []Finding {
	var slow []sample.GPU
	for _, g := range m.gpus() {
		if g.ThrottleHot && !braked(g) {
			slow = append(slow, g)
		}
	}
	if len(slow) == 0 {
		return nil
	}
	return []Finding{{ID: "hot", Level: Warn, Text: slowed(slow)}}
}

const brakeWord = "power brake"

func braked(g sample.GPU) bool { return slices.Contains(g.Throttle, brakeWord) }

// brake: the machine's power supply slows cards down.
func brake(w *Watch, m *Moment, l *Limits) []Finding {
	n := 0
	for _, g := range m.gpus() {
		if braked(g) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []Finding{{ID: "brake", Level: Urgent, Text: Text{Key: "alert.brake", N: n, Many: true}}}
}

// slowed says why cards are throttled, as far as the driver tells: of the hottest.
func slowed(hot []sample.GPU) Text {
	g := hot[0]
	for _, o := range hot {
		if o.Temp.State == sample.OK && (g.Temp.State != sample.OK || o.Temp.V > g.Temp.V) {
			g = o
		}
	}
	if len(g.Throttle) == 0 {
		return Text{Key: "alert.hot.untold", Args: []any{g.Index}}
	}
	why := []Text{{Key: "throttle." + g.Throttle[0], Args: []any{g.Throttle[0]}}}
	t, known := g.Temp.Get()
	switch {
	case known && len(hot) > 1:
		return Text{Key: "alert.hot.many", Args: []any{len(hot), math.Round(t)}, More: why}
	case known:
		return Text{Key: "alert.hot.at", Args: []any{g.Index, math.Round(t)}, More: why}
	}
	return Text{Key: "alert.hot", Args: []any{g.Index}, More: why}
}

// full is the part of a GPU's memory that is used, in percent; NaN where unknown.
// Of memory that is shared with the host, the host's rules tell.
func full(g *sample.GPU) float64 {
	used, total := num(g.MemUsed), num(g.MemTotal)
	if sample.Unified(g.Name) || total <= 0 {
		return math.NaN()
	}
	return 100 * used / total
}

func memory(w *Watch, m *Moment, l *Limits) []Finding {
	var tight []sample.GPU
	gpus := m.gpus()
	limit := l.MemoryFull
	if a := w.active["memory"]; a != nil && a.said {
		limit -= 2
	}
	for i := range gpus {
		if full(&gpus[i]) > limit {
			tight = append(tight, gpus[i])
		}
	}
	switch len(tight) {
	case 0:
		return nil
	case 1:
		return []Finding{{ID: "memory", Level: Info, Text: Text{Key: "alert.memory", Args: []any{tight[0].Index, math.Floor(full(&tight[0]))}}}}
	}
	return []Finding{{ID: "memory", Level: Info, Text: Text{Key: "alert.memory.many", Args: []any{len(tight), int(limit)}}}}
}

// filling: memory that grows so that it is full soon. A program that takes all at
// its start jumps and is no growth.
func filling(w *Watch, m *Moment, l *Limits) (out []Finding) {
	ticks, whole := w.window.last(2 * time.Minute)
	gpus := m.gpus()
	if !whole {
		return nil
	}
	for i := range gpus {
		g := &gpus[i]
		if sample.Unified(g.Name) || !(full(g) > 50) || full(g) > l.MemoryFull {
			continue
		}
		rate, ok := growth(ticks, func(t *tick) float64 {
			if i >= len(t.cards) {
				return math.NaN()
			}
			return t.cards[i].used
		})
		left := num(g.MemTotal) - num(g.MemUsed)
		if !ok || rate <= 0 || !(left/rate < l.MemoryWithin.Seconds()) {
			continue
		}
		in := time.Duration(left / rate * float64(time.Second))
		out = append(out, Finding{ID: fmt.Sprintf("filling%d", g.Index), Level: Warn,
			Text: Text{Key: "alert.filling", Args: []any{g.Index, span(in), math.Floor(full(g))}}})
	}
	return out
}

// idle: GPUs that cost money and do nothing, with what holds their memory.
func idle(w *Watch, m *Moment, l *Limits) []Finding {
	gpus := m.gpus()
	resting := len(gpus) > 0 && !m.running()
	for i := range gpus {
		if rests, known := gpus[i].Rests(l.IdleBelow); !rests || !known {
			resting = false // a GPU whose use cannot be read counts as working
		}
	}
	if !resting {
		w.idle = time.Time{}
		return nil
	}
	if w.idle.IsZero() {
		w.idle = w.restedSince(m.At, l.IdleBelow)
	}
	long := m.At.Sub(w.idle)
	if long < l.IdleFor {
		return nil
	}
	f := Finding{ID: "idle", Level: Warn, Since: w.idle, Text: Text{Key: "alert.idle", Args: []any{span(long)}}}
	if m.PerHour != nil {
		f.Text.More = append(f.Text.More, Text{Key: "alert.idle.rate", Args: []any{m.PerHour}})
	}
	if m.Hourly != nil {
		if c := m.Hourly(long); c != nil {
			f.Text.More = append(f.Text.More, Text{Key: "alert.idle.cost", Args: []any{c}})
		}
	}
	if who, mem := holder(m.Sample); who != "" {
		f.Text.More = append(f.Text.More, Text{Key: "alert.idle.holder", Args: []any{who, mem}})
	}
	if m.Unsaved > 0 {
		f.Level = Urgent
		f.Text.More = append(f.Text.More, Text{Key: "alert.idle.files", N: m.Unsaved, Many: true})
	}
	return []Finding{f}
}

// restedSince looks back: rentop may have been busy elsewhere.
func (w *Watch) restedSince(now time.Time, below float64) time.Time {
	since := now
	for i := len(w.window.ticks) - 1; i >= 0; i-- {
		t := &w.window.ticks[i]
		if since.Sub(t.at) > gap {
			return since
		}
		for _, c := range t.cards {
			if !(c.util < below) {
				return since
			}
		}
		since = t.at
	}
	return since
}

// holder names who holds most of the memory, where it is worth naming.
func holder(s *sample.Sample) (who, mem string) {
	var most *sample.Process
	for i := range s.Processes {
		p := &s.Processes[i]
		if v, ok := p.Mem.Get(); ok && v >= 1<<30 && (most == nil || v > most.Mem.V) {
			most = p
		}
	}
	if most == nil {
		return "", ""
	}
	name := most.Command
	if f := strings.Fields(name); len(f) > 0 {
		name = strings.Join(f[:min(len(f), 3)], " ")
	}
	if name == "" {
		name = "?"
	}
	return fmt.Sprintf("%s (PID %d)", name, most.PID), gib(most.Mem.V)
}

func gib(b float64) string { return fmt.Sprintf("%.1f GiB", b/(1<<30)) }

// shallow: a GPU that is called busy and draws little: one kernel on few of its
// cores. Only over minutes, and never where it is slowed down.
func shallow(w *Watch, m *Moment, l *Limits) []Finding {
	ticks, whole := w.window.last(3 * time.Minute)
	if !whole {
		return nil
	}
	for i, g := range m.gpus() {
		get := func(f func(card) float64) func(*tick) float64 {
			return func(t *tick) float64 {
				if i >= len(t.cards) {
					return math.NaN()
				}
				return f(t.cards[i])
			}
		}
		util, _, ok1 := steady(ticks, get(func(c card) float64 { return c.util }))
		power, _, ok2 := steady(ticks, get(func(c card) float64 { return c.power }))
		if ok1 && ok2 && util > 95 && power < l.ShallowPower && !g.ThrottleHot {
			return []Finding{{ID: "shallow", Level: Info, Text: Text{Key: "alert.shallow", Args: []any{g.Index, math.Round(util), math.Round(power)}}}}
		}
	}
	return nil
}

// links: NVLinks that were up and are not. A narrow PCIe link is no finding: many
// good machines have the card in such a slot.
func links(w *Watch, m *Moment, l *Limits) (out []Finding) {
	for _, g := range m.gpus() {
		if n, ok := g.NVLinksDown.Get(); ok && n > 0 {
			out = append(out, Finding{ID: fmt.Sprintf("link%d", g.Index), Level: Warn, Text: Text{Key: "alert.nvlink", Args: []any{g.Index, int(n)}}})
		}
	}
	return out
}
