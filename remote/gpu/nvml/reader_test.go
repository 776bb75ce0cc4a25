//go:build linux && cgo

package nvml

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
)

func TestReadsEveryCell(t *testing.T) {
	holdDevice(t)
	for _, n := range []int{1, 8} {
		b := start(t, 590, "590.48.01", setting{gpus, n}, setting{linkUp, 18}, setting{procs, 1}, setting{pids, os.Getpid()})
		s := b.whole(n)
		if s.Driver != "590.48.01" || s.Source != "nvml" || s.Problem != nil {
			t.Errorf("sample = %q %q %+v", s.Driver, s.Source, s.Problem)
		}
		for i, g := range s.GPUs {
			want := map[string][2]sample.Value{
				"util": {g.Util, sample.Of(float64(90 + i))}, "mem": {g.MemUsed, sample.Of(10 << 30)}, "reserved": {g.MemReserved, sample.Of(300 << 20)},
				"total": {g.MemTotal, sample.Of(80 << 30)}, "power": {g.Power, sample.Of(412.345)}, "limit": {g.PowerLimit, sample.Of(700)},
				"temp": {g.Temp, sample.Of(61)}, "margin": {g.TempMargin, sample.Of(26)}, "fan": {g.Fan, sample.Value{Why: "not supported"}},
				"clock": {g.ClockSM, sample.Of(1980)}, "ecc": {g.ECCErrors, sample.Of(0)}, "corrected": {g.ECCCorrected, sample.Of(3)},
				"rows": {g.RemappedRows, sample.Of(2)}, "pending": {g.RemapPending, sample.Of(1)}, "links": {g.NVLinks, sample.Of(18)},
				"encoder": {g.Encoder, sample.Of(7)}, "decoder": {g.Decoder, sample.Of(8)}, "gen": {g.PCIeGen, sample.Of(5)},
				"width": {g.PCIeWidthMax, sample.Of(16)}, "rx": {g.PCIeRx, sample.Of(1000 * 1024)},
			}
			for name, v := range want {
				if d := v[0].V - v[1].V; v[0].State != v[1].State || v[0].Why != v[1].Why || d > 1e-6 || d < -1e-6 {
					t.Errorf("%d GPUs, %d: %s = %+v, want %+v", n, i, name, v[0], v[1])
				}
			}
			if g.Index != i || g.Name != "Stand-in ␛[31mCard" || g.UUID != fmt.Sprintf("GPU-standin-%d-0", i) || g.PState != "P0" || !g.ThrottleHot || strings.Join(g.Throttle, ", ") != "power cap, too hot (driver)" {
				t.Errorf("%d GPUs, %d = %+v", n, i, g)
			}
		}
		s = b.until("its own process", func(s sample.Sample) bool { return len(s.Processes) == n })
		p := s.Processes[0]
		if p.PID != os.Getpid() || p.Mem != sample.Of(4<<30) || p.User == "" || time.Since(p.StartedAt) > time.Hour || !inContainer() && p.Command == "" {
			t.Errorf("process = %+v", p)
		}
	}
}

// PCIe throughput blocks for 20 ms a call: two calls in each slow reading, none in
// a fast one.
func TestPCIeThroughputIsSlow(t *testing.T) {
	b := start(t, 590, "590.48.01")
	b.whole(1)
	before, from := b.get(pcieCalls), time.Now()
	n := 0
	for time.Since(from) < 1500*time.Millisecond {
		b.until("a sample", func(sample.Sample) bool { return true })
		n++
	}
	if got := b.get(pcieCalls) - before; n < 10 || got < 4 || got > 2*6 {
		t.Errorf("%d samples in 1.5 s made %d calls, want two each 300 ms", n, got)
	}
}

// A library of an old driver lacks calls. None of them is made, and each cell says so.
func TestOldSymbolSets(t *testing.T) {
	holdDevice(t)
	for _, c := range []struct {
		level                      int
		driver                     string
		reserved, remapped, margin sample.ValueState
		used                       float64
	}{
		{418, "418.226.00", sample.NA, sample.NA, sample.OK, 10<<30 + 300<<20},
		{470, "470.256.02", sample.NA, sample.OK, sample.OK, 10<<30 + 300<<20},
		{535, "535.54.03", sample.OK, sample.OK, sample.OK, 10 << 30},
	} {
		b := start(t, c.level, c.driver, setting{gpus, 2}, setting{procs, 3}, setting{pids, os.Getpid()}, setting{pids + 1, 1}, setting{pids + 2, 1 << 22})
		s := b.whole(2)
		g := s.GPUs[1]
		if g.MemReserved.State != c.reserved || g.RemappedRows.State != c.remapped || g.TempMargin.State != c.margin || g.MemUsed != sample.Of(c.used) || g.Util != sample.Of(91) {
			t.Errorf("%s = %+v", c.driver, g)
		}
		if g.RemappedRows.State == sample.NA && g.RemappedRows.Why != "not offered by this driver" {
			t.Errorf("%s: %+v", c.driver, g.RemappedRows)
		}
		if c.level == 535 { // its process list runs over the buffer: nvitop#89
			if len(s.Processes) != 0 || !s.Hidden || !strings.Contains(g.HiddenMem.Why, "tells its processes wrongly") {
				t.Errorf("%s: processes %+v, hidden %v, %+v", c.driver, s.Processes, s.Hidden, g.HiddenMem)
			}
			continue
		}
		b.until("the processes that are here", func(s sample.Sample) bool {
			for _, p := range s.Processes {
				if p.PID == 1<<22 {
					t.Errorf("%s shows a process that is not here: %+v", c.driver, p)
				}
			}
			return len(s.Processes) > 0 && s.GPUs[0].HiddenProcs > 0 && s.Hidden && s.GPUs[0].HiddenMem.State == sample.OK && s.GPUs[0].HiddenMem.V > 0
		})
	}
}

func TestDriversWithABrokenProcessList(t *testing.T) {
	for v, want := range map[string]bool{"535.43.02": true, "535.54.03": true, "535.86.10": true, "535.98": false, "535.104.05": false,
		"535.161.08": false, "530.30.02": false, "590.48.01": false, "": false, "535": false, "x": false} {
		if got := badProcessList(v); got != want {
			t.Errorf("%q = %v", v, got)
		}
	}
}

// One call that fails costs its cell, never a neighbour and never a zero.
func TestErrorsACell(t *testing.T) {
	b := start(t, 590, "590.48.01", setting{gpus, 2})
	b.whole(2)
	for _, c := range []struct {
		call, ret int
		cell      func(*sample.GPU) sample.Value
		state     sample.ValueState
		why       string
	}{
		{callPower, 999, func(g *sample.GPU) sample.Value { return g.Power }, sample.Failed, "Unknown Error"},
		{callPower, 3, func(g *sample.GPU) sample.Value { return g.Power }, sample.NA, "not supported"},
		{callUtil, 4, func(g *sample.GPU) sample.Value { return g.Util }, sample.NA, "not permitted"},
		{callECC, 20, func(g *sample.GPU) sample.Value { return g.ECCErrors }, sample.Failed, "stand-in error 20"},
		{callMemory, 999, func(g *sample.GPU) sample.Value { return g.MemUsed }, sample.Failed, "Unknown Error"},
	} {
		b.set(failRet, c.ret)
		b.set(failCall, c.call)
		s := b.until("the failure", func(s sample.Sample) bool { return c.cell(&s.GPUs[0]).State != sample.OK })
		if v := c.cell(&s.GPUs[0]); v != (sample.Value{State: c.state, Why: c.why}) {
			t.Errorf("call %d returning %d = %+v", c.call, c.ret, v)
		}
		if s.GPUs[0].Temp != sample.Of(61) || s.GPUs[0].Problem != "" {
			t.Errorf("call %d spoilt others: %+v", c.call, s.GPUs[0])
		}
		b.set(failCall, 0)
		b.until("its return", func(s sample.Sample) bool { return c.cell(&s.GPUs[0]).State == sample.OK })
	}
	b.set(failRet, 999)
	b.set(failCall, callReasons)
	b.until("unknown reasons", func(s sample.Sample) bool { return !s.GPUs[0].ThrottleKnown && s.GPUs[0].Throttle == nil })
}

func TestOneLostGPULeavesItsNeighbours(t *testing.T) {
	b := start(t, 590, "590.48.01", setting{gpus, 3})
	b.whole(3)
	b.set(lost, 1)
	s := b.until("the loss", func(s sample.Sample) bool { return s.GPUs[1].Problem != "" })
	for _, v := range s.GPUs[1].Cells() {
		if v.State == sample.OK && v != &s.GPUs[1].HiddenMem {
			t.Errorf("a lost GPU has a value: %+v", s.GPUs[1])
			break
		}
	}
	if !strings.HasPrefix(s.GPUs[1].Problem, "the GPU is lost") || s.GPUs[1].UUID == "" {
		t.Errorf("lost = %+v", s.GPUs[1])
	}
	for _, i := range []int{0, 2} {
		if s.GPUs[i].Util.State != sample.OK || s.GPUs[i].Problem != "" {
			t.Errorf("neighbour %d = %+v", i, s.GPUs[i])
		}
	}
	b.set(lost, -1)
	b.set(reset, 2)
	s = b.until("the reset", func(s sample.Sample) bool { return s.GPUs[2].Problem != "" })
	if !strings.Contains(s.GPUs[2].Problem, "requires a reset") || s.GPUs[2].Temp.State != sample.OK {
		t.Errorf("reset = %+v", s.GPUs[2])
	}

	const handle = 16
	b = start(t, 590, "590.48.01", setting{gpus, 2}, setting{lost, 0}, setting{failCall, handle}) // lost before the start
	s = b.until("the other one", func(s sample.Sample) bool { return len(s.GPUs) == 2 && s.GPUs[1].Util.State == sample.OK })
	if !strings.HasPrefix(s.GPUs[0].Problem, "the GPU is lost") || s.GPUs[0].Util.State != sample.Failed {
		t.Errorf("lost before the start = %+v", s.GPUs[0])
	}
}

// A call that does not come back is told from outside it, with its age, and the
// other GPUs go on. Asked again it is never: it comes back by itself or not at all.
func TestHang(t *testing.T) {
	b := start(t, 590, "590.48.01", setting{gpus, 2})
	b.whole(2)
	b.set(hang, 0)
	s := b.until("the hang", func(s sample.Sample) bool { return strings.HasPrefix(s.GPUs[0].Problem, "driver hung, 2 s") })
	if s.GPUs[0].Util.State != sample.Failed || s.GPUs[1].Util.State != sample.OK || s.GPUs[1].Problem != "" || s.Problem != nil {
		t.Errorf("one hung = %+v", s)
	}
	if time.Since(s.TakenAt) > 2*time.Second {
		t.Errorf("samples lag: %v", time.Since(s.TakenAt))
	}
	b.set(hang, -1)
	b.until("the end of the hang", func(s sample.Sample) bool { return s.GPUs[0].Util.State == sample.OK && s.GPUs[0].Problem == "" })

	one := start(t, 590, "590.48.01")
	one.whole(1)
	one.set(hang, 0)
	one.until("the whole driver's hang", func(s sample.Sample) bool {
		return s.Problem != nil && strings.HasPrefix(s.Problem.What, "driver hung, ")
	})
	one.cmd.Process.Signal(syscall.SIGTERM) // the reader ends although the call does not
	select {
	case err := <-wait(one):
		if err != nil {
			t.Errorf("the reader ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the reader does not end while the driver hangs")
	}

	b = start(t, 590, "590.48.01", setting{initHang, 1})
	b.until("a hang at the start", func(s sample.Sample) bool {
		return s.Problem != nil && strings.HasPrefix(s.Problem.What, "driver hung") && s.Host.MemTotal.State == sample.OK
	})
	b.set(initHang, 0)
	b.whole(1)
}

func wait(b *bench) <-chan error {
	c := make(chan error, 1)
	go func() {
		for range b.in {
		}
		c <- b.cmd.Wait()
	}()
	return c
}

func TestXID(t *testing.T) {
	for _, level := range []int{418, 590} { // by both calls that wait
		b := start(t, level, "590.48.01", setting{gpus, 2})
		b.whole(2)
		time.Sleep(300 * time.Millisecond)
		b.set(xidGPU, 1)
		b.set(xidCode, 79)
		b.set(xidSeq, 1)
		s := b.until("XID 79", func(s sample.Sample) bool { return len(s.GPUs[1].XIDs) > 0 })
		if x := s.GPUs[1].XIDs; len(x) != 1 || x[0].Code != 79 || time.Since(x[0].At) > 5*time.Second || len(s.GPUs[0].XIDs) != 0 {
			t.Errorf("level %d: %+v, %+v", level, s.GPUs[0].XIDs, x)
		}
	}
}

func TestMIG(t *testing.T) {
	b := start(t, 590, "590.48.01", setting{mig, 1})
	s := b.until("the instances", func(s sample.Sample) bool { return len(s.GPUs) == 1 && len(s.GPUs[0].Instances) == 2 })
	g := s.GPUs[0]
	if g.MIG != "Enabled" || g.Util.State != sample.NA {
		t.Errorf("GPU = %+v", g)
	}
	if in := g.Instances[1]; in.GI != 8 || in.CI != 0 || in.Profile != "2g.10gb" || in.UUID != "MIG-standin-0-2" || in.MemUsed != sample.Of(1<<30) || in.MemTotal != sample.Of(10<<30) || in.Util.State != sample.NA {
		t.Errorf("instance = %+v", in)
	}
}

func TestNVLinkDown(t *testing.T) {
	b := start(t, 590, "590.48.01", setting{linkUp, 18})
	b.until("18 links", func(s sample.Sample) bool {
		return s.GPUs[0].NVLinks == sample.Of(18) && s.GPUs[0].NVLinksDown == sample.Of(0)
	})
	b.set(linkUp, 17)
	b.until("one down", func(s sample.Sample) bool {
		return s.GPUs[0].NVLinks == sample.Of(17) && s.GPUs[0].NVLinksDown == sample.Of(1)
	})
}

func TestNothingToRead(t *testing.T) {
	refused := func(b *bench) string {
		for m := range b.in {
			if m.Refused != "" {
				return m.Refused
			}
		}
		return ""
	}
	if got := refused(start(t, 590, "", setting{initRet, 9})); got != "the NVIDIA driver is not loaded on the instance" {
		t.Errorf("no driver: %q", got)
	}
	if got := refused(start(t, 590, "", setting{initRet, 18})); !strings.Contains(got, "different versions") {
		t.Errorf("mismatch: %q", got)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STANDIN_READER=1", "STANDIN_LIBRARY="+t.TempDir()+"/libnvidia-ml.so.1")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "is not on the instance") {
		t.Errorf("no library: %v, %q", err, out)
	}
	b := start(t, 590, "590.48.01", setting{gpus, 0})
	b.until("no GPU", func(s sample.Sample) bool {
		return s.Problem != nil && s.Problem.What == "no GPU is attached to the instance"
	})
}

// holdDevice keeps a file open that looks like the driver's: in a container only a
// process with one is taken for the driver's.
func holdDevice(t *testing.T) {
	t.Helper()
	f, err := os.Create(t.TempDir() + "/nvidia0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
}
