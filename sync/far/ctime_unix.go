//go:build unix && !darwin

package far

import (
	"syscall"
	"time"
)

func ctime(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctim.Unix()) }
