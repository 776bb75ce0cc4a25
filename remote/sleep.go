package remote

// This file waits.

import (
	"context"
	"time"
)

// Sleep waits for d. Where ctx ends first it returns its error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
