package vendors

// Ascend chips through npu-smi info: two lines of a table a chip. The tool has no
// other form that all its versions share.

import (
	"strconv"
	"strings"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// NPU reads the table. A chip's own memory is HBM where it has some, else DDR.
func NPU(text string) (Cards, bool) {
	var out Cards
	var top []string // the first line of a chip
	procs := false
	place := map[string]int{} // NPU and chip to index
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "npu-smi") {
			if _, v, ok := strings.Cut(line, "Version:"); ok {
				out.Driver = clean.Short(strings.Trim(v, " |"), 40)
			}
			continue
		}
		if !strings.HasPrefix(line, "|") {
			top = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.Contains(line, "Process id") {
			procs = true
		}
		switch {
		case procs:
			if p, ok := npuProcess(cells, place); ok && len(out.Procs) < maxProcesses {
				out.Procs = append(out.Procs, p)
			}
		case len(cells) != 3 || !startsWithNumber(cells[0]):
			top = nil
		case top == nil:
			top = cells
		default:
			if len(out.GPUs) < sample.MaxGPUs {
				g := npuChip(len(out.GPUs), top, cells)
				place[firstWord(top[0])+" "+firstWord(cells[0])] = g.Index
				out.GPUs = append(out.GPUs, g)
			}
			top = nil
		}
	}
	return out, len(out.GPUs) > 0
}

func startsWithNumber(s string) bool {
	_, err := strconv.ParseUint(firstWord(s), 10, 16)
	return err == nil
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

// npuChip reads "0 910B4-1 | OK | 91.3 33 0 / 0" and "0 | 0000:xx:00.0 | 0 0 / 0 3197 / 65536".
func npuChip(index int, top, below []string) sample.GPU {
	g := sample.NewGPU("not told by npu-smi")
	g.Index = index
	if f := strings.Fields(top[0]); len(f) > 1 {
		g.Name = clean.Short(strings.Join(f[1:], " "), 60)
	}
	if f := strings.Fields(below[0]); len(f) > 1 { // its physical number
		g.UUID = clean.Short("phy "+f[1], 20)
	}
	if h := top[1]; h != "OK" && h != "" {
		g.Problem = "the chip says that its health is " + clean.Short(h, 40) + ": save your work, then ask the provider"
	}
	g.PCIBus = sample.Word(below[1], 32)
	if f := strings.Fields(top[2]); len(f) >= 2 {
		g.Power, g.Temp = sample.Watts(f[0]), sample.Celsius(f[1])
	}
	if f := strings.Fields(below[2]); len(f) > 0 {
		g.Util = sample.Percent(f[0])
		rest := strings.TrimPrefix(below[2], f[0])
		for range 2 { // "0 / 0 3197 / 65536": memory, then HBM
			before, after, ok := strings.Cut(rest, "/")
			if after = strings.TrimSpace(after); !ok {
				break
			}
			n := digits(after)
			if used, total := sample.Mebibytes(endsWith(before, "")), sample.Mebibytes(after[:n]); total.State == sample.OK && total.V > 0 {
				g.MemUsed, g.MemTotal = sample.Within(used, total), total
			}
			rest = after[n:]
		}
	}
	return g
}

// npuProcess reads "0 0 | 692318 | python3 | 12417 | NA".
func npuProcess(cells []string, place map[string]int) (sample.Process, bool) {
	if len(cells) < 4 {
		return sample.Process{}, false
	}
	pid, err := strconv.ParseUint(cells[1], 10, 31)
	f := strings.Fields(cells[0])
	if err != nil || pid == 0 || len(f) < 2 {
		return sample.Process{}, false
	}
	p := sample.Process{GPUIndex: -1, PID: int(pid), Command: sample.Word(cells[2], 400), Mem: sample.Mebibytes(cells[3])}
	if i, ok := place[f[0]+" "+f[1]]; ok {
		p.GPUIndex = i
	}
	return p, true
}
