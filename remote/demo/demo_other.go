//go:build !unix

package demo

import (
	"context"
	"errors"

	"rentop/remote/provider"
)

// Fleet is the running demo; there is none on this system.
type Fleet struct{}

var errNoShell = errors.New("the demo needs a POSIX shell, which this system does not have: run rentop demo in WSL (`wsl --install`)")

// Start fails: the simulated instances are real shells.
func Start(context.Context, Options) (*Fleet, error) { return nil, errNoShell }

// CleanStale has nothing to clean.
func CleanStale(context.Context) (int, error) { return 0, nil }

// Instances is empty.
func (*Fleet) Instances() []Instance { return nil }

// Dir is empty.
func (*Fleet) Dir() string { return "" }

// Provider is nil.
func (*Fleet) Provider() provider.Provider { return nil }

// Close does nothing.
func (*Fleet) Close() error { return nil }
