//go:build linux && cgo

package nvml

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// Built says whether this build can load the driver's library.
const Built = true

// notTold is the reason of a cell before its first reading.
const notTold = "not told by the driver"

// places are where the library is found, best first. There is no unversioned name
// since driver 565 (gpud#415).
var places = []string{
	"libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
	"/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1",
}

// library is the driver's, with what it can do.
type library struct {
	nv      nvml.Interface
	has     map[string]bool // by symbol
	driver  string
	broken  bool // its process list is: see badProcessList
	devices []card
}

// openLibrary loads and initialises the library.
func openLibrary(path string) (driver, *sample.Problem) {
	try := places
	if path != "" {
		try = []string{path}
	}
	for _, p := range try {
		if strings.Contains(p, "/") {
			if _, err := os.Stat(p); err != nil {
				continue
			}
		}
		nv := nvml.New(nvml.WithLibraryPath(p))
		ret := nv.Init()
		if ret == nvml.ERROR_LIBRARY_NOT_FOUND {
			continue
		}
		if ret != nvml.SUCCESS {
			return nil, refused(ret)
		}
		return newLibrary(nv), nil
	}
	return nil, &sample.Problem{What: "the driver's library libnvidia-ml.so.1 is not on the instance",
		Cure: "start the container with its GPUs (--gpus all, NVIDIA_DRIVER_CAPABILITIES=all), or use an image of the provider"}
}

// refused puts why the library does not start into words.
func refused(ret nvml.Return) *sample.Problem {
	p := &sample.Problem{Cure: "restart the instance, or ask the provider"}
	switch ret {
	case nvml.ERROR_DRIVER_NOT_LOADED:
		p.What = "the NVIDIA driver is not loaded on the instance"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		p.What, p.Cure = "the driver and its library are of different versions", "restart the instance"
	case nvml.ERROR_NO_PERMISSION:
		p.What, p.Cure = "this login may not open the GPU's device files", "log in as root, or add the login to the group that owns /dev/nvidia*"
	case nvml.ERROR_UNKNOWN:
		p.What, p.Cure = "the container has lost its access to the GPUs", "save your work, then restart the container (a daemon-reload on its host does this)"
	case nvml.ERROR_GPU_IS_LOST:
		p.What, p.Cure = "a GPU has fallen off the bus", "save your work, then restart the instance or ask the provider for another"
	default:
		p.What = "the NVIDIA driver cannot be reached: " + clean.Short(ret.Error(), 80)
	}
	return p
}

// symbols are all calls that are made. One that the installed library lacks is
// never made: binding it would end the process.
var symbols = []string{
	"nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
	"nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2",
	"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetTemperature",
	"nvmlDeviceGetTemperatureThreshold", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetClockInfo",
	"nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetPerformanceState", "nvmlDeviceGetCurrentClocksThrottleReasons",
	"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth",
	"nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetPcieThroughput",
	"nvmlDeviceGetEncoderUtilization", "nvmlDeviceGetDecoderUtilization", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetRemappedRows",
	"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId",
	"nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetFieldValues", "nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetGraphicsRunningProcesses", "nvmlEventSetCreate", "nvmlEventSetFree", "nvmlEventSetWait", "nvmlDeviceRegisterEvents",
	"nvmlDeviceGetSupportedEventTypes",
}

func newLibrary(nv nvml.Interface) *library {
	l := &library{nv: nv, has: map[string]bool{}}
	for _, s := range symbols {
		l.has[s] = nv.Extensions().LookupSymbol(s) == nil
	}
	if v, ret := call(l, "nvmlSystemGetDriverVersion", nv.SystemGetDriverVersion); ret == nvml.SUCCESS {
		l.driver = clean.Short(v, 40)
	}
	l.broken = badProcessList(l.driver)
	n, ret := call(l, "nvmlDeviceGetCount_v2", nv.DeviceGetCount)
	if ret != nvml.SUCCESS {
		n = 0
	}
	for i := range min(n, sample.MaxGPUs) {
		// Each for itself: one that is lost does not spoil the others (OWOD#81).
		d, ret := call(l, "nvmlDeviceGetHandleByIndex_v2", func() (nvml.Device, nvml.Return) { return nv.DeviceGetHandleByIndex(i) })
		l.devices = append(l.devices, &device{lib: l, dev: d, gone: ret})
	}
	return l
}

func (l *library) version() string { return l.driver }
func (l *library) cards() []card   { return l.devices }
func (l *library) close() {
	if l.has["nvmlShutdown"] {
		l.nv.Shutdown()
	}
}

// call makes a call where the library has it.
func call[T any](l *library, symbol string, f func() (T, nvml.Return)) (T, nvml.Return) {
	if !l.has[symbol] {
		var none T
		return none, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return f()
}

// value is v, or why there is none: never a number that was not read.
func value[T int | uint32 | uint64](l *library, v T, ret nvml.Return, scale, highest float64) sample.Value {
	if ret != nvml.SUCCESS {
		return failure(l, ret)
	}
	f := float64(v) * scale
	if f > highest { // drivers write "not available" as a huge number
		return sample.Value{State: sample.Failed, Why: "implausible"}
	}
	return sample.Of(f)
}

// failure says whether the driver does not have a figure or failed to read it.
func failure(l *library, ret nvml.Return) sample.Value {
	switch ret {
	case nvml.ERROR_FUNCTION_NOT_FOUND:
		return sample.Value{Why: "not offered by this driver"}
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return sample.Value{Why: "not supported"}
	case nvml.ERROR_NO_PERMISSION:
		return sample.Value{Why: "not permitted"}
	}
	word := fmt.Sprintf("error %d", int(ret))
	if l.has["nvmlErrorString"] {
		word = clean.Short(ret.Error(), 80)
	}
	return sample.Value{State: sample.Failed, Why: word}
}

// badProcessList says whether this driver's process list is of another shape than
// its header says: 535.43 to 535.86 (nvitop#89, go-nvml#75). Reading it would run
// over the end of the buffer.
func badProcessList(driver string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(driver, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major == 535 && minor >= 43 && minor <= 86
}

// events waits for error events on a set of every GPU that has them.
func (l *library) events(ctx context.Context, xid func(card, code int)) {
	set, ret := call(l, "nvmlEventSetCreate", l.nv.EventSetCreate)
	if ret != nvml.SUCCESS || !l.has["nvmlEventSetWait"] || !l.has["nvmlDeviceRegisterEvents"] {
		return
	}
	index := map[nvml.Device]int{}
	for i, c := range l.devices {
		d := c.(*device)
		if d.gone == nvml.SUCCESS && d.dev.RegisterEvents(nvml.EventTypeXidCriticalError, set) == nvml.SUCCESS {
			index[d.dev] = i
		}
	}
	defer func() {
		if l.has["nvmlEventSetFree"] {
			set.Free()
		}
	}()
	if len(index) == 0 {
		return
	}
	for ctx.Err() == nil {
		e, ret := set.Wait(5000)
		switch {
		case ret == nvml.ERROR_TIMEOUT:
		case ret != nvml.SUCCESS:
			return // a lost GPU ends it; the lanes say so
		case e.EventType == nvml.EventTypeXidCriticalError:
			if i, ok := index[e.Device]; ok && e.EventData < 1<<16 {
				xid(i, int(e.EventData))
			}
		}
	}
}
