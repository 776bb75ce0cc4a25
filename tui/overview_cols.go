package tui

// The overview's columns, and the orders that they give.

import (
	"cmp"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/remote/gpu"
	"rentop/session"
	"rentop/session/billing"
	"rentop/themes"
	"rentop/tui/cell"
	"rentop/tui/text"
)

// lead is where the first column begins: pointer and state stand before it.
const lead = 4

// orders are the ways to sort; the first is session's own, what needs you first.
var orders = []struct {
	id   string // of the column's heading
	less func(a, b *session.View) int
}{
	{"", nil},
	{"col.name", func(a, b *session.View) int { return strings.Compare(a.Name, b.Name) }},
	{"col.gpu", func(a, b *session.View) int { return strings.Compare(gpuText(a, "x"), gpuText(b, "x")) }},
	{"col.util", func(a, b *session.View) int { return cmp.Compare(utilOf(b), utilOf(a)) }},
	{"col.vram", func(a, b *session.View) int { return cmp.Compare(vramOf(b), vramOf(a)) }},
	{"col.temp", func(a, b *session.View) int { return cmp.Compare(tempOf(b), tempOf(a)) }},
	{"col.jobs", func(a, b *session.View) int { return b.Running - a.Running }},
	{"col.rate", func(a, b *session.View) int { return byAmount(a.Meter.PerHour, b.Meter.PerHour) }},
	{"col.cost", func(a, b *session.View) int { return byAmount(a.Meter.Cost, b.Meter.Cost) }},
}

// byAmount orders the dearest first and the unknown before all; currencies apart.
func byAmount(a, b *billing.Amount) int {
	switch {
	case a == nil || b == nil:
		if a == b {
			return 0
		}
		if a == nil {
			return -1
		}
		return 1
	case a.Currency != b.Currency:
		return strings.Compare(a.Currency, b.Currency)
	}
	n, err := b.Cmp(*a)
	if err != nil {
		return 0
	}
	return n
}

// utilOf is the mean utilisation now; NaN where none is known.
func utilOf(s *session.View) float64 {
	if s.Sample == nil {
		return math.NaN()
	}
	return mean(s.Sample.GPUs, func(g *gpu.GPU) gpu.Value { return g.Util })
}

func vramOf(s *session.View) float64 {
	used, _ := vram(s)
	v, ok := used.Get()
	if !ok {
		return math.NaN()
	}
	return v
}

// tempOf is the hottest card's temperature.
func tempOf(s *session.View) float64 {
	hot := math.NaN()
	if s.Sample != nil {
		for i := range s.Sample.GPUs {
			if v, ok := s.Sample.GPUs[i].Temp.Get(); ok && !(v <= hot) {
				hot = v
			}
		}
	}
	return hot
}

func mean(gpus []gpu.GPU, of func(*gpu.GPU) gpu.Value) float64 {
	sum, n := 0.0, 0
	for i := range gpus {
		if v, ok := of(&gpus[i]).Get(); ok {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// vram is the sum over the cards of which it is known.
func vram(s *session.View) (used, total gpu.Value) {
	if s.Sample == nil {
		return
	}
	for i := range s.Sample.GPUs {
		g := &s.Sample.GPUs[i]
		u, uok := g.MemUsed.Get()
		t, tok := g.MemTotal.Get()
		if uok && tok {
			used, total = gpu.Of(used.V+u), gpu.Of(total.V+t)
		}
	}
	return used, total
}

// gpuText is "2×RTX 4090", from the sample or from the probe.
func gpuText(s *session.View, times string) string {
	var names []string
	if s.Sample != nil {
		for i := range s.Sample.GPUs {
			names = append(names, s.Sample.GPUs[i].Name)
		}
	}
	if len(names) == 0 && s.Facts != nil {
		names = s.Facts.GPUs
	}
	return gpusOf(names, times)
}

// overviewCols are the columns for rows whose names and cards take so many cells.
func overviewCols(l *look, name, gpuW int) []col[*session.View] {
	name, gpuW = min(max(name, 11), 28), min(max(gpuW, 10), 22)
	type v = *session.View
	return []col[v]{
		{id: "col.name", min: 11, want: min(name, 16), max: name, text: func(s v) (string, themes.Style) { return s.Name, l.th.Strong }},
		{id: "col.gpu", min: 10, want: min(gpuW, 13), max: gpuW, prio: 1, text: func(s v) (string, themes.Style) { return l.gpuCell(s), l.th.Text }},
		{id: "col.util", min: 9, want: 17, max: 27, draw: l.utilCell},
		{id: "col.vram", min: 9, want: 18, max: 24, prio: 1, draw: l.vramCell},
		{id: "col.temp", min: 4, want: 4, max: 4, prio: 1, right: true, text: l.tempCell},
		{id: "col.jobs", min: 8, want: 10, max: 12, draw: l.jobsCell},
		{id: "col.saved", min: 5, want: l.savedWidth(), max: 12, draw: l.savedCell},
		{id: "col.cpu", min: 4, want: 4, max: 4, prio: 4, right: true, text: func(s v) (string, themes.Style) {
			if s.Sample == nil {
				return "", l.th.Dim
			}
			return cellOf(s.Sample.Host.CPU, "%.0f%%"), l.th.Text
		}},
		{id: "col.ping", min: 5, want: 5, max: 5, prio: 5, right: true, text: func(s v) (string, themes.Style) {
			if s.RTT <= 0 || s.State != session.Live {
				return "", l.th.Dim
			}
			return ms(s.RTT), l.th.Dim
		}},
		{id: "col.today", min: 8, want: 9, max: 10, prio: 2, right: true, text: func(s v) (string, themes.Style) { return money(s.Meter.Today), l.th.Dim }},
		{id: "col.budget", min: 8, want: 9, max: 10, prio: 3, right: true, text: l.budgetCell},
		{id: "col.rate", min: 8, want: 9, max: 10, right: true, text: l.rateCell},
		{id: "col.cost", min: 8, want: 9, max: 10, right: true, text: func(s v) (string, themes.Style) { return cost(&s.Meter), l.th.Strong }},
	}
}

func (t *table[T]) width() int {
	end := 0
	t.at(func(_, x, w int) { end = x + w })
	return end
}

func (l *look) gpuCell(s *session.View) string {
	if g := gpuText(s, l.gl.Times); g != "" {
		return g
	}
	return "–"
}

// utilCell is the history and the present value.
func (l *look) utilCell(a cell.Area, s *session.View) {
	u := utilOf(s)
	w := a.W - 5
	a.Spark(0, 0, w, l.th.Accent, &l.gl, s.History.Mean, 100)
	st := l.th.Text
	if !math.IsNaN(u) && u < 5 {
		st = l.th.Dim
	}
	a.Right(w, 0, 5, st, percent(u))
}

// vramCell is used/total, and a bar where there is room.
func (l *look) vramCell(a cell.Area, s *session.View) {
	used, total := vram(s)
	f := part(used, total)
	st := l.th.Text
	if f >= 0.97 {
		st = l.th.Warn
	}
	n := 9
	if t, ok := total.Get(); ok && t >= 99.95*(1<<30) {
		n = 11
	}
	if a.W < n+5 {
		n = a.W
	}
	a.Right(0, 0, n, st, pair(used, total, gibShort(total)))
	if a.W > n+4 && !math.IsNaN(f) {
		a.Bar(n+1, 0, a.W-n-1, l.th.Accent, l.th.Faint, &l.gl, f)
	}
}

// gibShort leaves the decimals out where the total has three digits.
func gibShort(total gpu.Value) func(float64) string {
	if t, ok := total.Get(); ok && t >= 99.95*(1<<30) {
		return func(n float64) string { return strings.TrimSuffix(size(n), "G") }
	}
	return gib
}

func (l *look) tempCell(s *session.View) (string, themes.Style) {
	t := tempOf(s)
	if math.IsNaN(t) {
		return "–", l.th.Dim
	}
	return strings.TrimSuffix(percent(t), "%") + l.gl.Degree, l.heat(t, 83, 90, l.th.Text)
}

// jobsCell: what runs and for how long, else for how long nothing has.
func (l *look) jobsCell(a cell.Area, s *session.View) {
	text, st := "–", l.th.Dim
	switch idle := l.idleFor(s); {
	case s.JobsErr != "" && len(s.Jobs) == 0:
		text = "?"
	case s.Running > 0:
		long := ""
		for i := range s.Jobs {
			if running(&s.Jobs[i]) {
				long = since(s.Jobs[i].StartedAt, l.now)
				break
			}
		}
		text, st = l.gl.Run+" "+itoa(s.Running)+" "+long, l.th.Text
		if a.W < cell.Width(text) {
			text = l.gl.Run + " " + long
		}
	case idle > 0:
		text, st = l.T("idle", rounded(idle)), l.th.Warn
	case len(s.Jobs) > 0:
		text, st = l.jobWord(&s.Jobs[0])
	}
	a.Put(0, 0, st, text)
}

// idleFor is for how long an instance with an idle alert has done nothing.
func (l *look) idleFor(s *session.View) time.Duration {
	for _, al := range s.Alerts {
		if al.ID == "idle" {
			return max(l.now.Sub(al.Since), time.Second)
		}
	}
	return 0
}

// rounded is a duration without what does not matter beside its minutes.
func rounded(d time.Duration) string {
	if d >= 100*time.Minute {
		return itoa(int(d/time.Hour)) + "h"
	}
	return text.Dur(d)
}

func (l *look) savedCell(a cell.Area, s *session.View) {
	text, short, st := "?", "", l.th.Dim
	switch {
	case s.State == session.Gone:
		text = "–" // there is nothing to lose any more
	case !s.Saved.Known:
	case s.Saved.Files == 0:
		text, short, st = l.gl.Yes+" "+l.T("saved.all"), l.gl.Yes, l.th.Good
	default:
		text, short, st = l.gl.No+" "+l.N("saved.files", s.Saved.Files), l.gl.No+" "+thousands(s.Saved.Files), l.th.Warn
		if cell.Width(short) > a.W {
			short = l.gl.No + thousands(s.Saved.Files)
		}
	}
	if short != "" && (cell.Width(text) > a.W || s.Saved.Files > 0 && a.W < l.savedWidth()) {
		text = short
	}
	a.Put(0, 0, st, text)
}

// savedWidth is what words need beside a usual count; in less, every count
// stands alone.
func (l *look) savedWidth() int { return cell.Width(l.gl.No + " " + l.T("saved.files", 88)) }

func (l *look) rateCell(s *session.View) (string, themes.Style) {
	if s.State == session.Gone {
		return "–", l.th.Dim
	}
	return perHour(s.Meter.PerHour), l.th.Text
}

func (l *look) budgetCell(s *session.View) (string, themes.Style) {
	if s.Meter.Budget == nil {
		return "–", l.th.Dim
	}
	st := l.th.Dim
	if s.Meter.BudgetLeft != nil && s.Meter.BudgetLeft.Sign() <= 0 {
		st = l.th.Bad
	}
	return money(s.Meter.BudgetLeft), st
}

// overviewRow draws an instance. What is not live says why in place of numbers
// that would be old.
func overviewRow(r cell.Area, l *look, t *table[*session.View], s *session.View) {
	g, st := l.sign(s.State)
	r.Put(2, 0, st, g)
	b := r.Sub(lead, 0, t.width(), 1)
	t.row(b, s)
	if s.State == session.Live {
		return
	}
	x, w := t.between("col.name", "col.jobs")
	over := b.Sub(x, 0, w, 1).Blank()
	p := over.Pen(0, 0).Put(st, l.T("state."+string(s.State)))
	if s.State == session.Waiting && s.RetryAt.After(l.now) {
		p.Put(l.th.Dim, " "+l.T("retry", text.Dur(s.RetryAt.Sub(l.now))))
	}
	if why := reasonOf(l, s); why != "" {
		p.Skip(2).Put(l.th.Dim, why)
	}
}

// reasonOf is why an instance is not live, without the state's own word.
func reasonOf(l *look, s *session.View) string {
	why := l.S(s.Reason)
	n := len(s.State)
	if len(why) >= n && strings.EqualFold(why[:n], string(s.State)) {
		return strings.TrimLeft(why[n:], " ,:;")
	}
	return why
}

// clickHeadings sorts by the column whose heading is clicked.
func (o *overview) clickHeadings(head cell.Area, t *table[*session.View]) {
	t.at(func(i, x, w int) {
		for n, ord := range orders {
			if ord.id != "" && ord.id == t.cols[i].id {
				o.a.onClick(head.Sub(lead+x, 0, w, 1), func() tea.Cmd {
					if o.sort == n {
						o.reverse = !o.reverse
					} else {
						o.sort, o.reverse = n, false
					}
					return nil
				})
			}
		}
	})
}
