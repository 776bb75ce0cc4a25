//go:build !linux

package serve

import "context"

// hungUp never happens where it cannot be seen: reading sees the end.
func hungUp(context.Context, *stripe) <-chan struct{} { return nil }
