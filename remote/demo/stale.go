//go:build unix

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A living demo holds a lock on the file "pid" in its folder. The system drops the
// lock however the demo ends, kill -9 included, and no other process can be mistaken
// for it, as a PID can.

// hold takes the folder's lock.
func hold(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "pid"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("another demo uses %s: %w", dir, err)
	}
	_, err = file.WriteString(pidText())
	return file, err
}

// newborn is how long a folder without a lock may still be one that begins.
const newborn = 10 * time.Second

// CleanStale ends what is left of demos that were killed, and removes their folders
// from the system's temporary folder. It returns how many there were.
func CleanStale(ctx context.Context) (int, error) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, dir := range dirs {
		ok, err := cleanOne(ctx, dir)
		if ok {
			n++
		}
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// cleanOne removes dir where it is a dead demo's, ours, and no link.
func cleanOne(ctx context.Context, dir string) (bool, error) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false, nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
		return false, nil
	}
	file, err := os.OpenFile(filepath.Join(dir, "pid"), os.O_RDWR, 0)
	if err != nil {
		if time.Since(info.ModTime()) < newborn || !errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		// A demo that was killed before it had a lock, or a folder that only has
		// such a name: removed where it is empty.
		return os.Remove(dir) == nil, nil
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, nil // it lives
	}
	if pid, err := file.Stat(); err != nil || pid.Size() == 0 && time.Since(info.ModTime()) < newborn {
		return false, nil // it is about to take its lock
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, err
	}
	if err := errors.Join(endAll(ctx, real+"/", nil), removeAll(real)); err != nil {
		return false, fmt.Errorf("cleaning up after an earlier demo in %s: %w", dir, err)
	}
	return true, nil
}
