package far

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// lock takes a lock that ends with f, or with the process; held says that another
// has it.
func lock(f *os.File) (held bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	return false, err
}

// unlinked says whether f has no name any more; here an open file keeps its own.
func unlinked(*os.File) bool { return false }

// changed is when a file was made: its other times are the source's.
func changed(fi fs.FileInfo) time.Time {
	if d, is := fi.Sys().(*syscall.Win32FileAttributeData); is {
		return time.Unix(0, d.CreationTime.Nanoseconds())
	}
	return fi.ModTime()
}
