//go:build linux

package agent

import (
	"os"
	"syscall"
)

func uid(fi os.FileInfo) uint32 { return fi.Sys().(*syscall.Stat_t).Uid }
