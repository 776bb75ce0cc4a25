package tui

import (
	"fmt"
	"testing"

	"rentop/remote/gpu"
	"rentop/session"
)

// crowd is n live instances of k cards, with long histories and Chinese names.
func crowd(n, k int) *session.FleetView {
	base := sample()
	v := *base
	v.Sessions = nil
	for i := range n {
		s := base.Sessions[0]
		s.Name = fmt.Sprintf("训练-%03d", i)
		smp := *s.Sample
		smp.GPUs = nil
		s.History.Util = nil
		for j := range k {
			g := a100()
			g.Index, g.Util = j, gpu.Of(float64((i*7+j*13)%100))
			smp.GPUs = append(smp.GPUs, g)
			s.History.Util = append(s.History.Util, wave(600, 60, 40, i+j))
		}
		s.Sample = &smp
		s.History.Mean = wave(600, 60, 40, i)
		v.Sessions = append(v.Sessions, s)
	}
	return &v
}

// BenchmarkFrame is a whole frame at 200×60, all of it changed: at most 2 ms.
func BenchmarkFrame(b *testing.B) {
	for _, c := range []struct {
		name string
		v    *session.FleetView
		keys []string
	}{
		{"overview-20", crowd(20, 8), nil},
		{"overview-200", crowd(200, 8), []string{"G"}},
		{"instance", crowd(1, 8), []string{"enter"}},
		{"jobs", sample(), []string{"J"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := drive(b, c.v, "zh", 200, 60)
			d.press(c.keys...)
			b.ReportAllocs()
			for b.Loop() {
				d.dirty = true
				d.View()
			}
		})
	}
}

// BenchmarkKey is a key press and the frame that answers it.
func BenchmarkKey(b *testing.B) {
	d := drive(b, crowd(200, 8), "zh", 200, 60)
	down, up := keyOf("j"), keyOf("k")
	for b.Loop() {
		d.Update(down)
		d.View()
		d.Update(up)
		d.View()
	}
}
