package tui

// The GPU panel: a card a row, and the processes that hold them.

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"rentop/remote/gpu"
	"rentop/session"
	"rentop/session/phrase"
	"rentop/themes"
	"rentop/tui/cell"
)

// card is a row of the panel: a GPU with its history.
type card struct {
	*gpu.GPU
	hist []float64
}

func (l *look) gpuCols(s *session.View) []col[card] {
	name, throttled, problem, hot := 0, 0, false, false
	for i := range s.Sample.GPUs {
		g := &s.Sample.GPUs[i]
		name = max(name, cell.Width(g.Name))
		throttled = max(throttled, cell.Width(l.throttle(g.Throttle)), cell.Width(g.Problem))
		problem, hot = problem || g.Problem != "", hot || g.ThrottleHot
	}
	num := func(of func(*gpu.GPU) gpu.Value, format string) func(card) (string, themes.Style) {
		return func(c card) (string, themes.Style) {
			v := of(c.GPU)
			if v.State == gpu.Failed {
				return "err", l.th.Bad
			}
			if v.State == gpu.NA {
				return "–", l.th.Dim
			}
			return cellOf(v, format), l.th.Text
		}
	}
	why := 12
	if problem || hot {
		why = 24
	}
	return []col[card]{
		{id: "gpu.index", min: 3, want: 3, max: 3, right: true, text: func(c card) (string, themes.Style) { return strconv.Itoa(c.Index), l.th.Strong }},
		{id: "gpu.name", min: 12, want: min(name, 22), max: name, prio: 3, text: func(c card) (string, themes.Style) { return c.Name, l.th.Text }},
		{id: "gpu.util", min: 13, want: 21, max: 65, draw: l.cardUtil},
		{id: "gpu.memory", min: 15, want: 22, max: 36, draw: l.cardMemory},
		{id: "gpu.power", min: 8, want: 8, max: 17, draw: l.cardPower},
		{id: "gpu.temp", min: 4, want: 4, max: 4, right: true, text: l.cardTemp},
		{id: "gpu.clock", min: 5, want: 9, max: 9, right: true, prio: 2, draw: l.cardClock},
		{id: "gpu.memclock", min: 5, want: 5, max: 5, prio: 5, right: true, text: num(func(g *gpu.GPU) gpu.Value { return g.ClockMem }, "%.0f")},
		{id: "gpu.fan", min: 4, want: 4, max: 4, prio: 4, right: true, text: num(func(g *gpu.GPU) gpu.Value { return g.Fan }, "%.0f%%")},
		{id: "gpu.bus", min: 4, want: 4, max: 4, prio: 5, right: true, text: num(func(g *gpu.GPU) gpu.Value { return g.MemUtil }, "%.0f%%")},
		{id: "gpu.state", min: why, want: max(why, min(throttled, 60)), max: max(throttled, why, 24), prio: 1, text: l.cardState},
	}
}

func (l *look) cardUtil(a cell.Area, c card) {
	w := a.W - 5
	a.Spark(0, 0, w, l.th.Accent, &l.gl, c.hist, 100)
	st := l.th.Strong
	switch c.Util.State {
	case gpu.Failed:
		st = l.th.Bad
	case gpu.NA:
		st = l.th.Dim
	}
	a.Right(w, 0, 5, st, cellOf(c.Util, "%.0f%%"))
}

func (l *look) cardMemory(a cell.Area, c card) {
	f := part(c.MemUsed, c.MemTotal)
	n := 9
	if t, ok := c.MemTotal.Get(); ok && t >= 99.95*(1<<30) {
		n = 11
	}
	st := l.th.Text
	if c.MemUsed.State == gpu.Failed {
		st = l.th.Bad
	} else if f >= 0.97 {
		st = l.th.Warn
	}
	a.Right(0, 0, n, st, pair(c.MemUsed, c.MemTotal, gib))
	if a.W > n+3 && !math.IsNaN(f) {
		a.Bar(n+1, 0, a.W-n-1, l.th.Accent, l.th.Faint, &l.gl, f)
	}
}

func (l *look) cardPower(a cell.Area, c card) {
	watts := func(n float64) string { return fmt.Sprintf("%.0f", n) }
	s := pair(c.Power, c.PowerLimit, watts)
	st := l.th.Text
	if _, ok := c.Power.Get(); ok {
		s += "W"
	} else {
		st = l.th.Dim
	}
	a.Right(0, 0, 8, st, s)
	if f := part(c.Power, c.PowerLimit); a.W >= 13 && !math.IsNaN(f) {
		a.Bar(9, 0, a.W-9, l.th.Dim, l.th.Faint, &l.gl, f)
	}
}

func (l *look) cardTemp(c card) (string, themes.Style) {
	t, ok := c.Temp.Get()
	if !ok {
		return cellOf(c.Temp, ""), l.th.Dim
	}
	st := l.heat(t, 83, 90, l.th.Text)
	if m, ok := c.TempMargin.Get(); ok {
		st = l.heat(-m, -7, -2, l.th.Text)
	}
	return fmt.Sprintf("%.0f%s", t, l.gl.Degree), st
}

func (l *look) cardClock(a cell.Area, c card) {
	mhz := func(n float64) string { return fmt.Sprintf("%.0f", n) }
	s := pair(c.ClockSM, c.ClockSMMax, mhz)
	if cell.Width(s) > a.W {
		s = pair(c.ClockSM, gpu.Value{}, mhz)
	}
	a.Right(0, 0, a.W, l.th.Dim, s)
}

// cardState is what is wrong with a card, else why it is slower than it could be.
func (l *look) cardState(c card) (string, themes.Style) {
	switch {
	case c.Problem != "":
		return c.Problem, l.th.Bad
	case len(c.Throttle) > 0 && c.ThrottleHot:
		return l.throttle(c.Throttle), l.th.Warn
	case len(c.Throttle) > 0:
		return l.throttle(c.Throttle), l.th.Dim
	}
	if n, ok := c.ECCErrors.Get(); ok && n > 0 {
		return l.N("gpu.ecc", int(n)), l.th.Bad
	}
	return c.PState, l.th.Faint
}

// throttle is why a card does not run at full speed.
func (l *look) throttle(words []string) string {
	var list []phrase.Text
	for _, w := range words {
		list = append(list, phrase.Word("throttle.", w))
	}
	return l.S(phrase.List(list...))
}

// gpuRows adds the cards.
func (p *page) gpuRows(l *look, s *session.View, w int) {
	if s.Sample == nil {
		return
	}
	if pr := s.Sample.Problem; pr != nil {
		what, cure := session.ProblemText(pr)
		p.text(w, 0, l.th.Bad, l.gl.Alert+" "+l.S(what))
		if len(cure) > 0 {
			p.text(w, 2, l.th.Text, l.gl.Arrow+" "+l.S(cure))
		}
	}
	if len(s.Sample.GPUs) == 0 {
		return
	}
	t := fit(l.gpuCols(s), w)
	p.add(func(r cell.Area) { t.heading(r, l, "", false) })
	for i := range s.Sample.GPUs {
		c := card{GPU: &s.Sample.GPUs[i]}
		if i < len(s.History.Util) {
			c.hist = s.History.Util[i]
		}
		p.add(func(r cell.Area) { t.row(r, c) })
	}
}

// processRows adds the processes that hold the cards, at most n.
func (p *page) processRows(l *look, s *session.View, w, n int) {
	if s.Sample == nil || len(s.Sample.GPUs) == 0 {
		return
	}
	list := s.Sample.Processes
	if len(list) == 0 {
		p.hiddenRows(l, s, 0)
		return
	}
	type proc = *gpu.Process
	t := fit([]col[proc]{
		{id: "gpu.index", min: 3, want: 3, max: 3, right: true, text: func(x proc) (string, themes.Style) {
			if x.GPUIndex < 0 {
				return "?", l.th.Dim
			}
			return strconv.Itoa(x.GPUIndex), l.th.Text
		}},
		{id: "proc.pid", min: 7, want: 7, max: 7, right: true, text: func(x proc) (string, themes.Style) { return strconv.Itoa(x.PID), l.th.Dim }},
		{id: "proc.user", min: 8, want: 8, max: 12, text: func(x proc) (string, themes.Style) { return x.User, l.th.Text }},
		{id: "proc.mem", min: 6, want: 6, max: 6, right: true, text: func(x proc) (string, themes.Style) {
			if v, ok := x.Mem.Get(); ok {
				return size(v), l.th.Text
			}
			return cellOf(x.Mem, ""), l.th.Dim
		}},
		{id: "proc.time", min: 6, want: 6, max: 6, prio: 1, right: true, text: func(x proc) (string, themes.Style) {
			return since(x.StartedAt, l.now), l.th.Dim
		}},
		{id: "proc.command", min: 12, want: 60, max: 400, text: func(x proc) (string, themes.Style) { return x.Command, l.th.Text }},
	}, w)
	p.add(func(r cell.Area) { t.heading(r, l, "", false) })
	for i := range list {
		if i == n && len(list) > n+1 {
			p.add(func(r cell.Area) { r.Put(4, 0, l.th.Dim, l.T("more", len(list)-n)) })
			break
		}
		p.add(func(r cell.Area) { t.row(r, &list[i]) })
	}
	p.hiddenRows(l, s, 4)
}

// hiddenRows says what the container does not show: by GPU where it can be told.
func (p *page) hiddenRows(l *look, s *session.View, x int) {
	rows := session.Hidden(s.Sample)
	for _, t := range rows {
		p.add(func(r cell.Area) { r.Put(x, 0, l.th.Dim, l.S(t)) })
	}
	if len(rows) == 0 && s.Sample.Hidden {
		p.add(func(r cell.Area) { r.Put(x, 0, l.th.Dim, l.T("proc.hidden")) })
	}
}

// ms is a round trip in a few cells.
func ms(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

func itoa(n int) string { return strconv.Itoa(n) }
