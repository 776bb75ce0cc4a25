//go:build !linux

package nvml

import (
	"context"

	"rentop/remote/gpu/sample"
)

// Built says whether this build can load the driver's library.
const Built = false

// Options tune Run. Nothing is read on this system.
type Options struct{}

// Run says that GPUs are read through the library on Linux alone.
func Run(context.Context, Options, func(sample.Sample)) error {
	return &Unavailable{sample.Problem{What: "the helper reads GPUs on Linux alone", Cure: "nothing: rentop reads nvidia-smi instead"}}
}
