// Package gpu reads what an instance's accelerators and host are doing, and
// parses the tools that tell it. It invents nothing: a cell is a value, not
// available, or an error.
package gpu

import "rentop/remote/gpu/sample"

// What a sample is made of lives where the helper on the instance can link it.
type (
	Value      = sample.Value
	ValueState = sample.ValueState
	GPU        = sample.GPU
	Instance   = sample.Instance
	XID        = sample.XID
	Process    = sample.Process
	Host       = sample.Host
	Disk       = sample.Disk
	Problem    = sample.Problem
	Sample     = sample.Sample
)

// The states of a Value.
const (
	NA     = sample.NA     // the device or driver does not have it
	OK     = sample.OK     // V is the value
	Failed = sample.Failed // reading it failed (ERR!, [Unknown Error], [GPU requires reset])
)

// Of returns an OK value.
func Of(v float64) Value { return sample.Of(v) }
