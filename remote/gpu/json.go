package gpu

import (
	"encoding/json"
	"time"
)

// The JSON of `rentop gpu NAME --json`. Scripts rely on it: names are added, never
// changed. Units: bytes, watts, degrees Celsius, percent, MHz, seconds, bytes a
// second. A value that is not available is null, and `errors` beside it says why.

// cells are values of one object by name.
type cells struct {
	object map[string]any
	errors map[string]string
}

func newCells() cells { return cells{map[string]any{}, map[string]string{}} }

func (c cells) set(name string, v Value) {
	if f, ok := v.Get(); ok {
		c.object[name] = f
		return
	}
	c.object[name] = nil
	if c.errors[name] = v.Why; v.Why == "" {
		c.errors[name] = "not available"
	}
}

func (c cells) done() map[string]any {
	c.object["errors"] = c.errors
	return c.object
}

// orNull makes null of an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (g GPU) object() map[string]any {
	c := newCells()
	o := c.object
	o["index"], o["uuid"], o["name"], o["pci_bus"] = g.Index, orNull(g.UUID), orNull(g.Name), orNull(g.PCIBus)
	if g.Index < 0 {
		o["index"] = nil
	}
	o["pstate"], o["mig"], o["problem"] = orNull(g.PState), orNull(g.MIG), orNull(g.Problem)
	o["throttle"], o["throttle_hot"] = append([]string{}, g.Throttle...), g.ThrottleHot
	names := []string{"util", "mem_util", "mem_used", "mem_total", "mem_reserved", "power", "power_limit",
		"temp", "temp_margin", "fan", "clock_sm", "clock_sm_max", "clock_mem", "clock_mem_max",
		"pcie_gen", "pcie_width", "ecc_errors"}
	for i, v := range g.values() {
		c.set(names[i], *v)
	}
	return c.done()
}

func (p Process) object() map[string]any {
	c := newCells()
	c.object["pid"], c.object["user"], c.object["command"] = p.PID, orNull(p.User), orNull(p.Command)
	c.object["gpu"], c.object["started_at"] = nil, nil
	if p.GPUIndex >= 0 {
		c.object["gpu"] = p.GPUIndex
	}
	if !p.StartedAt.IsZero() {
		c.object["started_at"] = p.StartedAt.UTC().Truncate(time.Second)
	}
	c.set("mem", p.Mem)
	return c.done()
}

func (h Host) object() map[string]any {
	c := newCells()
	if c.object["cpus"] = h.CPUs; h.CPUs == 0 {
		c.object["cpus"] = nil
	}
	c.set("cpu", h.CPU)
	c.set("load1", h.Load1)
	c.set("mem_used", h.MemUsed)
	c.set("mem_total", h.MemTotal)
	c.set("net_rx", h.NetRx)
	c.set("net_tx", h.NetTx)
	c.set("uptime", h.UptimeSec)
	list := []any{}
	for _, d := range h.Disks {
		dc := newCells()
		dc.object["mount"] = d.Mount
		dc.set("used", d.Used)
		dc.set("total", d.Total)
		dc.set("inodes_used", d.InodesUsed)
		list = append(list, dc.done())
	}
	c.object["disks"] = list
	return c.done()
}

// MarshalJSON writes the sample as scripts may rely on it.
func (s Sample) MarshalJSON() ([]byte, error) {
	gpus, procs := []any{}, []any{}
	for _, g := range s.GPUs {
		gpus = append(gpus, g.object())
	}
	for _, p := range s.Processes {
		procs = append(procs, p.object())
	}
	o := map[string]any{
		"taken_at": s.TakenAt.UTC().Truncate(time.Millisecond), "source": s.Source, "driver": orNull(s.Driver),
		"gpus": gpus, "processes": procs, "processes_hidden": s.Hidden, "host": s.Host.object(), "problem": nil,
	}
	if s.Problem != nil {
		o["problem"] = map[string]string{"what": s.Problem.What, "cure": s.Problem.Cure}
	}
	return json.Marshal(o)
}
