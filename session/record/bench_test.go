package record

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"rentop/remote/gpu"
	"rentop/session"
)

// fleetOf is n instances with eight cards each, busy, with whole histories.
func fleetOf(n int, second int) *session.FleetView {
	r := rand.New(rand.NewPCG(1, uint64(second)))
	at := noon.Add(time.Duration(second) * time.Second)
	v := view(second)
	v.Sessions = v.Sessions[:1]
	one := v.Sessions[0]
	v.Sessions = nil
	for i := range n {
		s := one
		s.Name = fmt.Sprintf("h100-%d", i)
		s.History, s.Day = busy(600, second/2, i), busy(1440, second/60, i)
		sm := *one.Sample
		sm.GPUs, sm.TakenAt = nil, at
		for g := range 8 {
			sm.GPUs = append(sm.GPUs, gpu.GPU{Index: g, UUID: fmt.Sprintf("GPU-%d-%d", i, g), Name: "H100 80GB HBM3", Util: gpu.Of(90 + 10*r.Float64()), MemUsed: gpu.Of(70<<30 + r.Float64()*(1<<30)),
				MemTotal: gpu.Of(80 << 30), Power: gpu.Of(600 + 100*r.Float64()), PowerLimit: gpu.Of(700), Temp: gpu.Of(60 + float64(r.IntN(5))), ClockSM: gpu.Of(1980)})
		}
		s.Sample = &sm
		v.Sessions = append(v.Sessions, s)
	}
	v.At = at
	return v
}

// busy is a history of noise that moves on by from steps.
func busy(steps, from, seed int) session.History {
	h := session.History{Step: 2 * time.Second, CPU: make([]float64, steps), Mean: make([]float64, steps)}
	for g := range 8 {
		h.Util, h.Mem = append(h.Util, make([]float64, steps)), append(h.Mem, make([]float64, steps))
		for i := range steps {
			r := rand.New(rand.NewPCG(uint64(seed*8+g), uint64(from+i)))
			h.Util[g][i], h.Mem[g][i] = 90+10*r.Float64(), 80+r.Float64()
			h.CPU[i], h.Mean[i] = h.Util[g][i], h.Util[g][i]
		}
	}
	return h
}

type counting struct{ n int }

func (c *counting) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

var _ io.Writer = (*counting)(nil)

// BenchmarkAdd is a second of twenty machines with eight cards each: what it costs
// and how many bytes it is, whole chunks in their share.
func BenchmarkAdd(b *testing.B) {
	var views []*session.FleetView
	for i := range 60 {
		views = append(views, fleetOf(20, i))
	}
	var out counting
	w, err := New(&out, Options{})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		v := *views[n%60]
		v.At = noon.Add(time.Duration(n) * time.Second)
		if err := w.Add(&v); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(out.n)/float64(n), "bytes/view")
}
