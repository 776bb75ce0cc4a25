// Package gpu reads what an instance's accelerators and host are doing, and
// parses the tools that tell it. It invents nothing: a cell is a value, not
// available, or an error.
package gpu

import "time"

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
}

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
	Source    string    // "nvidia-smi", "host only"
	Driver    string
	GPUs      []GPU
	Processes []Process
	Hidden    bool // processes exist that the container does not show
	Host      Host
	Problem   *Problem // why there are no GPUs, or none readable
}
