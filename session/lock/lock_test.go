package lock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"rentop/session/lock"
)

func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "a.lock")
	first, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Try(path); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a second Try gives %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock.Wait(ctx, path); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("Wait past its time gives %v", err)
	}
	time.AfterFunc(30*time.Millisecond, first.Unlock)
	second, err := lock.Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second.Unlock()
}
