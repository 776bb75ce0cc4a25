package vendors

// AMD cards through their tools: rocm-smi --json (each value a text under a name
// that changed over the years) and amd-smi --json (values with their unit).

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// ROCm reads rocm-smi's JSON: an object a card, and one for the system. Lines
// before it are warnings.
func ROCm(text string) (Cards, bool) {
	var all map[string]map[string]any
	if i := strings.IndexByte(text, '{'); i < 0 || json.Unmarshal([]byte(text[i:]), &all) != nil {
		return Cards{}, false
	}
	var out Cards
	for key, cells := range all {
		if key == "system" {
			out.Driver = clean.Short(flat(cells["Driver version"]), 40)
			continue
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(key, "card"), 10, 7)
		if err != nil || !strings.HasPrefix(key, "card") || len(out.GPUs) >= sample.MaxGPUs {
			continue
		}
		out.GPUs = append(out.GPUs, rocmCard(int(n), cells))
	}
	slices.SortFunc(out.GPUs, func(a, b sample.GPU) int { return a.Index - b.Index })
	return out, len(out.GPUs) > 0
}

// rocmCard reads one card. Names differ by version in case, colons and words.
func rocmCard(index int, cells map[string]any) sample.GPU {
	by := map[string]string{}
	for name, v := range cells {
		by[strings.ToLower(strings.TrimRight(name, ": "))] = strings.TrimSpace(flat(v))
	}
	first := func(names ...string) string {
		for _, n := range names {
			if v, ok := by[n]; ok && v != "" && v != "N/A" {
				return v
			}
		}
		for _, n := range names {
			if v, ok := by[n]; ok {
				return v
			}
		}
		return "[N/A]"
	}
	g := sample.NewGPU("not told by rocm-smi")
	g.Index = index
	g.UUID = sample.Word(first("unique id"), 80)
	g.PCIBus = sample.Word(first("pci bus"), 32)
	g.Name = sample.Word(first("card series", "card model", "card sku"), 60)
	if strings.HasPrefix(g.Name, "0x") || g.Name == "" {
		g.Name = "AMD GPU " + sample.Word(first("gpu id", "device id"), 20)
	}
	g.Util = sample.Percent(first("gpu use (%)"))
	g.MemTotal = number(first("vram total memory (b)"), 1<<50)
	g.MemUsed = number(first("vram total used memory (b)"), 1<<50)
	g.MemUsed = sample.Within(g.MemUsed, g.MemTotal)
	g.Power = sample.Watts(first("current socket graphics package power (w)", "average graphics package power (w)", "current graphics package power (w)"))
	g.PowerLimit = sample.Watts(first("max graphics package power (w)"))
	g.Temp = sample.Celsius(first("temperature (sensor junction) (c)", "temperature (sensor edge) (c)", "temperature (sensor #1) (c)"))
	g.Fan = sample.Percent(first("fan speed (%)"))
	g.ClockSM = clock(first("sclk clock speed", "sclk clock level"))
	g.ClockMem = clock(first("mclk clock speed", "mclk clock level"))
	if speed, rest, ok := strings.Cut(first("pcie clock level"), "GT/s"); ok { // "1 (16.0GT/s x16)"
		if _, width, ok := strings.Cut(rest, "x"); ok {
			g.PCIeGen, g.PCIeWidth = generation(endsWith(speed, ".")), number(width[:digits(width)], 1024)
		}
	}
	return g
}

func number(cell string, highest float64) sample.Value { return sample.Number(cell, 1, 0, highest) }

// flat is a JSON value as the text that rocm-smi means.
func flat(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return "[N/A]"
}

// clock reads "(1402Mhz)", "8 (1725Mhz)" and "808Mhz".
func clock(cell string) sample.Value {
	if before, _, ok := strings.Cut(strings.ToLower(cell), "mhz"); ok {
		if n := endsWith(before, ""); n != "" {
			return sample.Megahertz(n)
		}
	}
	return sample.Megahertz(cell)
}

// digits is how many a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// endsWith is the number that a text ends with, made of digits and also.
func endsWith(s, also string) string {
	s = strings.TrimSpace(s)
	return s[len(strings.TrimRight(s, "0123456789"+also)):]
}

// generation of PCIe by its transfers a second.
func generation(gts string) sample.Value {
	for i, g := range []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"} {
		if gts == g || gts+".0" == g {
			return sample.Of(float64(i + 1))
		}
	}
	return sample.Value{State: sample.Failed, Why: "unreadable: " + sample.Why(gts)}
}

// AMD reads amd-smi's JSON of `static`, `metric` and `process`; any may be
// empty. A list of cards is bare, or under "gpu_data" since ROCm 7.
func AMD(static, metric, process string) (Cards, bool) {
	var out Cards
	metrics, ok := amdList(metric)
	if !ok {
		return out, false
	}
	fixed, _ := amdList(static)
	for i, m := range metrics {
		if len(out.GPUs) >= sample.MaxGPUs {
			break
		}
		g := sample.NewGPU("not told by amd-smi")
		if g.Index = i; amdCell(m, "gpu").State == sample.OK {
			g.Index = int(amdCell(m, "gpu").V)
		}
		for _, f := range fixed {
			if v, ok := amdCell(f, "gpu").Get(); ok && int(v) == g.Index {
				amdFixed(&g, f)
				out.Driver = clean.Short(flat(dig(f, "driver", "version")), 40)
			}
		}
		amdMetric(&g, m)
		out.GPUs = append(out.GPUs, g)
	}
	out.Procs = amdProcesses(process)
	return out, len(out.GPUs) > 0
}

func amdList(text string) (list []any, ok bool) {
	i := strings.IndexAny(text, "[{")
	if i < 0 {
		return nil, false
	}
	var v any
	if json.Unmarshal([]byte(text[i:]), &v) != nil {
		return nil, false
	}
	if o, is := v.(map[string]any); is {
		v = o["gpu_data"]
	}
	list, ok = v.([]any)
	return list, ok
}

// dig follows a path into JSON; nil where it ends.
func dig(v any, path ...string) any {
	for _, p := range path {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[p]
	}
	return v
}

// amdCell reads {"value": 40, "unit": "%"}, a bare number, or "N/A" under the first
// of the paths (their parts joined by dots) that is there.
func amdCell(v any, paths ...string) sample.Value {
	for _, p := range paths {
		switch c := dig(v, strings.Split(p, ".")...).(type) {
		case nil:
		case float64:
			return sample.Number(flat(c), 1, -250, 1<<53)
		case string:
			return sample.Number(c, 1, -250, 1<<53)
		case map[string]any:
			if _, is := c["value"]; is {
				unit, _ := c["unit"].(string)
				if unit == "GT/s" || unit == "RPM" || unit == "Mb/s" {
					unit = ""
				}
				return sample.Number(strings.TrimSpace(flat(c["value"])+" "+unit), 1, -250, 1<<53)
			}
		}
	}
	return sample.Value{Why: "not told by amd-smi"}
}

func amdFixed(g *sample.GPU, f any) {
	g.Name = sample.Word(flat(dig(f, "asic", "market_name")), 60)
	g.PCIBus = sample.Word(flat(dig(f, "bus", "bdf")), 32)
	g.UUID = sample.Word(flat(dig(f, "asic", "asic_serial")), 80)
	g.PowerLimit = amdCell(f, "limit.socket_power", "limit.ppt0.socket_power_limit", "limit.max_power")
	g.PCIeWidthMax = amdCell(f, "bus.max_pcie_width")
	g.MemTotal = amdCell(f, "vram.size")
}

func amdMetric(g *sample.GPU, m any) {
	g.Util = sample.AtMost(amdCell(m, "usage.gfx_activity"), 100)
	g.MemUtil = sample.AtMost(amdCell(m, "usage.umc_activity"), 100)
	if t := amdCell(m, "mem_usage.total_vram", "vram.total"); t.State == sample.OK || g.MemTotal.State != sample.OK {
		g.MemTotal = t
	}
	g.MemUsed = sample.Within(amdCell(m, "mem_usage.used_vram", "vram.used"), g.MemTotal)
	g.Power = amdCell(m, "power.socket_power", "power.average_socket_power", "power.current_socket_power")
	g.Temp = amdCell(m, "temperature.hotspot", "temperature.edge")
	g.ClockSM = amdCell(m, "clock.gfx_0.clk", "clock.gfx.clk")
	g.ClockSMMax = amdCell(m, "clock.gfx_0.max_clk", "clock.gfx.max_clk")
	g.ClockMem = amdCell(m, "clock.mem_0.clk", "clock.mem.clk")
	g.ClockMemMax = amdCell(m, "clock.mem_0.max_clk", "clock.mem.max_clk")
	g.Fan = sample.AtMost(amdCell(m, "fan.usage"), 100)
	g.PCIeWidth = amdCell(m, "pcie.width")
	if s, ok := amdCell(m, "pcie.speed").Get(); ok {
		g.PCIeGen = generation(strconv.FormatFloat(s, 'f', 1, 64))
	}
	g.ECCErrors = amdCell(m, "ecc.total_uncorrectable_count")
	g.ECCCorrected = amdCell(m, "ecc.total_correctable_count")
	switch status := strings.ToUpper(flat(dig(m, "power", "throttle_status"))); status {
	case "THROTTLED":
		g.Throttle, g.ThrottleKnown = []string{"throttled"}, true
	case "UNTHROTTLED":
		g.ThrottleKnown = true
	}
}

func amdProcesses(text string) (out []sample.Process) {
	list, _ := amdList(text)
	for _, g := range list {
		gpu := -1
		if v, ok := amdCell(g, "gpu").Get(); ok && v >= 0 && v < sample.MaxGPUs {
			gpu = int(v)
		}
		procs, _ := dig(g, "process_list").([]any)
		for _, p := range procs {
			pid, ok := amdCell(p, "process_info.pid").Get()
			if !ok || pid <= 0 || pid > 1<<31 || len(out) >= maxProcesses {
				continue
			}
			out = append(out, sample.Process{GPUIndex: gpu, PID: int(pid), Command: sample.Word(flat(dig(p, "process_info", "name")), 400),
				Mem: amdCell(p, "process_info.memory_usage.vram_mem", "process_info.mem_usage")})
		}
	}
	return out
}
