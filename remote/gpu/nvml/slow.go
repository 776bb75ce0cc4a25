//go:build linux && cgo

package nvml

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// slow reads what changes seldom or takes long to read.
func (d *device) slow(g *sample.GPU) {
	if d.gone != nvml.SUCCESS {
		return
	}
	g.PowerLimit = d.u32("nvmlDeviceGetEnforcedPowerLimit", d.dev.GetEnforcedPowerLimit, 1e-3, 1e5)
	g.Fan = d.u32("nvmlDeviceGetFanSpeed", d.dev.GetFanSpeed, 1, 1000)
	clamp(&g.Fan, 100)
	g.PCIeGen = d.number("nvmlDeviceGetCurrPcieLinkGeneration", d.dev.GetCurrPcieLinkGeneration, 99)
	g.PCIeWidth = d.number("nvmlDeviceGetCurrPcieLinkWidth", d.dev.GetCurrPcieLinkWidth, 1024)
	rate := func(c nvml.PcieUtilCounter) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) { return d.dev.GetPcieThroughput(c) }
	}
	g.PCIeRx = d.u32("nvmlDeviceGetPcieThroughput", rate(nvml.PCIE_UTIL_RX_BYTES), 1024, 1e13)
	g.PCIeTx = d.u32("nvmlDeviceGetPcieThroughput", rate(nvml.PCIE_UTIL_TX_BYTES), 1024, 1e13)
	errors := func(t nvml.MemoryErrorType) sample.Value {
		n, ret := get(d, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) { return d.dev.GetTotalEccErrors(t, nvml.VOLATILE_ECC) })
		return value(d.lib, n, ret, 1, maxCount)
	}
	g.ECCErrors, g.ECCCorrected = errors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED), errors(nvml.MEMORY_ERROR_TYPE_CORRECTED)
	d.remapped(g)
	d.links(g)
	d.mig(g)
}

func (d *device) remapped(g *sample.GPU) {
	type rows struct{ n, pending, failed int }
	r, ret := get(d, "nvmlDeviceGetRemappedRows", func() (rows, nvml.Return) {
		corrected, uncorrected, pending, failed, ret := d.dev.GetRemappedRows()
		return rows{corrected + uncorrected, bit(pending), bit(failed)}, ret
	})
	g.RemappedRows = value(d.lib, r.n, ret, 1, maxCount)
	g.RemapPending, g.RemapFailed = value(d.lib, r.pending, ret, 1, 1), value(d.lib, r.failed, ret, 1, 1)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// links counts the NVLinks that are up. Which should be is not told: one that was
// up since this reader began and is not any more is down.
func (d *device) links(g *sample.GPU) {
	up := 0
	for i := range nvml.NVLINK_MAX_LINKS {
		state, ret := get(d, "nvmlDeviceGetNvLinkState", func() (nvml.EnableState, nvml.Return) { return d.dev.GetNvLinkState(i) })
		if ret != nvml.SUCCESS {
			if i == 0 || failure(d.lib, ret).State == sample.Failed {
				g.NVLinks, g.NVLinksDown = failure(d.lib, ret), failure(d.lib, ret)
				return
			}
			break
		}
		if state == nvml.FEATURE_ENABLED {
			up++
		}
	}
	d.linksUp = max(d.linksUp, up)
	g.NVLinks, g.NVLinksDown = sample.Of(float64(up)), sample.Of(float64(d.linksUp-up))
}

// mig lists the GPU's instances.
func (d *device) mig(g *sample.GPU) {
	g.MIG, g.Instances = "", nil
	mode, ret := get(d, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		now, _, ret := d.dev.GetMigMode()
		return now, ret
	})
	if ret != nvml.SUCCESS {
		return
	}
	if g.MIG = "Disabled"; mode != nvml.DEVICE_MIG_ENABLE {
		return
	}
	g.MIG = "Enabled"
	n, ret := get(d, "nvmlDeviceGetMaxMigDeviceCount", d.dev.GetMaxMigDeviceCount)
	if ret != nvml.SUCCESS {
		return
	}
	for i := range min(n, sample.MaxInstances) {
		dev, ret := get(d, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) { return d.dev.GetMigDeviceHandleByIndex(i) })
		if ret != nvml.SUCCESS {
			continue // a slot that is not used
		}
		g.Instances = append(g.Instances, d.instance(dev))
	}
}

func (d *device) instance(dev nvml.Device) sample.Instance {
	in := sample.Instance{GI: -1, CI: -1, Util: sample.Value{Why: "not told under MIG"}}
	part := &device{lib: d.lib, dev: dev}
	if id, ret := get(part, "nvmlDeviceGetGpuInstanceId", dev.GetGpuInstanceId); ret == nvml.SUCCESS {
		in.GI = id
	}
	if id, ret := get(part, "nvmlDeviceGetComputeInstanceId", dev.GetComputeInstanceId); ret == nvml.SUCCESS {
		in.CI = id
	}
	if s, ret := get(part, "nvmlDeviceGetUUID", dev.GetUUID); ret == nvml.SUCCESS {
		in.UUID = clean.Short(s, 80)
	}
	if s, ret := get(part, "nvmlDeviceGetName", dev.GetName); ret == nvml.SUCCESS {
		_, profile, _ := strings.Cut(s, " MIG ") // "NVIDIA H100 80GB HBM3 MIG 1g.10gb", from 470 on
		in.Profile = clean.Short(profile, 20)
	}
	var g sample.GPU
	part.memory(&g)
	in.MemUsed, in.MemTotal = g.MemUsed, g.MemTotal
	return in
}

// holders are the processes that compute or draw on the GPU, each once.
func (d *device) holders() (list []holder, why string) {
	if d.gone != nvml.SUCCESS {
		return nil, "the GPU does not answer"
	}
	if d.lib.broken {
		return nil, "driver " + d.lib.driver + " tells its processes wrongly"
	}
	seen := map[int]int{}
	add := func(ps []nvml.ProcessInfo) {
		for _, p := range ps {
			if p.Pid == 0 || p.Pid > 1<<30 || len(list) >= sample.MaxProcesses {
				continue
			}
			mem := sample.Value{Why: "not told for a process"}
			if p.UsedGpuMemory < maxBytes {
				mem = sample.Of(float64(p.UsedGpuMemory))
			}
			if i, ok := seen[int(p.Pid)]; ok {
				if mem.State == sample.OK && (list[i].mem.State != sample.OK || list[i].mem.V < mem.V) {
					list[i].mem = mem // the same memory, told by both lists
				}
				continue
			}
			seen[int(p.Pid)] = len(list)
			list = append(list, holder{int(p.Pid), mem})
		}
	}
	compute, ret := get(d, "nvmlDeviceGetComputeRunningProcesses", d.dev.GetComputeRunningProcesses)
	if ret != nvml.SUCCESS {
		return nil, failure(d.lib, ret).Why
	}
	add(compute)
	if graphics, ret := get(d, "nvmlDeviceGetGraphicsRunningProcesses", d.dev.GetGraphicsRunningProcesses); ret == nvml.SUCCESS {
		add(graphics)
	}
	return list, ""
}
