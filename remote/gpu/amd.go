package gpu

// AMD cards through their tools: rocm-smi --json (each value a text under a name
// that changed over the years) and amd-smi --json (values with their unit).

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rentop/remote"
	"rentop/remote/gpu/sample"
)

// otherCards is what another vendor's tool told.
type otherCards struct {
	driver string
	gpus   []GPU
	procs  []Process
}

// parseROCm reads rocm-smi's JSON: an object a card, and one for the system. Lines
// before it are warnings.
func parseROCm(text string) (otherCards, bool) {
	var all map[string]map[string]any
	if i := strings.IndexByte(text, '{'); i < 0 || json.Unmarshal([]byte(text[i:]), &all) != nil {
		return otherCards{}, false
	}
	var out otherCards
	for key, cells := range all {
		if key == "system" {
			out.driver = remote.Short(flat(cells["Driver version"]), 40)
			continue
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(key, "card"), 10, 7)
		if err != nil || !strings.HasPrefix(key, "card") || len(out.gpus) >= sample.MaxGPUs {
			continue
		}
		out.gpus = append(out.gpus, rocmCard(int(n), cells))
	}
	slices.SortFunc(out.gpus, func(a, b GPU) int { return a.Index - b.Index })
	return out, len(out.gpus) > 0
}

// rocmCard reads one card. Names differ by version in case, colons and words.
func rocmCard(index int, cells map[string]any) GPU {
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
	g.MemUsed = within(g.MemUsed, g.MemTotal)
	g.Power = sample.Watts(first("current socket graphics package power (w)", "average graphics package power (w)", "current graphics package power (w)"))
	g.PowerLimit = sample.Watts(first("max graphics package power (w)"))
	g.Temp = sample.Celsius(first("temperature (sensor junction) (c)", "temperature (sensor edge) (c)", "temperature (sensor #1) (c)"))
	g.Fan = sample.Percent(first("fan speed (%)"))
	g.ClockSM = clock(first("sclk clock speed", "sclk clock level"))
	g.ClockMem = clock(first("mclk clock speed", "mclk clock level"))
	if m := pcieLink.FindStringSubmatch(first("pcie clock level")); m != nil {
		g.PCIeGen, g.PCIeWidth = generation(m[1]), number(m[2], 1024)
	}
	return g
}

func number(cell string, highest float64) Value { return sample.Number(cell, 1, 0, highest) }

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

var (
	inMHz    = regexp.MustCompile(`(?i)(\d+)\s*mhz`)
	pcieLink = regexp.MustCompile(`([\d.]+)\s*GT/s\s*x(\d+)`)
)

// clock reads "(1402Mhz)", "8 (1725Mhz)" and "808Mhz".
func clock(cell string) Value {
	if m := inMHz.FindStringSubmatch(cell); m != nil {
		return sample.Megahertz(m[1])
	}
	return sample.Megahertz(cell)
}

// generation of PCIe by its transfers a second.
func generation(gts string) Value {
	for i, g := range []string{"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"} {
		if gts == g || gts+".0" == g {
			return Of(float64(i + 1))
		}
	}
	return Value{State: Failed, Why: "unreadable: " + sample.Why(gts)}
}

// parseAMD reads amd-smi's JSON of `static`, `metric` and `process`; any may be
// empty. A list of cards is bare, or under "gpu_data" since ROCm 7.
func parseAMD(static, metric, process string) (otherCards, bool) {
	var out otherCards
	metrics, ok := amdList(metric)
	if !ok {
		return out, false
	}
	fixed, _ := amdList(static)
	for i, m := range metrics {
		if len(out.gpus) >= sample.MaxGPUs {
			break
		}
		g := sample.NewGPU("not told by amd-smi")
		if g.Index = i; amdCell(m, "gpu").State == OK {
			g.Index = int(amdCell(m, "gpu").V)
		}
		for _, f := range fixed {
			if v, ok := amdCell(f, "gpu").Get(); ok && int(v) == g.Index {
				amdFixed(&g, f)
				out.driver = remote.Short(flat(dig(f, "driver", "version")), 40)
			}
		}
		amdMetric(&g, m)
		out.gpus = append(out.gpus, g)
	}
	out.procs = amdProcesses(process)
	return out, len(out.gpus) > 0
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
func amdCell(v any, paths ...string) Value {
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
	return Value{Why: "not told by amd-smi"}
}

func amdFixed(g *GPU, f any) {
	g.Name = sample.Word(flat(dig(f, "asic", "market_name")), 60)
	g.PCIBus = sample.Word(flat(dig(f, "bus", "bdf")), 32)
	g.UUID = sample.Word(flat(dig(f, "asic", "asic_serial")), 80)
	g.PowerLimit = amdCell(f, "limit.socket_power", "limit.ppt0.socket_power_limit", "limit.max_power")
	g.PCIeWidthMax = amdCell(f, "bus.max_pcie_width")
	g.MemTotal = amdCell(f, "vram.size")
}

func amdMetric(g *GPU, m any) {
	g.Util = clamped(amdCell(m, "usage.gfx_activity"), 100)
	g.MemUtil = clamped(amdCell(m, "usage.umc_activity"), 100)
	if t := amdCell(m, "mem_usage.total_vram", "vram.total"); t.State == OK || g.MemTotal.State != OK {
		g.MemTotal = t
	}
	g.MemUsed = within(amdCell(m, "mem_usage.used_vram", "vram.used"), g.MemTotal)
	g.Power = amdCell(m, "power.socket_power", "power.average_socket_power", "power.current_socket_power")
	g.Temp = amdCell(m, "temperature.hotspot", "temperature.edge")
	g.ClockSM = amdCell(m, "clock.gfx_0.clk", "clock.gfx.clk")
	g.ClockSMMax = amdCell(m, "clock.gfx_0.max_clk", "clock.gfx.max_clk")
	g.ClockMem = amdCell(m, "clock.mem_0.clk", "clock.mem.clk")
	g.ClockMemMax = amdCell(m, "clock.mem_0.max_clk", "clock.mem.max_clk")
	g.Fan = clamped(amdCell(m, "fan.usage"), 100)
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

func clamped(v Value, highest float64) Value {
	if v.State == OK {
		v.V = min(v.V, highest)
	}
	return v
}

// within is what is used of a total.
func within(used, total Value) Value {
	if total.State != OK {
		return used
	}
	return clamped(used, total.V)
}

func amdProcesses(text string) (out []Process) {
	list, _ := amdList(text)
	for _, g := range list {
		gpu := -1
		if v, ok := amdCell(g, "gpu").Get(); ok && v >= 0 && v < sample.MaxGPUs {
			gpu = int(v)
		}
		procs, _ := dig(g, "process_list").([]any)
		for _, p := range procs {
			pid, ok := amdCell(p, "process_info.pid").Get()
			if !ok || pid <= 0 || pid > 1<<31 || len(out) >= maxApps {
				continue
			}
			out = append(out, Process{GPUIndex: gpu, PID: int(pid), Command: sample.Word(flat(dig(p, "process_info", "name")), 400),
				Mem: amdCell(p, "process_info.memory_usage.vram_mem", "process_info.mem_usage")})
		}
	}
	return out
}

// otherProblem says in a sentence what a tool answered in place of its cards.
func otherProblem(tool string, code int, text string) *Problem {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		first = "it said nothing"
	}
	return &Problem{What: fmt.Sprintf("%s cannot be read (exit %d): %s", tool, code, remote.Short(first, 120)),
		Cure: "run " + tool + " on the instance; log in as a member of the groups render and video, or as root"}
}
