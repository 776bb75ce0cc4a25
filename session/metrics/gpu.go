package metrics

// The accelerators, under dcgm-exporter's names, units and labels (NVIDIA/dcgm-exporter
// etc/default-counters.csv and internal/pkg/rendermetrics; the fields are those of
// dcgm_fields.h). What DCGM counts otherwise has a name of ours.

import (
	"strconv"
	"strings"

	"rentop/remote/gpu"
)

const mib = 1 << 20

// figure is a row of the table: what a GPU's cell is called outside.
type figure struct {
	name  string
	kind  kind
	help  string
	value func(*gpu.GPU) gpu.Value
}

// scaled is a value in another unit.
func scaled(v gpu.Value, by float64) gpu.Value {
	v.V *= by
	return v
}

// free is what is neither used nor reserved; not known where a part is not. Drivers
// that do not tell what they reserve count it as used.
func free(g *gpu.GPU) gpu.Value {
	total, ok := g.MemTotal.Get()
	used, ok2 := g.MemUsed.Get()
	if !ok || !ok2 {
		return gpu.Value{}
	}
	reserved, _ := g.MemReserved.Get()
	return gpu.Of(max(0, total-used-reserved) / mib)
}

// lastXID is the newest error event; absent where there was none.
func lastXID(g *gpu.GPU) gpu.Value {
	if n := len(g.XIDs); n > 0 {
		return gpu.Of(float64(g.XIDs[n-1].Code))
	}
	return gpu.Value{}
}

// figures are the cells of a GPU.
func figures() []figure {
	return []figure{
		{"DCGM_FI_DEV_SM_CLOCK", gauge, "SM clock frequency (in MHz).", func(g *gpu.GPU) gpu.Value { return g.ClockSM }},
		{"DCGM_FI_DEV_MEM_CLOCK", gauge, "Memory clock frequency (in MHz).", func(g *gpu.GPU) gpu.Value { return g.ClockMem }},
		{"DCGM_FI_DEV_MAX_SM_CLOCK", gauge, "Maximum SM clock frequency (in MHz).", func(g *gpu.GPU) gpu.Value { return g.ClockSMMax }},
		{"DCGM_FI_DEV_MAX_MEM_CLOCK", gauge, "Maximum memory clock frequency (in MHz).", func(g *gpu.GPU) gpu.Value { return g.ClockMemMax }},
		{"DCGM_FI_DEV_GPU_TEMP", gauge, "GPU temperature (in C).", func(g *gpu.GPU) gpu.Value { return g.Temp }},
		{"DCGM_FI_DEV_GPU_TEMP_LIMIT", gauge, "Distance to the nearest slowdown threshold (in C).", func(g *gpu.GPU) gpu.Value { return g.TempMargin }},
		{"DCGM_FI_DEV_FAN_SPEED", gauge, "Fan speed (in %).", func(g *gpu.GPU) gpu.Value { return g.Fan }},
		{"DCGM_FI_DEV_POWER_USAGE", gauge, "Power draw (in W).", func(g *gpu.GPU) gpu.Value { return g.Power }},
		{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", gauge, "Power limit in force (in W).", func(g *gpu.GPU) gpu.Value { return g.PowerLimit }},
		{"DCGM_FI_DEV_GPU_UTIL", gauge, "GPU utilization (in %).", func(g *gpu.GPU) gpu.Value { return g.Util }},
		{"DCGM_FI_DEV_MEM_COPY_UTIL", gauge, "Memory utilization (in %).", func(g *gpu.GPU) gpu.Value { return g.MemUtil }},
		{"DCGM_FI_DEV_ENC_UTIL", gauge, "Encoder utilization (in %).", func(g *gpu.GPU) gpu.Value { return g.Encoder }},
		{"DCGM_FI_DEV_DEC_UTIL", gauge, "Decoder utilization (in %).", func(g *gpu.GPU) gpu.Value { return g.Decoder }},
		{"DCGM_FI_DEV_XID_ERRORS", gauge, "Value of the last XID error encountered; absent where none was.", lastXID},
		{"DCGM_FI_DEV_FB_FREE", gauge, "Framebuffer memory free (in MiB).", free},
		{"DCGM_FI_DEV_FB_USED", gauge, "Framebuffer memory used (in MiB).", func(g *gpu.GPU) gpu.Value { return scaled(g.MemUsed, 1./mib) }},
		{"DCGM_FI_DEV_FB_RESERVED", gauge, "Framebuffer memory reserved (in MiB).", func(g *gpu.GPU) gpu.Value { return scaled(g.MemReserved, 1./mib) }},
		{"DCGM_FI_DEV_FB_TOTAL", gauge, "Framebuffer memory (in MiB).", func(g *gpu.GPU) gpu.Value { return scaled(g.MemTotal, 1./mib) }},
		{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", counter, "Total number of double-bit volatile ECC errors.", func(g *gpu.GPU) gpu.Value { return g.ECCErrors }},
		{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", counter, "Total number of single-bit volatile ECC errors.", func(g *gpu.GPU) gpu.Value { return g.ECCCorrected }},
		{"DCGM_FI_DEV_ROW_REMAP_FAILURE", gauge, "Whether remapping of rows has failed.", func(g *gpu.GPU) gpu.Value { return g.RemapFailed }},
		{"DCGM_FI_DEV_ROW_REMAP_PENDING", gauge, "Whether remapping of rows waits for a reset.", func(g *gpu.GPU) gpu.Value { return g.RemapPending }},
		{"DCGM_FI_DEV_PCIE_LINK_GEN", gauge, "PCIe generation in use.", func(g *gpu.GPU) gpu.Value { return g.PCIeGen }},
		{"DCGM_FI_DEV_PCIE_LINK_WIDTH", gauge, "PCIe width in use.", func(g *gpu.GPU) gpu.Value { return g.PCIeWidth }},
		{"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", gauge, "PCIe generation at most.", func(g *gpu.GPU) gpu.Value { return g.PCIeGenMax }},
		{"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", gauge, "PCIe width at most.", func(g *gpu.GPU) gpu.Value { return g.PCIeWidthMax }},
		{"rentop_gpu_pcie_transmit_bytes_per_second", gauge, "Sent over PCIe, as the driver measured it over 20 ms.", func(g *gpu.GPU) gpu.Value { return g.PCIeTx }},
		{"rentop_gpu_pcie_receive_bytes_per_second", gauge, "Received over PCIe, as the driver measured it over 20 ms.", func(g *gpu.GPU) gpu.Value { return g.PCIeRx }},
		{"rentop_gpu_nvlink_transmit_bytes_per_second", gauge, "Sent over all NVLinks.", func(g *gpu.GPU) gpu.Value { return g.NVLinkTx }},
		{"rentop_gpu_nvlink_receive_bytes_per_second", gauge, "Received over all NVLinks.", func(g *gpu.GPU) gpu.Value { return g.NVLinkRx }},
		{"rentop_gpu_nvlinks_up", gauge, "NVLinks that are up.", func(g *gpu.GPU) gpu.Value { return g.NVLinks }},
		{"rentop_gpu_nvlinks_down", gauge, "NVLinks that were up and are not.", func(g *gpu.GPU) gpu.Value { return g.NVLinksDown }},
		{"rentop_gpu_remapped_rows", gauge, "Rows of memory remapped after errors of either kind.", func(g *gpu.GPU) gpu.Value { return g.RemappedRows }},
		{"rentop_gpu_hidden_memory_bytes", gauge, "Held by processes that the container does not show.", func(g *gpu.GPU) gpu.Value { return g.HiddenMem }},
	}
}

// gpus adds the cards of a sample.
func (p *page) gpus(s *gpu.Sample, of labels) {
	all := figures()
	for i := range s.GPUs {
		g, l := &s.GPUs[i], card(s, i, of)
		for _, f := range all {
			if v, ok := f.value(g).Get(); ok {
				p.add(f.name, f.kind, f.help, l, v)
			}
		}
		for _, why := range g.Throttle {
			p.add("rentop_gpu_throttled", gauge, "1 for each reason for which the card is slowed down now.", l.with(label{"reason", why}), 1)
		}
		if g.Problem != "" {
			p.add("rentop_gpu_problem", gauge, "1 where the card does not answer as it should, and why.", l.with(label{"problem", g.Problem}), 1)
		}
		for _, in := range g.Instances {
			mig := l.with(label{"GPU_I_PROFILE", in.Profile}, label{"GPU_I_ID", strconv.Itoa(in.GI)})
			if v, ok := in.MemUsed.Get(); ok {
				p.add("DCGM_FI_DEV_FB_USED", gauge, "Framebuffer memory used (in MiB).", mig, v/mib)
			}
			if v, ok := in.MemTotal.Get(); ok {
				p.add("DCGM_FI_DEV_FB_TOTAL", gauge, "Framebuffer memory (in MiB).", mig, v/mib)
			}
			if v, ok := in.Util.Get(); ok {
				p.add("DCGM_FI_DEV_GPU_UTIL", gauge, "GPU utilization (in %).", mig, v)
			}
		}
	}
}

// card are dcgm-exporter's labels of one card. Its model names have the maker's name.
func card(s *gpu.Sample, i int, of labels) labels {
	g := &s.GPUs[i]
	index, name := "", g.Name
	if g.Index >= 0 {
		index = strconv.Itoa(g.Index)
	}
	device := "nvidia" + index
	switch {
	case s.Source != "nvml" && s.Source != "nvidia-smi":
		device = index // other makers' cards have other nodes
	case name != "" && !strings.HasPrefix(name, "NVIDIA"):
		name = "NVIDIA " + name
	}
	l := labels{{"gpu", index}, {"UUID", g.UUID}, {"pci_bus_id", g.PCIBus}, {"device", device}, {"modelName", name}}
	l = append(l, of...)
	if s.Driver != "" {
		l = append(l, label{"DCGM_FI_DRIVER_VERSION", s.Driver})
	}
	return l
}
