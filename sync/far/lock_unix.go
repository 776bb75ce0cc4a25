//go:build unix

package far

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes a lock that ends with f, or with the process; held says that another
// has it.
func lock(f *os.File) (held bool, err error) {
	err = retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// unlinked says whether f has no name any more.
func unlinked(f *os.File) bool {
	fi, err := f.Stat()
	if err != nil {
		return true
	}
	st, is := fi.Sys().(*syscall.Stat_t)
	return is && st.Nlink == 0
}

// changed is when a file was written, renamed or given a time.
func changed(fi fs.FileInfo) time.Time {
	if st, is := fi.Sys().(*syscall.Stat_t); is {
		return ctime(st)
	}
	return fi.ModTime()
}
