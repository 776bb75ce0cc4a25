// Package gpu reads what an instance's accelerators and host are doing, and
// parses the tools that tell it. It invents nothing: a cell is a value, not
// available, or an error.
package sample

import (
	"strings"
	"time"
)

// Value is one measured cell. The zero Value is "not available".
type Value struct {
	V     float64
	State ValueState
	Why   string // for NA and Failed: the tool's own word, cleaned ("[Not Supported]")
}

// ValueState says what a Value is.
type ValueState uint8

const (
	NA     ValueState = iota // the device or driver does not have it
	OK                       // V is the value
	Failed                   // reading it failed (ERR!, [Unknown Error], [GPU requires reset])
)

// Of returns an OK value.
func Of(v float64) Value { return Value{V: v, State: OK} }

// Get returns the value and whether there is one.
func (v Value) Get() (float64, bool) { return v.V, v.State == OK }

// GPU is one accelerator at one instant. Units: percent, bytes, watts, degrees
// Celsius, MHz.
type GPU struct {
	Index       int
	UUID        string
	Name        string // cleaned, "NVIDIA " kept off
	PCIBus      string
	Util        Value // percent
	MemUtil     Value // percent of time the memory bus was busy
	MemUsed     Value // bytes
	MemTotal    Value
	MemReserved Value
	Power       Value // watts
	PowerLimit  Value
	Temp        Value // °C
	TempMargin  Value // °C left until slowdown, where the driver tells (T.Limit)
	Fan         Value // percent
	ClockSM     Value // MHz
	ClockSMMax  Value
	ClockMem    Value
	ClockMemMax Value
	PState      string // "P0"
	Throttle    []string
	ThrottleHot bool  // one of Throttle is thermal or a power brake
	PCIeGen     Value // current
	PCIeWidth   Value
	ECCErrors   Value // uncorrected, volatile
	MIG         string
	Problem     string // "lost", "requires reset": a sentence; the other cells may still hold

	Encoder       Value // percent
	Decoder       Value
	PCIeGenMax    Value
	PCIeWidthMax  Value
	PCIeRx        Value // bytes a second
	PCIeTx        Value
	NVLinks       Value // links that are up
	NVLinksDown   Value // links that should be up and are not
	NVLinkRx      Value // bytes a second, all links
	NVLinkTx      Value
	ECCCorrected  Value // volatile
	RemappedRows  Value // by correctable and uncorrectable errors
	RemapPending  Value // 1: a remapping waits for a reset
	RemapFailed   Value // 1: a row could not be remapped
	HiddenMem     Value // bytes that processes hold which the container does not show
	HiddenProcs   int   // how many of them the driver tells
	Instances     []Instance
	XIDs          []XID // since the reader began, newest last
	ThrottleKnown bool  // Throttle was read: empty means none
}

// Instance is one MIG instance of a GPU.
type Instance struct {
	GI, CI   int    // GPU and compute instance
	Profile  string // "1g.10gb"
	UUID     string
	MemUsed  Value // bytes
	MemTotal Value
	Util     Value // percent; most drivers do not tell it
}

// XID is one error event of the driver.
type XID struct {
	Code int
	At   time.Time
}

// Bounds of what one sample may hold, whoever it comes from.
const (
	MaxGPUs      = 128
	MaxProcesses = 512
	MaxDisks     = 16
	MaxInstances = 16 // of one GPU; the hardware has 7
	MaxXIDs      = 16 // of one GPU
)

// Process is one process that holds a GPU.
type Process struct {
	GPUIndex  int // -1 where unknown
	PID       int
	User      string
	Command   string // cleaned
	Mem       Value  // bytes
	StartedAt time.Time
}

// Host is the machine around the GPUs. Rates are bytes a second.
type Host struct {
	CPUs      int
	CPU       Value // percent of all cores
	Load1     Value
	MemUsed   Value // bytes; the container's own limit where there is one
	MemTotal  Value
	Disks     []Disk
	NetRx     Value
	NetTx     Value
	UptimeSec Value
	IOWait    Value // percent of all cores' time that waited for disks
	Steal     Value // percent of all cores' time that the hypervisor gave to others
	GPUOpen   Value // processes here that have the GPUs' driver open, the reader aside
}

// Disk is one mount that a person may fill.
type Disk struct {
	Mount      string
	Used       Value // bytes
	Total      Value
	InodesUsed Value // percent
}

// Problem is a tool's complaint as a sentence with a cure.
type Problem struct {
	What string // "the NVIDIA driver is not loaded"
	Cure string // "reboot the instance, or ask the provider"
}

// Sample is the state of an instance's accelerators and host at one instant.
type Sample struct {
	TakenAt   time.Time // rentop's clock, when the sample was complete
	Source    string    // "nvml", "nvidia-smi", "host only"
	Driver    string
	GPUs      []GPU
	Processes []Process
	Hidden    bool // processes exist that the container does not show
	Host      Host
	Problem   *Problem // why there are no GPUs, or none readable
	Lesser    string   // why Source is not the helper on the instance; "" where it is or none is wanted
}

// NewGPU is a GPU of which nothing is known yet, with the reason why.
func NewGPU(why string) GPU {
	g := GPU{Index: -1}
	for _, v := range g.Cells() {
		v.Why = why
	}
	return g
}

// Cells are the measured cells of g, in the order of their JSON names.
func (g *GPU) Cells() []*Value {
	return []*Value{&g.Util, &g.MemUtil, &g.MemUsed, &g.MemTotal, &g.MemReserved, &g.Power, &g.PowerLimit,
		&g.Temp, &g.TempMargin, &g.Fan, &g.ClockSM, &g.ClockSMMax, &g.ClockMem, &g.ClockMemMax,
		&g.PCIeGen, &g.PCIeWidth, &g.ECCErrors, &g.Encoder, &g.Decoder, &g.PCIeGenMax, &g.PCIeWidthMax, &g.PCIeRx, &g.PCIeTx,
		&g.NVLinks, &g.NVLinksDown, &g.NVLinkRx, &g.NVLinkTx, &g.ECCCorrected, &g.RemappedRows, &g.RemapPending, &g.RemapFailed, &g.HiddenMem}
}

// Unified says whether the device shares the host's memory, so that the driver's
// memory cells are missing (GB10, Orin) or describe a carve-out (N1X).
func Unified(name string) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '(' || r == ')' || r == '-' }) {
		switch w {
		case "gb10", "orin", "thor", "xavier", "tegra", "nvgpu", "n1x", "spark":
			return true
		}
	}
	return false
}

// ShareHost gives a device of unified memory the host's, which it is, and hides a
// PCIe link that is not one.
func (g *GPU) ShareHost(m MachineMemory) {
	if !Unified(g.Name) {
		return
	}
	g.MemTotal, g.MemUsed = m.Total, m.Used
	for _, v := range []*Value{&g.MemReserved, &g.PCIeGen, &g.PCIeWidth, &g.PCIeGenMax, &g.PCIeWidthMax, &g.PCIeRx, &g.PCIeTx} {
		*v = Value{Why: "unified memory"}
	}
}
