//go:build linux && !cgo

package nvml

import "rentop/remote/gpu/sample"

// openLibrary says why this build reads no library.
func openLibrary(string) (driver, *sample.Problem) {
	return nil, &sample.Problem{What: "this build cannot load the driver's library (it was made without cgo)",
		Cure: "nothing: rentop reads nvidia-smi instead"}
}

// Built says whether this build can load the driver's library.
const Built = false

// notTold is the reason of a cell before its first reading.
const notTold = "not told by the driver"
