package gpu

// The rows of nvidia-smi --query-gpu. Columns are matched by position against what
// was asked for (the header renames what it echoes), and the one free text, the
// name, stands between fixed columns so that it may hold commas.

import (
	"slices"
	"strconv"
	"strings"

	"rentop/remote"
	"rentop/remote/gpu/sample"
)

// queryFields is what the collector asks for. The name comes after what identifies
// the row and before what is measured.
var queryFields = []string{
	"index", "uuid", "pci.bus_id", "count", "driver_version", "name",
	"utilization.gpu", "utilization.memory", "memory.used", "memory.total", "memory.reserved",
	"power.draw", "power.limit", "temperature.gpu", "temperature.gpu.tlimit", "fan.speed",
	"clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "clocks.max.memory",
	"pstate", "clocks_throttle_reasons.active",
	"pcie.link.gen.current", "pcie.link.width.current",
	"ecc.errors.uncorrected.volatile.total", "mig.mode.current",
}

// notOffered is the reason of a cell whose field this driver does not know.
const notOffered = "not offered by this driver"

// row is one line of the query.
type row struct {
	GPU
	count  int // GPUs in the machine, 0 where not told
	driver string
}

// newRow is a row of which nothing is known yet.
func newRow() row {
	return row{GPU: sample.NewGPU(notOffered)}
}

// splitRow cuts line into one cell a field. Commas beyond the expected number belong
// to the field free (its index; -1 for none).
func splitRow(line string, n, free int) ([]string, bool) {
	cells := strings.Split(line, ",")
	extra := len(cells) - n
	if extra < 0 || extra > 0 && free < 0 {
		return nil, false
	}
	if extra > 0 {
		joined := strings.Join(cells[free:free+extra+1], ",")
		cells = append(append(cells[:free:free], joined), cells[free+extra+1:]...)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, true
}

// parseRow reads one line for the fields that were asked for. ok is false for a
// header, a log line among the rows, or half a line.
func parseRow(fields []string, line string) (row, bool) {
	r := newRow()
	cells, ok := splitRow(line, len(fields), slices.Index(fields, "name"))
	if !ok || len(fields) < 2 {
		return r, false
	}
	for i, f := range fields {
		if !r.set(f, cells[i]) {
			return r, false
		}
	}
	r.MemUsed = sample.Within(r.MemUsed, r.MemTotal) // HAMi#332: a hook reported 17 TB
	return r, true
}

// set puts one cell where it belongs; false where the cell shows that this line is
// no row.
func (r *row) set(field, cell string) bool {
	g := &r.GPU
	switch field {
	case "index":
		n, err := strconv.ParseUint(cell, 10, 16)
		g.Index = int(n)
		return err == nil
	case "count":
		n, err := strconv.ParseUint(cell, 10, 16)
		r.count = int(n)
		_, absent := sample.Sentinel(cell)
		return err == nil || absent
	case "uuid":
		g.UUID = sample.Word(cell, 80)
	case "pci.bus_id":
		g.PCIBus = sample.Word(cell, 32)
	case "driver_version":
		r.driver = sample.Word(cell, 40)
	case "name":
		g.Name = strings.TrimPrefix(sample.Word(cell, 60), "NVIDIA ")
	case "pstate":
		g.PState = sample.Word(cell, 8)
	case "mig.mode.current":
		g.MIG = sample.Word(cell, 20)
	case "clocks_throttle_reasons.active", "clocks_event_reasons.active":
		g.Throttle, g.ThrottleHot = sample.Throttle(cell)
		g.ThrottleKnown = strings.HasPrefix(cell, "0x")
	default:
		if v := measured(g, field, cell); v != nil {
			*v.into = v.value
		}
	}
	if p := ill(cell); p != "" {
		g.Problem = p
	}
	return true
}

type reading struct {
	into  *Value
	value Value
}

// measured reads a measured cell; nil for a field that a Sample does not hold.
func measured(g *GPU, field, cell string) *reading {
	switch field {
	case "utilization.gpu":
		return &reading{&g.Util, sample.Percent(cell)}
	case "utilization.memory":
		return &reading{&g.MemUtil, sample.Percent(cell)}
	case "memory.used":
		return &reading{&g.MemUsed, sample.Mebibytes(cell)}
	case "memory.total":
		return &reading{&g.MemTotal, sample.Mebibytes(cell)}
	case "memory.reserved":
		return &reading{&g.MemReserved, sample.Mebibytes(cell)}
	case "power.draw":
		return &reading{&g.Power, sample.Watts(cell)}
	case "power.limit":
		return &reading{&g.PowerLimit, sample.Watts(cell)}
	case "temperature.gpu":
		return &reading{&g.Temp, sample.Celsius(cell)}
	case "temperature.gpu.tlimit":
		return &reading{&g.TempMargin, sample.Celsius(cell)}
	case "fan.speed":
		return &reading{&g.Fan, sample.Percent(cell)}
	case "clocks.current.sm":
		return &reading{&g.ClockSM, sample.Megahertz(cell)}
	case "clocks.max.sm":
		return &reading{&g.ClockSMMax, sample.Megahertz(cell)}
	case "clocks.current.memory":
		return &reading{&g.ClockMem, sample.Megahertz(cell)}
	case "clocks.max.memory":
		return &reading{&g.ClockMemMax, sample.Megahertz(cell)}
	case "pcie.link.gen.current":
		return &reading{&g.PCIeGen, sample.Number(cell, 1, 0, 99)}
	case "pcie.link.width.current":
		return &reading{&g.PCIeWidth, sample.Number(cell, 1, 0, 1024)}
	case "ecc.errors.uncorrected.volatile.total":
		return &reading{&g.ECCErrors, sample.Count(cell)}
	}
	return nil
}

// ill says in a sentence what a cell tells about the whole GPU.
func ill(cell string) string {
	switch w := strings.ToLower(cell); {
	case strings.Contains(w, "gpu requires reset"):
		return "the GPU requires a reset: save your work, then stop and start the instance"
	case strings.Contains(w, "gpu is lost"):
		return "the GPU is lost: save your work, then restart the instance or ask the provider for another"
	}
	return ""
}

// lostGPU is the row of a GPU that only its bus id and the tool's complaint are
// known of.
func lostGPU(bus, complaint string) GPU {
	r := newRow()
	for _, v := range r.Cells() {
		*v = Value{State: Failed, Why: sample.Why(complaint)}
	}
	r.PCIBus = remote.Short(bus, 32)
	if r.Problem = ill(complaint); r.Problem == "" {
		r.Problem = "the GPU does not answer (" + sample.Why(complaint) + "): restart the instance or ask the provider"
	}
	return r.GPU
}
