// Package nvml reads GPUs on the instance itself, through the driver's own library
// (go-nvml), and serves the samples over a link.
//
// Fast figures are read each second, processes every two, slow figures every ten,
// what never changes once. PCIe throughput blocks for 20 ms a call and is slow.
// Each GPU is a lane of its own: one that is lost or hangs leaves the others alive.
// A worker reads them in turn; the hub outside it says since when a call has not
// come back, and has another worker go on with the rest. A GPU that hangs is never
// asked again before it answers, because such a call cannot be ended.
//
// The library is loaded at run time, so nothing of it is needed to build or to
// start. A call that the installed driver does not have is never made: go-nvml
// binds lazily, and an absent symbol would end the process. Built without cgo, or
// where there is no driver, Run and Serve say so and the caller reads nvidia-smi.
package nvml
