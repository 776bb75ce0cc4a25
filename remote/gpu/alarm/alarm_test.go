package alarm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// machine is a healthy instance with two GPUs, at work.
func machine() *sample.Sample {
	s := &sample.Sample{Source: "nvml", Host: sample.Host{CPU: sample.Of(30), IOWait: sample.Of(1), Steal: sample.Of(0), GPUOpen: sample.Of(2),
		Disks: []sample.Disk{{Mount: "/", Used: sample.Of(50 << 30), Total: sample.Of(100 << 30), InodesUsed: sample.Of(10)}}}}
	for i := range 2 {
		g := sample.NewGPU("not supported")
		g.Index, g.UUID = i, fmt.Sprint("GPU-", i)
		g.Util, g.MemUsed, g.MemTotal, g.Power, g.PowerLimit, g.Temp = sample.Of(95), sample.Of(60<<30), sample.Of(80<<30), sample.Of(600), sample.Of(700), sample.Of(70)
		g.ECCErrors, g.RemapPending, g.RemapFailed, g.NVLinksDown = sample.Of(3), sample.Of(0), sample.Of(0), sample.Of(0)
		s.GPUs = append(s.GPUs, g)
		s.Processes = append(s.Processes, sample.Process{GPUIndex: i, PID: 100 + i, Command: "python train.py", Mem: sample.Of(60 << 30), StartedAt: noon.Add(-time.Hour)})
	}
	return s
}

// run steps a Watch each two seconds for a while; shape makes each moment. It gives
// when each finding was first said and when it was last.
func run(w *Watch, from time.Time, d time.Duration, shape func(t time.Duration, m *Moment)) (first, last map[string]time.Duration, end []Finding) {
	first, last = map[string]time.Duration{}, map[string]time.Duration{}
	for t := time.Duration(0); t <= d; t += 2 * time.Second {
		m := Moment{At: from.Add(t), Live: true, Sample: machine(), Jobs: []Job{{Name: "train", Running: true, Began: noon.Add(-time.Hour)}}}
		if shape != nil {
			shape(t, &m)
		}
		if m.Sample != nil {
			m.Sample.TakenAt = m.At
		}
		end = w.Step(m, Usual())
		for _, f := range end {
			if _, ok := first[f.ID]; !ok {
				first[f.ID] = t
			}
			last[f.ID] = t
		}
	}
	return first, last, end
}

func TestHealthyMachineIsSilent(t *testing.T) {
	for name, shape := range map[string]func(time.Duration, *Moment){
		"at work": nil,
		"jittering": func(t time.Duration, m *Moment) {
			r := rand.New(rand.NewPCG(uint64(t), 1))
			for i := range m.Sample.GPUs {
				m.Sample.GPUs[i].Util = sample.Of(float64(60 + r.IntN(41)))
				m.Sample.GPUs[i].MemUsed = sample.Of(60<<30 + float64(r.IntN(8<<30)))
			}
			m.Sample.Host.CPU = sample.Of(float64(r.IntN(100)))
		},
		"idle but fresh": func(t time.Duration, m *Moment) {
			m.Jobs = nil
			for i := range m.Sample.GPUs {
				m.Sample.GPUs[i].Util, m.Sample.GPUs[i].Power = sample.Of(0), sample.Of(70)
			}
			if t > 9*time.Minute {
				m.Sample.GPUs[0].Util = sample.Of(50)
			}
		},
		"a model that is loaded": func(t time.Duration, m *Moment) {
			if t < time.Minute {
				m.Sample.GPUs[0].MemUsed = sample.Of(1 << 30)
			} else {
				m.Sample.GPUs[0].MemUsed = sample.Of(76 << 30)
			}
		},
		"nothing is known": func(t time.Duration, m *Moment) {
			g := sample.NewGPU("no")
			m.Sample = &sample.Sample{GPUs: []sample.GPU{g}}
		},
		"no sample": func(t time.Duration, m *Moment) { m.Sample, m.Live = nil, false },
	} {
		if first, _, _ := run(new(Watch), noon, 11*time.Minute, shape); len(first) > 0 {
			t.Errorf("%s: %v", name, first)
		}
	}
}

// Each rule: what makes it speak, how soon, and that it ends.
func TestRules(t *testing.T) {
	const ill = 5 * time.Minute // from here on, until
	const well = 12 * time.Minute
	code := 1
	for _, c := range []struct {
		id     string
		key    string
		level  Level
		within time.Duration // after the trouble began
		keeps  bool          // it does not end with the trouble
		shape  func(t time.Duration, m *Moment)
	}{
		{"gpu1", "alert.gpu", Urgent, 0, false, func(_ time.Duration, m *Moment) { m.Sample.GPUs[1].Problem = "the GPU is lost" }},
		{"driver", "alert.driver", Urgent, 0, false, func(_ time.Duration, m *Moment) { m.Sample.Problem = &sample.Problem{What: "driver hung, 42 s"} }},
		{"xid 79 gpu 0", "alert.xid", Urgent, 0, true, func(_ time.Duration, m *Moment) {
			m.Sample.GPUs[0].XIDs = []sample.XID{{Code: 79, At: noon.Add(ill)}}
		}},
		{"ecc0", "alert.ecc", Urgent, 0, false, func(_ time.Duration, m *Moment) { m.Sample.GPUs[0].ECCErrors = sample.Of(4) }},
		{"remap0", "alert.remap.pending", Warn, 0, false, func(_ time.Duration, m *Moment) { m.Sample.GPUs[0].RemapPending = sample.Of(1) }},
		{"remap1", "alert.remap.failed", Urgent, 0, false, func(_ time.Duration, m *Moment) { m.Sample.GPUs[1].RemapFailed = sample.Of(1) }},
		{"hot", "alert.hot.many", Warn, 6 * time.Second, false, func(_ time.Duration, m *Moment) {
			for i := range m.Sample.GPUs {
				m.Sample.GPUs[i].Throttle, m.Sample.GPUs[i].ThrottleHot = []string{"too hot (hardware)"}, true
			}
		}},
		{"brake", "alert.brake", Urgent, 4 * time.Second, false, func(_ time.Duration, m *Moment) {
			m.Sample.GPUs[0].Throttle, m.Sample.GPUs[0].ThrottleHot = []string{"power brake"}, true
		}},
		{"memory", "alert.memory", Info, 10 * time.Second, false, func(_ time.Duration, m *Moment) { m.Sample.GPUs[0].MemUsed = sample.Of(79 << 30) }},
		{"filling1", "alert.filling", Warn, 3 * time.Minute, false, func(t time.Duration, m *Moment) {
			m.Sample.GPUs[1].MemUsed = sample.Of(60<<30 + (t-ill).Seconds()*40*(1<<20)) // full in 8.5 min
		}},
		{"disk /", "alert.disk", Warn, 0, false, func(_ time.Duration, m *Moment) { m.Sample.Host.Disks[0].Used = sample.Of(96 << 30) }},
		{"disk /", "alert.disk.soon", Warn, 7 * time.Minute, false, func(t time.Duration, m *Moment) {
			m.Sample.Host.Disks[0].Used = sample.Of(75<<30 + (t-ill).Seconds()*20*(1<<20)) // full in 21 min
		}},
		{"inodes /", "alert.inodes", Warn, 0, false, func(_ time.Duration, m *Moment) { m.Sample.Host.Disks[0].InodesUsed = sample.Of(99) }},
		{"starved", "alert.starved", Warn, 5 * time.Minute, false, func(t time.Duration, m *Moment) {
			m.Sample.Host.CPU = sample.Of(97)
			m.Sample.GPUs[0].Util = sample.Of([]float64{0, 0, 100, 90}[int(t/(2*time.Second))%4])
		}},
		{"steal", "alert.steal", Warn, 4 * time.Minute, false, func(_ time.Duration, m *Moment) { m.Sample.Host.Steal = sample.Of(25) }},
		{"neighbour", "alert.neighbour", Warn, 2 * time.Minute, false, func(_ time.Duration, m *Moment) {
			m.Sample.Host.GPUOpen, m.Sample.Processes = sample.Of(0), nil
		}},
		{"shallow", "alert.shallow", Info, 6 * time.Minute, false, func(_ time.Duration, m *Moment) {
			m.Sample.GPUs[0].Util, m.Sample.GPUs[0].Power = sample.Of(100), sample.Of(120)
		}},
		{"link0", "alert.nvlink", Warn, 10 * time.Second, false, func(_ time.Duration, m *Moment) { m.Sample.GPUs[0].NVLinksDown = sample.Of(1) }},
		{"unreachable", "alert.unreachable", Warn, 0, false, func(_ time.Duration, m *Moment) {
			m.Live, m.Sample, m.Billed, m.Unreachable = false, nil, true, 2*time.Minute
		}},
		{"budget", "alert.budget.part", Info, 0, false, func(_ time.Duration, m *Moment) { m.Budget, m.Spent = "¥50", 0.55 }},
		{"budget", "alert.budget.part", Warn, 0, false, func(_ time.Duration, m *Moment) { m.Budget, m.Spent = "¥50", 0.85 }},
		{"budget", "alert.budget.used", Urgent, 0, false, func(_ time.Duration, m *Moment) { m.Budget, m.Spent = "¥50", 1.01 }},
		{"runway", "alert.runway", Urgent, 0, false, func(_ time.Duration, m *Moment) { m.Billed, m.Runway = true, time.Hour }},
		{"stale /ckpt", "alert.stale", Warn, 0, false, func(_ time.Duration, m *Moment) {
			m.Watched = []Watched{{"/ckpt", m.At.Add(-time.Hour), 10 * time.Minute}}
		}},
		{"job train", "alert.job.failed", Warn, 0, true, func(t time.Duration, m *Moment) {
			m.Jobs = []Job{{Name: "train", Code: &code, Began: noon.Add(-time.Hour), Ended: noon.Add(ill)}}
			m.Sample.Processes = nil
		}},
		{"job train", "alert.job.ended", Info, 0, true, func(t time.Duration, m *Moment) {
			m.Jobs = []Job{{Name: "train", Code: new(int), Began: noon.Add(-time.Hour), Ended: noon.Add(ill)}}
			m.Sample.Processes = nil
		}},
		{"leftover", "alert.leftover", Warn, 2 * time.Minute, false, func(_ time.Duration, m *Moment) {
			m.Jobs = []Job{{Name: "train", Code: new(int), Began: noon.Add(-2 * time.Hour), Ended: noon.Add(ill)}}
		}},
	} {
		w := new(Watch)
		first, last, _ := run(w, noon, 20*time.Minute, func(d time.Duration, m *Moment) {
			if d >= ill && d < well {
				c.shape(d, m)
			}
		})
		at, said := first[c.id]
		if !said || at < ill || at > ill+c.within+2*time.Second {
			t.Errorf("%s %s: said %v after %v, want within %v", c.id, c.key, said, at-ill, c.within)
			continue
		}
		if !c.keeps && last[c.id] > well+5*time.Minute {
			t.Errorf("%s: still said %v after it was over", c.id, last[c.id]-well)
		}
		var past []Past
		for _, p := range w.Past() {
			if p.ID == c.id {
				past = append(past, p)
			}
		}
		if len(past) != 1 || past[0].Text.Key != c.key || past[0].Level != c.level || past[0].Ended.IsZero() && !c.keeps {
			t.Errorf("%s: the history holds %+v, want one %s of level %d", c.id, past, c.key, c.level)
		}
		delete(first, c.id)
		if len(first) > 0 {
			t.Errorf("%s: others speak too: %v", c.id, first)
		}
	}
}

func TestIdle(t *testing.T) {
	w := new(Watch)
	shape := func(d time.Duration, m *Moment) {
		m.Jobs, m.PerHour = nil, "¥8.00"
		m.Hourly = func(d time.Duration) any { return fmt.Sprintf("¥%.2f", 8*d.Hours()) }
		for i := range m.Sample.GPUs {
			m.Sample.GPUs[i].Util = sample.Of(1)
		}
		if d > 25*time.Minute {
			m.Sample.GPUs[1].Util = sample.Of(90)
		}
	}
	first, last, _ := run(w, noon, 30*time.Minute, shape)
	if first["idle"] != 10*time.Minute || last["idle"] != 25*time.Minute {
		t.Errorf("said from %v to %v", first["idle"], last["idle"])
	}
	p := w.Past()[0]
	keys := []string{p.Text.Key}
	for _, more := range p.Text.More {
		keys = append(keys, more.Key)
	}
	if !slices.Equal(keys, []string{"alert.idle", "alert.idle.rate", "alert.idle.cost", "alert.idle.holder"}) || !p.Since.Equal(noon) {
		t.Errorf("evidence %v since %v", keys, p.Since)
	}
	if c := p.Text.More[1].Args[0]; c != "¥3.33" {
		t.Errorf("25 min cost %v", c)
	}
	if h := p.Text.More[2].Args; h[0] != "python train.py (PID 100)" || h[1] != "60.0 GiB" {
		t.Errorf("holder %v", h)
	}
}

// A card that is split by MIG has no utilisation: it is idle while its parts hold
// nothing, and not known to be while one does.
func TestIdleMIG(t *testing.T) {
	first, last, _ := run(new(Watch), noon, 40*time.Minute, func(d time.Duration, m *Moment) {
		m.Jobs = nil
		for i := range m.Sample.GPUs {
			m.Sample.GPUs[i].Util = sample.Of(0)
		}
		held := 26 << 20
		if d < 20*time.Minute || d > 35*time.Minute {
			held = 248 << 20
		}
		g := &m.Sample.GPUs[1]
		g.Util, g.MIG = sample.Value{Why: "not supported"}, "Enabled"
		g.Instances = []sample.Instance{{MemUsed: sample.Of(float64(held)), MemTotal: sample.Of(40 << 30)}}
	})
	if first["idle"] != 30*time.Minute || last["idle"] != 35*time.Minute {
		t.Errorf("said from %v to %v", first["idle"], last["idle"])
	}
}

func TestSilence(t *testing.T) {
	w := new(Watch)
	w.Silence("gpu1", noon.Add(5*time.Minute))
	first, _, _ := run(w, noon, 8*time.Minute, func(_ time.Duration, m *Moment) { m.Sample.GPUs[1].Problem = "lost" })
	if first["gpu1"] != 5*time.Minute || len(w.Past()) != 1 {
		t.Errorf("said after %v, history %v", first["gpu1"], w.Past())
	}
}

// What flickers is said once, not each time.
func TestHysteresis(t *testing.T) {
	w := new(Watch)
	run(w, noon, 10*time.Minute, func(d time.Duration, m *Moment) {
		if on := int(d/(2*time.Second))%5 != 0; on {
			m.Sample.GPUs[0].Throttle, m.Sample.GPUs[0].ThrottleHot = []string{"too hot (driver)"}, true
		}
		m.Sample.GPUs[1].MemUsed = sample.Of([]float64{78.5, 77}[int(d/(2*time.Second))%2] * (1 << 30)) // about the limit
	})
	if n := len(w.Past()); n > 2 {
		t.Errorf("%d entries for two troubles: %+v", n, w.Past())
	}
	w = new(Watch)
	if first, _, _ := run(w, noon, time.Minute, func(d time.Duration, m *Moment) {
		m.Sample.GPUs[0].ThrottleHot = d == 20*time.Second // for one tick
	}); len(first) > 0 {
		t.Errorf("a blink is said: %v", first)
	}
}

// A restart of rentop does not say the ends of jobs anew, and a clock that is set
// back leaves no finding that lasts for ever.
func TestTimeAndRestarts(t *testing.T) {
	code := 1
	if first, _, _ := run(new(Watch), noon, time.Minute, func(_ time.Duration, m *Moment) {
		m.Jobs = []Job{{Name: "train", Code: &code, Began: noon.Add(-time.Hour), Ended: noon.Add(-time.Minute)}}
		m.Sample.Processes = nil
	}); len(first) > 0 {
		t.Errorf("a job that ended before: %v", first)
	}
	w := new(Watch)
	run(w, noon, 5*time.Minute, func(_ time.Duration, m *Moment) { m.Sample.GPUs[0].Problem = "lost" })
	if _, _, end := run(w, noon.Add(-time.Hour), 10*time.Second, nil); len(end) > 0 {
		t.Errorf("after the clock went back: %v", end)
	}
}
