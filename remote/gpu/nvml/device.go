//go:build linux && cgo

package nvml

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// device is one GPU.
type device struct {
	lib  *library
	dev  nvml.Device
	gone nvml.Return // why there is no handle
	ill  nvml.Return // the worst that a call of this reading returned

	linkRx, linkTx counter
	linksUp        int // the most that have been up
}

// counter makes a rate of a count that only grows.
type counter struct {
	count uint64
	at    time.Time
}

func (c *counter) rate(now uint64, at time.Time, unit float64) sample.Value {
	before := *c
	c.count, c.at = now, at
	dt := at.Sub(before.at).Seconds()
	switch {
	case before.at.IsZero() || dt <= 0:
		return sample.Value{Why: "known from the second reading on"}
	case now < before.count:
		return sample.Value{Why: "the counters went back"}
	}
	return sample.Of(float64(now-before.count) * unit / dt)
}

// get makes a call of a device, and remembers what it tells of the whole GPU.
func get[T any](d *device, symbol string, f func() (T, nvml.Return)) (T, nvml.Return) {
	if d.gone != nvml.SUCCESS {
		var none T
		d.ill = d.gone
		return none, d.gone
	}
	v, ret := call(d.lib, symbol, f)
	if ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED {
		d.ill = ret
	}
	return v, ret
}

func (d *device) cell(ret nvml.Return) sample.Value { return failure(d.lib, ret) }

// u32 reads one figure.
func (d *device) u32(symbol string, f func() (uint32, nvml.Return), scale, highest float64) sample.Value {
	v, ret := get(d, symbol, f)
	return value(d.lib, v, ret, scale, highest)
}

func (d *device) number(symbol string, f func() (int, nvml.Return), highest float64) sample.Value {
	v, ret := get(d, symbol, f)
	if v < 0 {
		return sample.Value{State: sample.Failed, Why: "implausible"}
	}
	return value(d.lib, v, ret, 1, highest)
}

const (
	maxBytes = 1 << 50
	maxCount = 1 << 53
)

func (d *device) fixed(g *sample.GPU) {
	if d.gone != nvml.SUCCESS {
		return
	}
	if s, ret := get(d, "nvmlDeviceGetName", d.dev.GetName); ret == nvml.SUCCESS {
		g.Name = strings.TrimPrefix(clean.Short(s, 60), "NVIDIA ")
	}
	if s, ret := get(d, "nvmlDeviceGetUUID", d.dev.GetUUID); ret == nvml.SUCCESS {
		g.UUID = clean.Short(s, 80)
	}
	if p, ret := get(d, "nvmlDeviceGetPciInfo_v3", d.dev.GetPciInfo); ret == nvml.SUCCESS {
		g.PCIBus = clean.Short(chars(p.BusId[:]), 32)
	}
	clock := func(t nvml.ClockType) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) { return d.dev.GetMaxClockInfo(t) }
	}
	g.ClockSMMax = d.u32("nvmlDeviceGetMaxClockInfo", clock(nvml.CLOCK_SM), 1, 1e6)
	g.ClockMemMax = d.u32("nvmlDeviceGetMaxClockInfo", clock(nvml.CLOCK_MEM), 1, 1e6)
	g.PCIeGenMax = d.number("nvmlDeviceGetMaxPcieLinkGeneration", d.dev.GetMaxPcieLinkGeneration, 99)
	g.PCIeWidthMax = d.number("nvmlDeviceGetMaxPcieLinkWidth", d.dev.GetMaxPcieLinkWidth, 1024)
	g.PowerLimit = d.u32("nvmlDeviceGetEnforcedPowerLimit", d.dev.GetEnforcedPowerLimit, 1e-3, 1e5)
}

// chars is a C string.
func chars(c []int8) string {
	var b strings.Builder
	for _, x := range c {
		if x == 0 {
			break
		}
		b.WriteByte(byte(x))
	}
	return b.String()
}

func (d *device) fast(g *sample.GPU) {
	d.ill = nvml.SUCCESS
	if d.gone != nvml.SUCCESS {
		for _, v := range g.Cells() {
			*v = d.cell(d.gone)
			v.State = sample.Failed
		}
		g.Problem = illness(d.gone, d.lib)
		return
	}
	u, ret := get(d, "nvmlDeviceGetUtilizationRates", d.dev.GetUtilizationRates)
	g.Util, g.MemUtil = value(d.lib, u.Gpu, ret, 1, 1000), value(d.lib, u.Memory, ret, 1, 1000)
	clamp(&g.Util, 100)
	clamp(&g.MemUtil, 100)
	d.memory(g)
	g.Power = d.u32("nvmlDeviceGetPowerUsage", d.dev.GetPowerUsage, 1e-3, 1e5)
	g.Temp = d.u32("nvmlDeviceGetTemperature", func() (uint32, nvml.Return) { return d.dev.GetTemperature(nvml.TEMPERATURE_GPU) }, 1, 250)
	d.margin(g)
	clock := func(t nvml.ClockType) func() (uint32, nvml.Return) {
		return func() (uint32, nvml.Return) { return d.dev.GetClockInfo(t) }
	}
	g.ClockSM = d.u32("nvmlDeviceGetClockInfo", clock(nvml.CLOCK_SM), 1, 1e6)
	g.ClockMem = d.u32("nvmlDeviceGetClockInfo", clock(nvml.CLOCK_MEM), 1, 1e6)
	g.PState = ""
	if p, ret := get(d, "nvmlDeviceGetPerformanceState", d.dev.GetPerformanceState); ret == nvml.SUCCESS && p >= 0 && p < 16 {
		g.PState = fmt.Sprintf("P%d", p)
	}
	d.throttle(g)
	g.Encoder = d.u32("nvmlDeviceGetEncoderUtilization", func() (uint32, nvml.Return) {
		v, _, ret := d.dev.GetEncoderUtilization()
		return v, ret
	}, 1, 100)
	g.Decoder = d.u32("nvmlDeviceGetDecoderUtilization", func() (uint32, nvml.Return) {
		v, _, ret := d.dev.GetDecoderUtilization()
		return v, ret
	}, 1, 100)
	d.linkRate(g)
	if d.ill == nvml.SUCCESS {
		return
	}
	g.Problem = illness(d.ill, d.lib)
	if d.ill == nvml.ERROR_GPU_IS_LOST { // what the slow tier read before is no longer true
		for _, v := range g.Cells() {
			if v.State == sample.OK {
				*v = failure(d.lib, d.ill)
			}
		}
		g.Instances = nil
	}
}

func clamp(v *sample.Value, highest float64) {
	if v.State == sample.OK {
		v.V = min(v.V, highest)
	}
}

// memory tells reserved apart where the driver does: what it reserves is nobody's
// use (gpustat#141).
func (d *device) memory(g *sample.GPU) {
	m, ret := get(d, "nvmlDeviceGetMemoryInfo_v2", d.dev.GetMemoryInfo_v2)
	if ret == nvml.SUCCESS {
		g.MemReserved = value(d.lib, m.Reserved, ret, 1, maxBytes)
	} else {
		g.MemReserved = failure(d.lib, ret)
		var old nvml.Memory
		old, ret = get(d, "nvmlDeviceGetMemoryInfo", d.dev.GetMemoryInfo)
		m.Used, m.Total = old.Used, old.Total
	}
	g.MemUsed, g.MemTotal = value(d.lib, m.Used, ret, 1, maxBytes), value(d.lib, m.Total, ret, 1, maxBytes)
	if g.MemTotal.State == sample.OK {
		clamp(&g.MemUsed, g.MemTotal.V) // HAMi#332
	}
}

// margin is how far the GPU is from slowing down: told by newer drivers, worked
// out from the threshold on the older.
func (d *device) margin(g *sample.GPU) {
	m, ret := get(d, "nvmlDeviceGetMarginTemperature", d.dev.GetMarginTemperature)
	if ret == nvml.SUCCESS && m.MarginTemperature > -250 && m.MarginTemperature < 250 {
		g.TempMargin = sample.Of(float64(m.MarginTemperature))
		return
	}
	at := d.u32("nvmlDeviceGetTemperatureThreshold", func() (uint32, nvml.Return) {
		return d.dev.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	}, 1, 250)
	if g.TempMargin = at; at.State == sample.OK && g.Temp.State == sample.OK {
		g.TempMargin = sample.Of(at.V - g.Temp.V)
	} else if at.State == sample.OK {
		g.TempMargin = g.Temp
	}
}

func (d *device) throttle(g *sample.GPU) {
	mask, ret := get(d, "nvmlDeviceGetCurrentClocksEventReasons", d.dev.GetCurrentClocksEventReasons)
	if ret != nvml.SUCCESS {
		mask, ret = get(d, "nvmlDeviceGetCurrentClocksThrottleReasons", d.dev.GetCurrentClocksThrottleReasons)
	}
	g.Throttle, g.ThrottleHot, g.ThrottleKnown = nil, false, ret == nvml.SUCCESS
	if g.ThrottleKnown {
		g.Throttle, g.ThrottleHot = sample.ThrottleMask(mask)
	}
}

// linkRate reads what all NVLinks of the GPU have moved, in one call.
func (d *device) linkRate(g *sample.GPU) {
	const all = math.MaxUint32
	f := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: all}, {FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: all}}
	_, ret := get(d, "nvmlDeviceGetFieldValues", func() (struct{}, nvml.Return) { return struct{}{}, d.dev.GetFieldValues(f) })
	now := time.Now()
	one := func(c *counter, v nvml.FieldValue) sample.Value {
		switch {
		case ret != nvml.SUCCESS:
			return failure(d.lib, ret)
		case nvml.Return(v.NvmlReturn) != nvml.SUCCESS:
			return failure(d.lib, nvml.Return(v.NvmlReturn))
		}
		return c.rate(binary.NativeEndian.Uint64(v.Value[:]), now, 1024)
	}
	g.NVLinkRx, g.NVLinkTx = one(&d.linkRx, f[0]), one(&d.linkTx, f[1])
}

// illness puts what is wrong with a whole GPU into a sentence.
func illness(ret nvml.Return, l *library) string {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU is lost: save your work, then restart the instance or ask the provider for another"
	case nvml.ERROR_RESET_REQUIRED:
		return "the GPU requires a reset: save your work, then stop and start the instance"
	}
	return "the GPU does not answer (" + failure(l, ret).Why + "): restart the instance or ask the provider"
}
