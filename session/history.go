package session

import (
	"cmp"
	"math"
	"slices"
	"time"

	"rentop/remote/gpu"
)

// history keeps the last minutes of a session in steps; a step without a
// sample is a gap, never a repeated value.
type history struct {
	step  time.Duration // 0: historyStep
	most  int           // steps that are kept; 0: historySteps
	begin time.Time     // of the step that is filling
	cur   step
	done  []step   // oldest first, at most that many
	drawn *History // of done; nil: it has changed since
}

func newHistory(step time.Duration, most int) *history { return &history{step: step, most: most} }

const (
	historyStep  = 2 * time.Second
	historySteps = 600 // 20 minutes
)

// step is the means over one step.
type step struct {
	util, mem []mean
	cpu       mean
}

// mean of the values that there were.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v gpu.Value) {
	if x, ok := v.Get(); ok {
		m.sum += x
		m.n++
	}
}

func (m mean) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}

func (h *history) add(s *gpu.Sample) {
	h.advance(s.TakenAt)
	for len(h.cur.util) < len(s.GPUs) {
		h.cur.util = append(h.cur.util, mean{})
		h.cur.mem = append(h.cur.mem, mean{})
	}
	for i, g := range s.GPUs {
		h.cur.util[i].add(g.Util)
		used, ok1 := g.MemUsed.Get()
		total, ok2 := g.MemTotal.Get()
		if ok1 && ok2 && total > 0 {
			h.cur.mem[i].add(gpu.Of(100 * used / total))
		}
	}
	h.cur.cpu.add(s.Host.CPU)
}

// advance closes steps until t falls into the filling one. A clock that went
// back, or a pause longer than the history, begins it anew.
func (h *history) advance(t time.Time) {
	if h.step == 0 {
		h.step, h.most = historyStep, historySteps
	}
	if h.begin.IsZero() || t.Before(h.begin) || t.Sub(h.begin) > time.Duration(h.most)*h.step {
		if !h.begin.IsZero() {
			h.done, h.drawn = nil, nil
			h.cur = step{}
		}
		h.begin = t.Truncate(h.step)
	}
	for t.Sub(h.begin) >= h.step {
		h.done, h.drawn = append(h.done, h.cur), nil
		h.cur = step{}
		h.begin = h.begin.Add(h.step)
	}
	h.shorten()
}

func (h *history) shorten() {
	if n := len(h.done) - h.most; n > 0 {
		h.done = slices.Delete(h.done, 0, n)
	}
}

// fill takes the steps of another history of the same step length where this one has
// heard nothing.
func (h *history) fill(o *history) {
	switch {
	case len(o.done) == 0:
		return
	case h.begin.IsZero():
		*h = *o
		return
	}
	first := o.begin.Add(-time.Duration(len(o.done)) * o.step)
	if lack := int(h.begin.Sub(first)/h.step) - len(h.done); lack > 0 { // it reaches further back
		h.done = append(make([]step, min(lack, h.most)), h.done...)
	}
	for i := range o.done {
		at := len(h.done) - int(h.begin.Sub(first)/h.step) + i
		if at >= 0 && at < len(h.done) && !h.done[at].heard() {
			h.done[at] = o.done[i]
		}
	}
	h.drawn = nil
	h.shorten()
}

func (s *step) heard() bool { return len(s.util) > 0 || s.cpu.n > 0 }

// view gives the closed steps as plain numbers.
func (h *history) view() History {
	if h.drawn == nil {
		v := h.draw()
		h.drawn = &v
	}
	return *h.drawn
}

func (h *history) draw() History {
	gpus := 0
	for _, s := range h.done {
		gpus = max(gpus, len(s.util))
	}
	v := History{Step: cmp.Or(h.step, historyStep), CPU: make([]float64, len(h.done)), Mean: make([]float64, len(h.done))}
	for range gpus {
		v.Util = append(v.Util, make([]float64, len(h.done)))
		v.Mem = append(v.Mem, make([]float64, len(h.done)))
	}
	for i, s := range h.done {
		var all mean
		for g := range gpus {
			u, m := math.NaN(), math.NaN()
			if g < len(s.util) {
				u, m = s.util[g].value(), s.mem[g].value()
				all.sum += s.util[g].sum
				all.n += s.util[g].n
			}
			v.Util[g][i], v.Mem[g][i] = u, m
		}
		v.CPU[i], v.Mean[i] = s.cpu.value(), all.value()
	}
	return v
}
