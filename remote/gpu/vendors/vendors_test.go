package vendors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote/gpu/sample"
	"rentop/remote/needtest"
)

func recorded(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(needtest.Shared(t, "corpus", "gpu"), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestROCm(t *testing.T) {
	for _, c := range []struct {
		file               string
		n                  int
		driver, name, bus  string
		used, total, power float64
		limit, temp, sclk  float64
		gen                sample.Value
	}{
		{"rocm-telegraf-mi100_rocm602.json", 4, "6.3.6", "", "0000:83:00.0", 6750208, 34342961152, 36, 290, 55, 300, sample.Of(4)},
		{"rocm-telegraf-mi100_rocm571.json", 0, "", "", "", 0, 0, 0, 0, 0, 0, sample.Value{}},
		{"rocm-telegraf-vega-20-WKS-GL-XE.json", 1, "", "Radeon Instinct MI50 32GB", "0000:63:00.0", 10850304, 34342961152, 26, 225, 38, 1725, sample.Of(4)},
		{"rocm-pai.json", 0, "", "", "", 0, 0, 0, 0, 0, 0, sample.Value{}},
	} {
		got, ok := ROCm(recorded(t, c.file))
		if !ok || c.n > 0 && len(got.GPUs) != c.n {
			t.Errorf("%s: %v, %d cards", c.file, ok, len(got.GPUs))
			continue
		}
		for _, g := range got.GPUs {
			if g.Util.State != sample.OK || g.MemTotal.State != sample.OK || g.MemUsed.State != sample.OK || g.Temp.State != sample.OK || g.ClockSM.State != sample.OK || g.Name == "" {
				t.Errorf("%s: %+v", c.file, g)
			}
		}
		if c.n == 0 {
			continue
		}
		g := got.GPUs[0]
		if c.driver != "" && got.Driver != c.driver || c.name != "" && g.Name != c.name || g.PCIBus != c.bus || g.MemUsed != sample.Of(c.used) || g.MemTotal != sample.Of(c.total) ||
			g.Power != sample.Of(c.power) || g.PowerLimit != sample.Of(c.limit) || g.Temp != sample.Of(c.temp) || g.ClockSM != sample.Of(c.sclk) || g.PCIeGen != c.gen || g.PCIeWidth != sample.Of(16) {
			t.Errorf("%s: driver %q, %+v", c.file, got.Driver, g)
		}
	}
	for _, bad := range []string{"", "ERROR: no amdgpu driver", "{", `{"card0": 3}`, recorded(t, "excerpt/rocm-smi-errors.txt")} {
		if got, ok := ROCm(bad); ok {
			t.Errorf("%.40q is taken for %+v", bad, got)
		}
	}
}

// After the shape of AMD SMI 24 to 26, from issue reports; no such output is among
// the recorded ones.
func TestAMD(t *testing.T) {
	const static = `[{"gpu": 0, "asic": {"market_name": "AMD Instinct MI355X\u001b[2J", "asic_serial": "0xABC"}, "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16},
		"driver": {"version": "6.16.6"}, "limit": {"ppt0": {"socket_power_limit": {"value": 1400, "unit": "W"}}}}]`
	const metric = `{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}, "umc_activity": "N/A"}, "power": {"socket_power": {"value": 239, "unit": "W"}, "throttle_status": "THROTTLED"},
		"clock": {"gfx_0": {"clk": {"value": 2100, "unit": "MHz"}, "max_clk": {"value": 2400, "unit": "MHz"}}}, "temperature": {"edge": "N/A", "hotspot": {"value": 36, "unit": "C"}},
		"pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}}, "ecc": {"total_correctable_count": 2, "total_uncorrectable_count": 0},
		"mem_usage": {"total_vram": {"value": 294896, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}}`
	const process = `[{"gpu": 0, "process_list": [{"process_info": {"pid": 42, "name": "python", "memory_usage": {"vram_mem": {"value": 1048576, "unit": "B"}}}}]}]`
	for name, m := range map[string]string{"before ROCm 7": "WARNING: something\n[" + metric + "]", "since": `{"gpu_data": [` + metric + `]}`} {
		got, ok := AMD(static, m, process)
		if !ok || len(got.GPUs) != 1 || len(got.Procs) != 1 {
			t.Fatalf("%s: %v, %+v", name, ok, got)
		}
		g := got.GPUs[0]
		if got.Driver != "6.16.6" || g.Name != "AMD Instinct MI355X␛[2J" || g.Util != sample.Of(97) || g.MemUtil.State != sample.NA || g.MemUsed != sample.Of(283<<20) || g.MemTotal != sample.Of(294896<<20) ||
			g.Power != sample.Of(239) || g.PowerLimit != sample.Of(1400) || g.Temp != sample.Of(36) || g.ClockSM != sample.Of(2100) || g.ClockSMMax != sample.Of(2400) || g.PCIeGen != sample.Of(5) || g.PCIeWidth != sample.Of(16) ||
			g.ECCErrors != sample.Of(0) || g.ECCCorrected != sample.Of(2) || !g.ThrottleKnown || len(g.Throttle) != 1 || g.Fan.State != sample.NA {
			t.Errorf("%s: %+v", name, g)
		}
		if p := got.Procs[0]; p.PID != 42 || p.GPUIndex != 0 || p.Command != "python" || p.Mem != sample.Of(1<<20) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got, ok := AMD("", `[{"gpu": 2, "usage": "N/A", "mem_usage": "N/A"}]`, ""); !ok || got.GPUs[0].Index != 2 || got.GPUs[0].Util.State != sample.NA || got.GPUs[0].MemUsed.State != sample.NA {
		t.Errorf("nothing told: %v, %+v", ok, got)
	}
}

func TestNPU(t *testing.T) {
	got, ok := NPU(recorded(t, "excerpt/npu-smi-25.2.0-910B4.txt"))
	if !ok || len(got.GPUs) != 2 || got.Driver != "25.2.0" {
		t.Fatalf("25.2: %v, %+v", ok, got)
	}
	if g := got.GPUs[0]; g.Name != "910B4-1" || g.Power != sample.Of(91.3) || g.Temp != sample.Of(33) || g.Util != sample.Of(0) || g.MemUsed != sample.Of(3197<<20) || g.MemTotal != sample.Of(65536<<20) || g.Problem != "" {
		t.Errorf("25.2: %+v", g)
	}
	got, ok = NPU(recorded(t, "excerpt/npu-smi-26.0.rc2.txt"))
	if !ok || len(got.GPUs) != 2 || got.Driver != "26.0.rc2" {
		t.Fatalf("26.0: %v, %+v", ok, got)
	}
	if g := got.GPUs[1]; g.Index != 1 || g.Name != "Ascend910" || g.Power.State != sample.NA || g.Temp != sample.Of(34) || g.PCIBus != "0000:9F:00.0" || g.MemUsed != sample.Of(2874<<20) {
		t.Errorf("26.0: %+v", g)
	}
	all := recorded(t, "excerpt/npu-smi-26.0.rc2.txt") + recorded(t, "excerpt/npu-smi-procs.txt")
	got, _ = NPU(all)
	if len(got.Procs) != 1 || got.Procs[0].PID != 692318 || got.Procs[0].GPUIndex != 0 || got.Procs[0].Mem != sample.Of(12417<<20) || len(got.GPUs) != 4 {
		t.Errorf("processes: %+v", got)
	}
	got, _ = NPU(strings.Replace(all, "| OK  ", "| Alarm ", 1))
	if !strings.Contains(got.GPUs[0].Problem, "Alarm") {
		t.Errorf("health: %+v", got.GPUs[0])
	}
}

func FuzzOthers(f *testing.F) {
	f.Add(`{"card0": {"GPU use (%)": "3", "sclk clock speed:": "(300Mhz)"}}`)
	f.Add(`[{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}}]`)
	f.Add("| 0 910B4 | OK | 91.3 33 0 / 0 |\n| 0 | 0000:00 | 0 0 / 0 3197 / 65536 |\n")
	f.Fuzz(func(t *testing.T, s string) {
		a, _ := ROCm(s)
		b, _ := AMD(s, s, s)
		c, _ := NPU(s)
		for _, o := range []Cards{a, b, c} {
			for _, g := range o.GPUs {
				if strings.ContainsAny(g.Name+g.UUID+g.PCIBus+g.Problem+o.Driver, "\x1b\n") {
					t.Errorf("%+v", g)
				}
				if u, ok := g.Util.Get(); ok && u > 100 {
					t.Errorf("utilisation %v", u)
				}
			}
		}
	})
}
