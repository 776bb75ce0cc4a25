package nvml

import "rentop/remote/gpu/sample"

// Unavailable is why there is nothing to read: no driver, no library, or a build
// without cgo.
type Unavailable struct{ Problem sample.Problem }

func (e *Unavailable) Error() string { return e.Problem.What }
