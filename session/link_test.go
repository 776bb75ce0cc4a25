package session

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLinkFailsAtOnce: an attempt that failed before anybody waited for it is not
// waited for.
func TestLinkFailsAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, final := range []bool{false, true} {
		l, why := newLink(), errors.New("no key")
		l.down(errors.New("an older attempt"), false)
		failed := l.attempts()
		l.down(why, final)
		if _, _, err := l.wait(ctx, failed, false, false); err != why {
			t.Errorf("final %v: %v", final, err)
		}
	}
}
