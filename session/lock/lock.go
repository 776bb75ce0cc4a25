// Package lock keeps two rentops out of each other's way: a lock on a file that
// the system takes back when its holder ends, however it ends.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrHeld is returned where another rentop, or another part of this one, holds
// the lock.
var ErrHeld = errors.New("another rentop holds it")

// retry is how often Wait looks again: a config is written in milliseconds.
const retry = 10 * time.Millisecond

// Lock is held until Unlock, or until the process ends.
type Lock struct{ file *os.File }

// Try takes the lock on path, a file that it makes and that stays. It does not
// wait: ErrHeld says that it is taken.
func Try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := hold(f); err != nil {
		f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

// Wait takes the lock on path once it is free, or fails when ctx ends.
func Wait(ctx context.Context, path string) (*Lock, error) {
	for {
		l, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, err)
		}
	}
}

// Unlock gives the lock back. The file stays: removing it would let a third one in.
func (l *Lock) Unlock() { l.file.Close() }
