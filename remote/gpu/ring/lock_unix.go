//go:build unix

package ring

import (
	"os"
	"syscall"
)

// lock keeps a second writer out until f is closed.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
