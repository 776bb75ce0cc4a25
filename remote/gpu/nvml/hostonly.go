//go:build linux

package nvml

import (
	"context"

	"rentop/remote/gpu/sample"
)

// Host reads the machine around the GPUs, without any driver. Its methods are for one
// goroutine.
type Host struct{ h hostReader }

// NewHost begins to look at the disks, until ctx ends.
func NewHost(ctx context.Context) *Host {
	h := &Host{}
	h.h.start(ctx)
	return h
}

// Read gives the figures since the reading before.
func (h *Host) Read() sample.Host { return h.h.read() }
