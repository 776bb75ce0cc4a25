// The proof that a provider's snapshot can be relied on: accepted is not made, and a
// teardown may end the making. It is waited for, and asked about in each round.

package release

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/phrase"
)

const (
	snapshotPoll     = 10 * time.Second
	snapshotPatience = 3 * time.Hour // large disks take more than one
)

var errNotMade = errors.New("it will not be made")

// readySnapshot says why a provider's snapshot cannot be relied on now; nil also
// where the provider has no word about it.
func (m *Machine) readySnapshot(ctx context.Context, id string) error {
	im, ok := m.d.Provider.(provider.Imager)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.d.Timing.Call)
	defer cancel()
	s, err := im.SnapshotState(ctx, id)
	switch {
	case errors.Is(err, provider.ErrUnsupported):
		return nil
	case err != nil:
		return err
	case s.Failed:
		return fmt.Errorf("%w: %s", errNotMade, remote.Short(s.Detail, 120))
	case !s.Ready:
		return errors.New("not ready: " + remote.Short(s.Detail, 120))
	}
	return nil
}

// awaitSnapshot returns when the provider says that the snapshot is whole. An answer
// that did not come is asked for again.
func (m *Machine) awaitSnapshot(ctx context.Context, id string) error {
	end := m.d.Clock.Now().Add(snapshotPatience)
	for {
		err := m.readySnapshot(ctx, id)
		if err == nil || errors.Is(err, errNotMade) || ctx.Err() != nil {
			return err
		}
		if m.d.Clock.Now().After(end) {
			return fmt.Errorf("it was accepted and is not ready after %v: %w", snapshotPatience, err)
		}
		m.active(CheckSnapshot, phrase.Say("snapshot.waiting", remote.Short(err.Error(), 120)))
		if err := m.d.Clock.Sleep(ctx, snapshotPoll); err != nil {
			return err
		}
	}
}
