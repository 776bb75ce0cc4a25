package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// identify reads what the system says beside fs.FileInfo.
func identify(fi fs.FileInfo) (identity, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	return identity{inode{uint64(st.Dev), st.Ino}, uint64(st.Nlink), time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec))}, true
}
