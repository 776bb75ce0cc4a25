//go:build linux

package nvml

import (
	"context"

	"rentop/remote/gpu/sample"
)

// card is one GPU as the driver shows it. Its methods are called by one goroutine,
// may block for ever, and write only the cells of their tier.
type card interface {
	fixed(g *sample.GPU) // what never changes: names, limits of the hardware
	fast(g *sample.GPU)
	slow(g *sample.GPU)
	// holders are the processes that hold memory; why is set where the driver
	// cannot tell them.
	holders() (list []holder, why string)
}

// holder is a process as the driver knows it: by the machine's PID, not the
// container's.
type holder struct {
	pid int
	mem sample.Value
}

// driver is the library, opened.
type driver interface {
	version() string
	cards() []card
	// events calls xid for each error event until ctx ends. It returns at once
	// where the driver has none.
	events(ctx context.Context, xid func(card, code int))
	close()
}

// opener loads the library; path is "" for the usual places. It may block for ever.
type opener func(path string) (driver, *sample.Problem)
