package sample

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

// text sets a word, or null and why.
func (c cells) text(name, s, why string) {
	if c.object[name] = orNull(s); s == "" {
		c.errors[name] = why
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

const (
	notTold = "not told by the driver"
	unseen  = "not visible to this login"
)

func (g GPU) object() map[string]any {
	c := newCells()
	o := c.object
	if o["index"] = g.Index; g.Index < 0 {
		o["index"], c.errors["index"] = nil, notTold
	}
	for name, s := range map[string]string{"uuid": g.UUID, "name": g.Name, "pci_bus": g.PCIBus, "pstate": g.PState, "mig": g.MIG} {
		c.text(name, s, notTold)
	}
	o["problem"], o["throttle"], o["throttle_hot"] = orNull(g.Problem), append([]string{}, g.Throttle...), g.ThrottleHot
	names := []string{"util", "mem_util", "mem_used", "mem_total", "mem_reserved", "power", "power_limit",
		"temp", "temp_margin", "fan", "clock_sm", "clock_sm_max", "clock_mem", "clock_mem_max",
		"pcie_gen", "pcie_width", "ecc_errors", "encoder", "decoder", "pcie_gen_max", "pcie_width_max", "pcie_rx", "pcie_tx",
		"nvlinks", "nvlinks_down", "nvlink_rx", "nvlink_tx", "ecc_corrected", "remapped_rows", "remap_pending", "remap_failed", "hidden_mem"}
	for i, v := range g.Cells() {
		c.set(names[i], *v)
	}
	o["hidden_processes"], o["xids"], o["mig_instances"] = g.HiddenProcs, xids(g.XIDs), instances(g.Instances)
	return c.done()
}

func xids(list []XID) []any {
	out := []any{}
	for _, x := range list {
		out = append(out, map[string]any{"code": x.Code, "at": x.At.UTC().Truncate(time.Second)})
	}
	return out
}

func instances(list []Instance) []any {
	out := []any{}
	for _, in := range list {
		c := newCells()
		c.object["gi"], c.object["ci"] = in.GI, in.CI
		c.text("profile", in.Profile, notTold)
		c.text("uuid", in.UUID, notTold)
		c.set("mem_used", in.MemUsed)
		c.set("mem_total", in.MemTotal)
		c.set("util", in.Util)
		out = append(out, c.done())
	}
	return out
}

func (p Process) object() map[string]any {
	c := newCells()
	c.object["pid"] = p.PID
	c.text("user", p.User, unseen)
	c.text("command", p.Command, unseen)
	if c.object["gpu"] = p.GPUIndex; p.GPUIndex < 0 {
		c.object["gpu"], c.errors["gpu"] = nil, notTold
	}
	if c.object["started_at"] = p.StartedAt.UTC().Truncate(time.Second); p.StartedAt.IsZero() {
		c.object["started_at"], c.errors["started_at"] = nil, unseen
	}
	c.set("mem", p.Mem)
	return c.done()
}

func (h Host) object() map[string]any {
	c := newCells()
	if c.object["cpus"] = h.CPUs; h.CPUs == 0 {
		c.object["cpus"], c.errors["cpus"] = nil, "cannot be counted"
	}
	c.set("cpu", h.CPU)
	c.set("load1", h.Load1)
	c.set("mem_used", h.MemUsed)
	c.set("mem_total", h.MemTotal)
	c.set("net_rx", h.NetRx)
	c.set("net_tx", h.NetTx)
	c.set("uptime", h.UptimeSec)
	c.set("io_wait", h.IOWait)
	c.set("steal", h.Steal)
	c.set("gpu_open", h.GPUOpen)
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
		"gpus": gpus, "processes": procs, "processes_hidden": s.Hidden, "source_reason": orNull(s.Lesser), "host": s.Host.object(), "problem": nil,
	}
	if s.Problem != nil {
		o["problem"] = map[string]string{"what": s.Problem.What, "cure": s.Problem.Cure}
	}
	return json.Marshal(o)
}
