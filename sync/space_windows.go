package sync

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// diskSpace is what this person may still use, and the size.
func diskSpace(dir string) (free, total int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var mine, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &mine, &all, nil); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(mine), int64(all), nil
}
