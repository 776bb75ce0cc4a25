//go:build unix

package gpu

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestROCm(t *testing.T) {
	for _, c := range []struct {
		file               string
		n                  int
		driver, name, bus  string
		used, total, power float64
		limit, temp, sclk  float64
		gen                Value
	}{
		{"rocm-telegraf-mi100_rocm602.json", 4, "6.3.6", "", "0000:83:00.0", 6750208, 34342961152, 36, 290, 55, 300, Of(4)},
		{"rocm-telegraf-mi100_rocm571.json", 0, "", "", "", 0, 0, 0, 0, 0, 0, Value{}},
		{"rocm-telegraf-vega-20-WKS-GL-XE.json", 1, "", "Radeon Instinct MI50 32GB", "0000:63:00.0", 10850304, 34342961152, 26, 225, 38, 1725, Of(4)},
		{"rocm-pai.json", 0, "", "", "", 0, 0, 0, 0, 0, 0, Value{}},
	} {
		got, ok := parseROCm(recorded(t, c.file))
		if !ok || c.n > 0 && len(got.gpus) != c.n {
			t.Errorf("%s: %v, %d cards", c.file, ok, len(got.gpus))
			continue
		}
		for _, g := range got.gpus {
			if g.Util.State != OK || g.MemTotal.State != OK || g.MemUsed.State != OK || g.Temp.State != OK || g.ClockSM.State != OK || g.Name == "" {
				t.Errorf("%s: %+v", c.file, g)
			}
		}
		if c.n == 0 {
			continue
		}
		g := got.gpus[0]
		if c.driver != "" && got.driver != c.driver || c.name != "" && g.Name != c.name || g.PCIBus != c.bus || g.MemUsed != Of(c.used) || g.MemTotal != Of(c.total) ||
			g.Power != Of(c.power) || g.PowerLimit != Of(c.limit) || g.Temp != Of(c.temp) || g.ClockSM != Of(c.sclk) || g.PCIeGen != c.gen || g.PCIeWidth != Of(16) {
			t.Errorf("%s: driver %q, %+v", c.file, got.driver, g)
		}
	}
	for _, bad := range []string{"", "ERROR: no amdgpu driver", "{", `{"card0": 3}`, recorded(t, "excerpt/rocm-smi-errors.txt")} {
		if got, ok := parseROCm(bad); ok {
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
		got, ok := parseAMD(static, m, process)
		if !ok || len(got.gpus) != 1 || len(got.procs) != 1 {
			t.Fatalf("%s: %v, %+v", name, ok, got)
		}
		g := got.gpus[0]
		if got.driver != "6.16.6" || g.Name != "AMD Instinct MI355X␛[2J" || g.Util != Of(97) || g.MemUtil.State != NA || g.MemUsed != Of(283<<20) || g.MemTotal != Of(294896<<20) ||
			g.Power != Of(239) || g.PowerLimit != Of(1400) || g.Temp != Of(36) || g.ClockSM != Of(2100) || g.ClockSMMax != Of(2400) || g.PCIeGen != Of(5) || g.PCIeWidth != Of(16) ||
			g.ECCErrors != Of(0) || g.ECCCorrected != Of(2) || !g.ThrottleKnown || len(g.Throttle) != 1 || g.Fan.State != NA {
			t.Errorf("%s: %+v", name, g)
		}
		if p := got.procs[0]; p.PID != 42 || p.GPUIndex != 0 || p.Command != "python" || p.Mem != Of(1<<20) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got, ok := parseAMD("", `[{"gpu": 2, "usage": "N/A", "mem_usage": "N/A"}]`, ""); !ok || got.gpus[0].Index != 2 || got.gpus[0].Util.State != NA || got.gpus[0].MemUsed.State != NA {
		t.Errorf("nothing told: %v, %+v", ok, got)
	}
}

func TestNPU(t *testing.T) {
	got, ok := parseNPU(recorded(t, "excerpt/npu-smi-25.2.0-910B4.txt"))
	if !ok || len(got.gpus) != 2 || got.driver != "25.2.0" {
		t.Fatalf("25.2: %v, %+v", ok, got)
	}
	if g := got.gpus[0]; g.Name != "910B4-1" || g.Power != Of(91.3) || g.Temp != Of(33) || g.Util != Of(0) || g.MemUsed != Of(3197<<20) || g.MemTotal != Of(65536<<20) || g.Problem != "" {
		t.Errorf("25.2: %+v", g)
	}
	got, ok = parseNPU(recorded(t, "excerpt/npu-smi-26.0.rc2.txt"))
	if !ok || len(got.gpus) != 2 || got.driver != "26.0.rc2" {
		t.Fatalf("26.0: %v, %+v", ok, got)
	}
	if g := got.gpus[1]; g.Index != 1 || g.Name != "Ascend910" || g.Power.State != NA || g.Temp != Of(34) || g.PCIBus != "0000:9F:00.0" || g.MemUsed != Of(2874<<20) {
		t.Errorf("26.0: %+v", g)
	}
	all := recorded(t, "excerpt/npu-smi-26.0.rc2.txt") + recorded(t, "excerpt/npu-smi-procs.txt")
	got, _ = parseNPU(all)
	if len(got.procs) != 1 || got.procs[0].PID != 692318 || got.procs[0].GPUIndex != 0 || got.procs[0].Mem != Of(12417<<20) || len(got.gpus) != 4 {
		t.Errorf("processes: %+v", got)
	}
	got, _ = parseNPU(strings.Replace(all, "| OK  ", "| Alarm ", 1))
	if !strings.Contains(got.gpus[0].Problem, "Alarm") {
		t.Errorf("health: %+v", got.gpus[0])
	}
}

// Through the collector under a real sh, as on an instance without nvidia-smi.
func TestOtherToolsThroughTheCollector(t *testing.T) {
	for tool, c := range map[string]struct {
		print string
		cards int
		name  string
	}{
		"rocm-smi": {recorded(t, "rocm-telegraf-vega-20-WKS-GL-XE.json"), 1, "Radeon Instinct MI50 32GB"},
		"npu-smi":  {recorded(t, "excerpt/npu-smi-25.2.0-910B4.txt"), 2, "910B4-1"},
		"amd-smi":  {`[{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}}]`, 1, ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "answer"), []byte(c.print), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tool), []byte("#!/bin/sh\ncat '"+dir+"/answer'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		r := local{edit: func(s string) string { return "PATH='" + dir + "':$PATH\n" + s }}
		s, err := Once(t.Context(), r, nil, Options{})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		if s.Source != tool || len(s.GPUs) != c.cards || s.GPUs[0].Name != c.name || s.Problem != nil || s.Host.MemTotal.State != OK {
			t.Errorf("%s: %+v", tool, s)
		}
		n := 0
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		Stream(ctx, r, nil, Options{}, func(s Sample) {
			if s.Source == tool && len(s.GPUs) == c.cards && s.Host.CPU.State == OK {
				if n++; n == 2 {
					cancel()
				}
			}
		})
		cancel()
		if n < 2 {
			t.Errorf("%s: %d samples in a stream", tool, n)
		}
	}
}

func FuzzOthers(f *testing.F) {
	f.Add(`{"card0": {"GPU use (%)": "3", "sclk clock speed:": "(300Mhz)"}}`)
	f.Add(`[{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}}]`)
	f.Add("| 0 910B4 | OK | 91.3 33 0 / 0 |\n| 0 | 0000:00 | 0 0 / 0 3197 / 65536 |\n")
	f.Fuzz(func(t *testing.T, s string) {
		a, _ := parseROCm(s)
		b, _ := parseAMD(s, s, s)
		c, _ := parseNPU(s)
		for _, o := range []otherCards{a, b, c} {
			for _, g := range o.gpus {
				if strings.ContainsAny(g.Name+g.UUID+g.PCIBus+g.Problem+o.driver, "\x1b\n") {
					t.Errorf("%+v", g)
				}
				if u, ok := g.Util.Get(); ok && u > 100 {
					t.Errorf("utilisation %v", u)
				}
			}
		}
	})
}
