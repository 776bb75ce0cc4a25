package ring

import (
	"crypto/sha256"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock is this machine's.
func SystemClock() (Clock, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Clock{}, fmt.Errorf("which boot this is cannot be read: %w", err)
	}
	c := Clock{Now: time.Now, Mono: sinceBoot}
	sum := sha256.Sum256(id)
	copy(c.Boot[:], sum[:])
	return c, nil
}

func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
