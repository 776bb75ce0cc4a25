package usage

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
)

var t0 = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

// shot is a sample of GPUs with a utilisation each; below 0 is not available.
func shot(s float64, util ...float64) *sample.Sample {
	x := &sample.Sample{TakenAt: at(s)}
	for _, u := range util {
		g := sample.GPU{Name: "A100", MemUsed: sample.Of(u * 1e9), MemTotal: sample.Of(80e9), Power: sample.Of(100 + u)}
		if u >= 0 {
			g.Util = sample.Of(u)
		} else {
			g.MemUsed, g.Power = sample.Value{}, sample.Value{}
		}
		x.GPUs = append(x.GPUs, g)
	}
	return x
}

func watch(from, to float64, util ...float64) Segment {
	var m Meter
	for s := from; s <= to; s++ {
		m.Add(shot(s, util...))
	}
	seg, _ := m.Cut()
	return seg
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestReceipt(t *testing.T) {
	r := Merge([]Segment{watch(0, 1800, 90, 30), watch(1800, 3600, 50, 0)}, at(0), at(3600))
	if r.Partial || r.Watched != 1 || r.GPUs != 2 {
		t.Errorf("%+v", r)
	}
	near(t, "GPU-hours", r.GPUHours, 2)
	near(t, "busy", r.Busy, 0.85)
	near(t, "mean", r.Mean, 42.5)
	near(t, "peak", r.Peak, 90)
	near(t, "energy", r.Energy, 1800*(190+130)+1800*(150+100))
	near(t, "idle", r.Idle, 0)
	if *r.Mem[0] != 90e9 || *r.Mem[1] != 30e9 {
		t.Errorf("memory %v", r.Mem)
	}
}

func TestPartial(t *testing.T) {
	for name, tt := range map[string]struct {
		segs    []Segment
		to      float64
		partial bool
		watched float64
	}{
		"nobody watched":          {nil, 3600, true, 0},
		"half of it":              {[]Segment{watch(0, 1800, 50)}, 3600, true, 0.5},
		"all but a moment":        {[]Segment{watch(5, 3600, 50)}, 3600, false, 3595.0 / 3600},
		"a short job's beginning": {[]Segment{watch(5, 20, 50)}, 20, false, 0.75},
		"told twice":              {[]Segment{watch(0, 3600, 50), watch(0, 3600, 50)}, 3600, false, 1},
		"a ring beside a session": {[]Segment{watch(0, 3600, 50), watch(1000, 2000, 50), watch(3600, 4000, 50)}, 4000, false, 1},
	} {
		r := Merge(tt.segs, at(0), at(tt.to))
		if r.Partial != tt.partial || math.Abs(r.Watched-tt.watched) > 1e-9 {
			t.Errorf("%s: partial %v, watched %v", name, r.Partial, r.Watched)
		}
		if len(tt.segs) == 0 && (r.Mean != nil || r.GPUHours != nil || r.Energy != nil) {
			t.Errorf("%s: %+v", name, r)
		} else if len(tt.segs) > 0 {
			near(t, name, r.Mean, 50)
		}
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	r := Merge([]Segment{watch(0, 100, -1)}, at(0), at(100))
	if r.Mean != nil || r.Peak != nil || r.Busy != nil || r.Energy != nil || r.Idle != nil || r.Mem[0] != nil {
		t.Errorf("%+v", r)
	}
	near(t, "GPU-hours", r.GPUHours, 100.0/3600)
	if r := Merge([]Segment{watch(0, 100)}, at(0), at(100)); r.GPUHours != nil || r.Partial {
		t.Errorf("a machine without GPUs: %+v", r)
	}
}

func TestGapsAreNotCounted(t *testing.T) {
	var m Meter
	for _, s := range []float64{0, 10, 20, 500, 510, 505, 510} { // and a clock that stepped back
		m.Add(shot(s, 100))
	}
	seg, ok := m.Cut()
	if !ok || seg.Watched != 30 || seg.GPUs[0].Busy != 30 || !seg.To.Equal(at(510)) {
		t.Errorf("%+v", seg)
	}
	m.Add(shot(511, 2))
	if seg, ok = m.Cut(); !ok || seg.Watched != 1 || seg.Idle != 1 || !seg.From.Equal(at(510)) {
		t.Errorf("the next one: %+v", seg)
	}
	if _, ok = m.Cut(); ok {
		t.Error("a segment of nothing")
	}
	got := Gaps([]Segment{watch(100, 200, 1), watch(150, 400, 1)}, at(0), at(1000), time.Minute)
	if want := [][2]time.Time{{at(0), at(150)}, {at(400), at(1000)}}; !reflect.DeepEqual(got, want) {
		t.Errorf("gaps %v", got)
	}
}

// TestCutsAddUp: wherever a watch is cut, and in whatever order it is told, the
// receipt is the same.
func TestCutsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		var one, many Meter
		var list []Segment
		for s := 0.0; s <= 2000; s += 1 + r.Float64()*20 {
			x := shot(s, float64(r.IntN(101)), float64(r.IntN(101)))
			one.Add(x)
			many.Add(x)
			if r.IntN(20) == 0 {
				if seg, ok := many.Cut(); ok {
					list = append(list, seg)
				}
			}
		}
		seg, _ := one.Cut()
		if last, ok := many.Cut(); ok {
			list = append(list, last)
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var back []Segment
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		a, b := Merge([]Segment{seg}, at(0), at(2000)), Merge(back, at(0), at(2000))
		near(t, "mean", b.Mean, *a.Mean)
		near(t, "busy", b.Busy, *a.Busy)
		near(t, "energy", b.Energy, *a.Energy)
		if math.Abs(a.Watched-b.Watched) > 1e-9 || *b.Mem[0] != *a.Mem[0] {
			t.Fatalf("%+v and %+v", a, b)
		}
	}
}

// FuzzMerge feeds segments that no rentop wrote.
func FuzzMerge(f *testing.F) {
	f.Add(`[{"from":"2026-11-30T10:00:00Z","to":"2026-11-30T11:00:00Z","watched_s":3600,"gpus":[{"busy_s":1e308,"busy_of_s":3600}]}]`)
	f.Add(`[{"from":"2026-11-30T10:00:00Z","to":"2026-11-30T11:00:00Z","watched_s":-1}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var list []Segment
		if json.Unmarshal([]byte(text), &list) != nil {
			return
		}
		r := Merge(list, at(0), at(3600))
		for _, v := range []*float64{r.Mean, r.Peak, r.Busy, r.Energy, r.Idle} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0) || *v < 0) {
				t.Errorf("%+v", r)
			}
		}
		Gaps(list, at(0), at(3600), time.Minute)
	})
}
