package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// node is a machine at work: what changes from second to second on a real one.
func node(gpus int, r *rand.Rand, second int) Sample {
	at := time.Date(2026, 11, 30, 12, 0, second, 123e6, time.UTC)
	s := Sample{TakenAt: at, Source: "nvml", Driver: "590.48.01",
		Host: Host{CPUs: 192, CPU: Of(30 + 10*r.Float64()), Load1: Of(40 + r.Float64()), MemUsed: Of(float64(300<<30 + r.IntN(1<<30))), MemTotal: Of(2 << 40),
			NetRx: Of(1e6 * r.Float64()), NetTx: Of(1e6 * r.Float64()), UptimeSec: Of(float64(86400 + second)), IOWait: Of(r.Float64()), Steal: Of(0),
			Disks: []Disk{{Mount: "/", Used: Of(100 << 30), Total: Of(500 << 30), InodesUsed: Of(3)}, {Mount: "/root/data", Used: Of(1 << 40), Total: Of(4 << 40), InodesUsed: Value{Why: "none"}}}}}
	for i := range gpus {
		g := NewGPU("not supported")
		g.Index, g.UUID, g.Name, g.PCIBus, g.PState, g.MIG = i, fmt.Sprintf("GPU-8b5fdd93-0d95-6c50-%04d-5f3cf3dc%04d", i, i), "H100 80GB HBM3", fmt.Sprintf("00000000:%02X:00.0", i), "P0", "Disabled"
		g.Throttle, g.ThrottleKnown = []string{"power cap"}, true
		g.Util, g.MemUtil = Of(float64(90+r.IntN(11))), Of(float64(40+r.IntN(20)))
		g.MemUsed, g.MemTotal, g.MemReserved = Of(float64(70<<30)), Of(80<<30), Of(479<<20)
		if second%5 == 0 {
			g.MemUsed.V += float64(r.IntN(50) << 21)
		}
		g.Power, g.PowerLimit = Of(600+80*r.Float64()), Of(700)
		g.Temp, g.TempMargin = Of(float64(60+r.IntN(3))), Of(float64(24+r.IntN(3)))
		g.ClockSM, g.ClockMem = Of(float64(1965+15*r.IntN(2))), Of(2619)
		g.NVLinkRx, g.NVLinkTx = Of(1e11*r.Float64()), Of(1e11*r.Float64())
		g.NVLinks, g.NVLinksDown, g.ECCErrors, g.ECCCorrected = Of(18), Of(0), Of(0), Of(0)
		if second%10 == 0 {
			g.PCIeRx, g.PCIeTx = Of(1e9*r.Float64()), Of(1e9*r.Float64())
		}
		s.GPUs = append(s.GPUs, g)
		s.Processes = append(s.Processes, Process{GPUIndex: i, PID: 1000 + i, User: "root", Command: "python -m torch.distributed.run --nproc 8 train.py --config big.yaml", Mem: Of(70 << 30), StartedAt: at.Add(-time.Hour).Truncate(time.Hour)})
	}
	return s
}

// The promise is less than 300 bytes a sample for eight GPUs, whole messages and
// slow figures included.
func TestBytesASample(t *testing.T) {
	var e Encoder
	r := rand.New(rand.NewPCG(1, 2))
	total, first := 0, 0
	const n = 600
	for i := range n {
		b := e.Append(nil, node(8, r, i))
		if total += len(b); i == 0 {
			first = len(b)
		}
	}
	t.Logf("8 busy GPUs: the first message %d bytes, %.0f a sample in the mean over %d s", first, float64(total)/n, n)
	if mean := total / n; mean >= 300 {
		t.Errorf("%d bytes a sample, want less than 300", mean)
	}
}

// coarse is what the wire keeps of a sample.
func coarse(s Sample) Sample {
	s = bounded(s)
	s.TakenAt = moment(stamp(s.TakenAt))
	for _, c := range s.cells() {
		v := steps(c)
		*c.Value = plausible(v, kinds[c.kind].steps, kinds[c.kind].lowest, kinds[c.kind].highest)
	}
	for i := range s.Processes {
		s.Processes[i].StartedAt = moment(stamp(s.Processes[i].StartedAt))
	}
	return s
}

func TestStreamComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var e Encoder
	var d Decoder
	for i := range 2000 {
		s := node([]int{0, 1, 8, 8, 8, 16}[i/300%6], r, i)
		for range r.IntN(6) {
			spoil(&s, r)
		}
		b := e.Append(nil, s)
		got, err := d.Decode(b)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if want := coarse(s); !same(got, want) {
			t.Fatalf("message %d (%d bytes):\n got %+v\nwant %+v", i, len(b), got, want)
		}
	}
}

// same compares samples, an empty list being as good as none.
func same(a, b Sample) bool {
	return strings.ReplaceAll(fmt.Sprintf("%#v", tidy(a)), "(nil)", "{}") == strings.ReplaceAll(fmt.Sprintf("%#v", tidy(b)), "(nil)", "{}")
}

func tidy(s Sample) any {
	p := Problem{}
	if s.Problem != nil {
		p = *s.Problem
	}
	s.Problem = nil
	return []any{s, p}
}

// spoil changes a sample as an instance may.
func spoil(s *Sample, r *rand.Rand) {
	cells := s.cells()
	switch r.IntN(8) {
	case 0:
		*cells[r.IntN(len(cells))].Value = Value{State: Failed, Why: fmt.Sprintf("error %d", r.IntN(300))}
	case 1:
		*cells[r.IntN(len(cells))].Value = Value{Why: "not supported"}
	case 2:
		*cells[r.IntN(len(cells))].Value = Of(math.Inf(1 - 2*r.IntN(2)))
	case 3:
		*cells[r.IntN(len(cells))].Value = Of(float64(r.IntN(100)))
	case 4:
		s.Problem = &Problem{What: "driver hung, 42 s", Cure: "restart"}
	case 5:
		s.Processes = s.Processes[:r.IntN(len(s.Processes)+1)]
		s.Hidden = true
	case 6:
		if len(s.GPUs) > 0 {
			g := &s.GPUs[r.IntN(len(s.GPUs))]
			g.XIDs, g.HiddenProcs = []XID{{79, time.UnixMilli(1.8e12).UTC()}, {48, time.UnixMilli(1.8e12 + 7).UTC()}}, 3
			g.Instances = []Instance{{7, 0, "1g.10gb", "MIG-1", Of(1 << 30), Of(10 << 30), Value{Why: "not told"}}}
			g.Problem = "the GPU is lost"
		}
	case 7:
		s.Host.Disks = s.Host.Disks[:1]
	}
}

func TestStreamRefuses(t *testing.T) {
	var e Encoder
	r := rand.New(rand.NewPCG(5, 6))
	first, second, third := e.Append(nil, node(2, r, 0)), e.Append(nil, node(2, r, 1)), e.Append(nil, node(2, r, 2))
	if _, err := new(Decoder).Decode(second); err != errNotWhole {
		t.Errorf("a stream from its middle: %v", err)
	}
	d := new(Decoder)
	if _, err := d.Decode(first); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(third); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a message left out: %v", err)
	}
	newer := append([]byte{2}, first[1:]...)
	if _, err := new(Decoder).Decode(newer); err == nil || !strings.Contains(err.Error(), "version 2") || !strings.Contains(err.Error(), "rentop 1") {
		t.Errorf("a newer helper: %v", err)
	}
	for i := range first {
		if _, err := new(Decoder).Decode(first[:i]); err == nil {
			t.Errorf("cut after %d bytes is taken", i)
		}
	}
	if _, err := new(Decoder).Decode(append(first[:len(first):len(first)], 0)); err == nil {
		t.Error("a byte too many is taken")
	}
}

// Every cell has a kind, and the kinds are of cells.
func TestKinds(t *testing.T) {
	if n := len(new(GPU).Cells()); n != len(gpuKinds) {
		t.Fatalf("%d cells, %d kinds", n, len(gpuKinds))
	}
	values := 0
	for i := range reflect.TypeFor[GPU]().NumField() {
		if reflect.TypeFor[GPU]().Field(i).Type == reflect.TypeFor[Value]() {
			values++
		}
	}
	if values != len(gpuKinds) {
		t.Errorf("a GPU has %d values, Cells gives %d", values, len(gpuKinds))
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, 8} {
		var e Encoder
		f.Add(e.Append(nil, node(n, r, 0)), e.Append(nil, node(n, r, 1)))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var d Decoder
		for _, m := range [][]byte{a, b} {
			s, err := d.Decode(m)
			if err != nil {
				return
			}
			for _, c := range s.cells() {
				if c.State == OK && !(c.V >= kinds[c.kind].lowest && c.V <= kinds[c.kind].highest) {
					t.Errorf("%+v", c)
				}
			}
			for _, p := range s.Processes {
				if strings.ContainsAny(p.Command+p.User, "\x1b\n") {
					t.Errorf("process %q", p.Command)
				}
			}
			if _, err := s.MarshalJSON(); err != nil {
				t.Error(err)
			}
			if len(s.GPUs) > 2 || len(s.Processes) > 9 {
				continue
			}
			var again Decoder
			back, err := again.Decode(new(Encoder).Append(nil, s))
			if err != nil || !same(back, coarse(s)) {
				t.Errorf("written again: %v\n got %+v\nwant %+v", err, back, coarse(s))
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []Sample
	for i := range 60 {
		all = append(all, node(8, r, i))
	}
	var e Encoder
	var buf []byte
	for i := 0; b.Loop(); i++ {
		buf = e.Append(buf[:0], all[i%len(all)])
	}
}
