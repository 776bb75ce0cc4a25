package session

// Going on over cuts.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote"
)

const (
	// patience is how long a command that was cut off goes on trying to come back:
	// as long as it takes to move a laptop to another network.
	patience = time.Minute
	// worked is how long an act must have lasted to begin a new time of patience
	// where it is cut.
	worked = 5 * time.Second
)

// unreachable is a connection that could not be opened.
type unreachable struct{ error }

func (u unreachable) Unwrap() error { return u.error }

// again repeats an idempotent act while the connection is cut under it, and while
// the instance cannot be reached after a cut. What cannot be reached in the first
// place, it does not wait for.
func (s *Session) again(ctx context.Context, act func() error) error {
	const first, last = 50 * time.Millisecond, 5 * time.Second
	var since time.Time // of the cut; zero: none yet
	for wait := first; ; wait = min(2*wait, last) {
		began := s.f.opt.Now()
		err := act()
		now := s.f.opt.Now()
		var away unreachable
		switch {
		case err == nil || ctx.Err() != nil || remote.NeedsPerson(err):
			return err
		case errors.Is(err, remote.ErrCut):
			if since.IsZero() || now.Sub(began) > worked {
				since, wait = now, first
			}
		case since.IsZero() || !errors.As(err, &away):
			return err
		}
		if now.Sub(since) > patience {
			return fmt.Errorf("it did not come back within %v after a cut: %w", patience, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
