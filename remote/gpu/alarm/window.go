package alarm

import (
	"fmt"
	"math"
	"slices"
	"time"

	"rentop/remote/gpu/sample"
)

// window is the recent past in steps, as rules look at it.
type window struct {
	ticks []tick
}

const (
	step   = 2 * time.Second
	length = 600 // 20 minutes
	gap    = 15 * time.Second
)

// tick is one sample's figures; NaN where there is none.
type tick struct {
	at                time.Time
	cards             []card
	cpu, wait, steal  float64
	disks             []disk
	processes, hidden int
}

type card struct {
	util, used, total, power float64 // percent, bytes, bytes, percent of the limit
	errors                   float64
}

type disk struct {
	mount       string
	used, total float64
}

func num(v sample.Value) float64 {
	if f, ok := v.Get(); ok {
		return f
	}
	return math.NaN()
}

// add keeps a sample. One that is not newer than the last by a step is left out; a
// clock that went back begins the window anew.
func (w *window) add(s *sample.Sample) {
	if n := len(w.ticks); n > 0 {
		d := s.TakenAt.Sub(w.ticks[n-1].at)
		switch {
		case d < -gap || d > length*step:
			w.ticks = nil
		case d < step:
			return
		}
	}
	t := tick{at: s.TakenAt, cpu: num(s.Host.CPU), wait: num(s.Host.IOWait), steal: num(s.Host.Steal), processes: len(s.Processes)}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		c := card{util: num(g.Util), used: num(g.MemUsed), total: num(g.MemTotal), power: 100 * num(g.Power) / num(g.PowerLimit), errors: num(g.ECCErrors)}
		t.cards = append(t.cards, c)
		t.hidden += g.HiddenProcs
	}
	for _, d := range s.Host.Disks {
		t.disks = append(t.disks, disk{d.Mount, num(d.Used), num(d.Total)})
	}
	w.ticks = append(w.ticks, t)
	if n := len(w.ticks); n > length {
		w.ticks = slices.Delete(w.ticks, 0, n-length)
	}
}

// last gives the ticks of the last while, oldest first; whole says whether they
// reach that far back without a gap.
func (w *window) last(d time.Duration) (ticks []tick, whole bool) {
	n := len(w.ticks)
	if n == 0 {
		return nil, false
	}
	end := w.ticks[n-1].at
	i := n - 1
	for i > 0 && end.Sub(w.ticks[i-1].at) <= d && w.ticks[i].at.Sub(w.ticks[i-1].at) <= gap {
		i--
	}
	return w.ticks[i:], end.Sub(w.ticks[i].at) >= d-gap
}

// series is one figure over ticks, without what is unknown; missing says how many.
func series(ticks []tick, f func(*tick) float64) (xs []float64, missing int) {
	for i := range ticks {
		if x := f(&ticks[i]); math.IsNaN(x) {
			missing++
		} else {
			xs = append(xs, x)
		}
	}
	return xs, missing
}

// steady gives mean and deviation of a figure, where nearly all of it is known.
func steady(ticks []tick, f func(*tick) float64) (mean, deviation float64, ok bool) {
	xs, missing := series(ticks, f)
	if len(xs) < 5 || missing > len(xs)/4 {
		return 0, 0, false
	}
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	for _, x := range xs {
		deviation += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(xs))), true
}

// growth is how fast a figure grows, a second. It must grow in every sixth of the
// ticks, and about alike: a jump is no growth.
func growth(ticks []tick, f func(*tick) float64) (perSecond float64, ok bool) {
	const parts = 6
	xs, missing := series(ticks, f)
	n := len(xs) / parts
	if n < 4 || missing > 0 {
		return 0, false
	}
	var means, steps []float64
	for i := range parts {
		sum := 0.0
		for _, x := range xs[i*n : (i+1)*n] {
			sum += x
		}
		means = append(means, sum/float64(n))
		if i > 0 {
			steps = append(steps, means[i]-means[i-1])
		}
	}
	slices.Sort(steps)
	if steps[0] <= 0 || steps[len(steps)-1] > 3*steps[len(steps)/2] {
		return 0, false
	}
	seconds := ticks[(parts-1)*n].at.Sub(ticks[0].at).Seconds()
	if seconds <= 0 {
		return 0, false
	}
	return (means[parts-1] - means[0]) / seconds, true
}

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
