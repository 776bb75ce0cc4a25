package session

import (
	"math"
	"slices"
	"time"

	"rentop/remote/gpu"
)

// history keeps the last minutes of a session in steps; a step without a
// sample is a gap, never a repeated value.
type history struct {
	begin time.Time // of the step that is filling
	cur   step
	done  []step // oldest first, at most historySteps
}

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
	if h.begin.IsZero() || t.Before(h.begin) || t.Sub(h.begin) > historySteps*historyStep {
		if !h.begin.IsZero() {
			h.done = nil
			h.cur = step{}
		}
		h.begin = t.Truncate(historyStep)
	}
	for t.Sub(h.begin) >= historyStep {
		h.done = append(h.done, h.cur)
		h.cur = step{}
		h.begin = h.begin.Add(historyStep)
	}
	if n := len(h.done); n > historySteps {
		h.done = slices.Delete(h.done, 0, n-historySteps)
	}
}

// view gives the closed steps as plain numbers.
func (h *history) view() History {
	gpus := 0
	for _, s := range h.done {
		gpus = max(gpus, len(s.util))
	}
	v := History{Step: historyStep, CPU: make([]float64, len(h.done)), Mean: make([]float64, len(h.done))}
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
