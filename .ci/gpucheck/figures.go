package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sample is what of rentop's JSON is compared.
type sample struct {
	Source string           `json:"source"`
	Reason string           `json:"source_reason"`
	Driver string           `json:"driver"`
	GPUs   []map[string]any `json:"gpus"`
}

// figure is one column of nvidia-smi and its name in rentop's JSON.
type figure struct {
	smi, json string
	scale     float64 // rentop's unit in nvidia-smi's; 0: a text
	apart     float64 // how far the means may be apart, absolute
	part      float64 // or as a part
}

const mib = 1 << 20

// compared are the figures that both tell. Two that look at different moments of the
// same second differ: what moves is compared by its mean, with room.
var compared = []figure{
	{smi: "uuid", json: "uuid"},
	{smi: "name", json: "name"},
	{smi: "driver_version", json: "driver"},
	{smi: "pci.bus_id", json: "pci_bus"},
	{smi: "memory.total", json: "mem_total", scale: 1. / mib, apart: 1},
	{smi: "memory.reserved", json: "mem_reserved", scale: 1. / mib, apart: 16},
	{smi: "memory.used", json: "mem_used", scale: 1. / mib, apart: 64, part: 0.02},
	{smi: "utilization.gpu", json: "util", scale: 1, apart: 10},
	{smi: "utilization.memory", json: "mem_util", scale: 1, apart: 10},
	{smi: "temperature.gpu", json: "temp", scale: 1, apart: 2},
	{smi: "power.draw", json: "power", scale: 1, apart: 5, part: 0.1},
	{smi: "enforced.power.limit", json: "power_limit", scale: 1, apart: 0.5},
	{smi: "fan.speed", json: "fan", scale: 1, apart: 5},
	{smi: "clocks.sm", json: "clock_sm", scale: 1, apart: 30, part: 0.1},
	{smi: "clocks.max.sm", json: "clock_sm_max", scale: 1},
	{smi: "clocks.mem", json: "clock_mem", scale: 1, apart: 30, part: 0.1},
	{smi: "clocks.max.mem", json: "clock_mem_max", scale: 1},
	{smi: "pcie.link.gen.current", json: "pcie_gen", scale: 1, apart: 1},
	{smi: "pcie.link.gen.max", json: "pcie_gen_max", scale: 1},
	{smi: "pcie.link.width.current", json: "pcie_width", scale: 1},
	{smi: "pcie.link.width.max", json: "pcie_width_max", scale: 1},
	{smi: "utilization.encoder", json: "encoder", scale: 1, apart: 10},
	{smi: "utilization.decoder", json: "decoder", scale: 1, apart: 10},
	{smi: "ecc.errors.uncorrected.volatile.total", json: "ecc_errors", scale: 1},
	{smi: "ecc.errors.corrected.volatile.total", json: "ecc_corrected", scale: 1},
}

// seen is all that one side told of a figure.
type seen struct {
	sum  float64
	n    int
	text string
	why  string // where there was none
}

func (s seen) mean() float64 { return s.sum / float64(s.n) }

func (s seen) String() string {
	switch {
	case s.text != "":
		return s.text
	case s.n > 0:
		return strconv.FormatFloat(math.Round(s.mean()*10)/10, 'f', -1, 64)
	case s.why != "":
		return "– (" + s.why + ")"
	}
	return "–"
}

// judge compares the two.
func (c figure) judge(a, b seen) string {
	switch {
	case a.n == 0 && b.n == 0:
		return "none has it"
	case b.n == 0:
		return "only the helper"
	case a.n == 0:
		return "differs" // the helper lacks what nvidia-smi tells
	case c.scale == 0:
		if plainName(a.text) == plainName(b.text) {
			return "same"
		}
		return "differs"
	}
	if d := math.Abs(a.mean() - b.mean()); d <= c.apart+1e-9 || d <= c.part*math.Max(a.mean(), b.mean()) {
		return "same"
	}
	return "differs"
}

// plainName leaves out the maker, which rentop does not show, and the domain's zeros.
func plainName(s string) string {
	return strings.TrimLeft(strings.ToLower(strings.TrimPrefix(s, "NVIDIA ")), "0:")
}

// bySide is figures by card and name.
type bySide map[string]map[string]seen

func (m bySide) of(uuid string) map[string]seen {
	if m[uuid] == nil {
		m[uuid] = map[string]seen{}
	}
	return m[uuid]
}

func fromHelper(samples []sample) bySide {
	out := bySide{}
	for _, s := range samples {
		for _, g := range s.GPUs {
			uuid, _ := g["uuid"].(string)
			why, _ := g["errors"].(map[string]any)
			for _, c := range compared {
				x := out.of(uuid)[c.smi]
				v := g[c.json]
				if c.json == "driver" {
					v = s.Driver
				}
				switch v := v.(type) {
				case float64:
					x.sum += v * c.scale
					x.n++
				case string:
					x.text = v
					x.n++
				default:
					x.why = fmt.Sprint(why[c.json])
				}
				out.of(uuid)[c.smi] = x
			}
		}
	}
	return out
}

func fromSMI(asked []figure, rows []string) bySide {
	out := bySide{}
	for _, row := range rows {
		cells := strings.Split(row, ",")
		if len(cells) != len(asked) {
			continue
		}
		uuid := strings.TrimSpace(cells[0])
		for i, c := range asked {
			x := out.of(uuid)[c.smi]
			cell := strings.TrimSpace(cells[i])
			f, err := strconv.ParseFloat(cell, 64)
			switch {
			case strings.HasPrefix(cell, "[") || cell == "N/A" || cell == "":
				x.why = cell
			case c.scale == 0:
				x.text = cell
				x.n++
			case err == nil:
				x.sum += f
				x.n++
			}
			out.of(uuid)[c.smi] = x
		}
	}
	return out
}

// keys are the cards that either side has.
func keys(a, b bySide) []string {
	var out []string
	for k := range a {
		out = append(out, k)
	}
	for k := range b {
		if _, there := a[k]; !there {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
