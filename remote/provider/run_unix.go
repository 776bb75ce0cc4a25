//go:build !windows

package provider

import (
	"context"
	"os/exec"
	"syscall"
)

// shell makes the line a process group of its own, which dies as one.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		sweep(cmd.Process.Pid)
		return nil
	}
	return cmd
}

// sweep kills what is left of a line's group; its number stays taken while
// anything is.
func sweep(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL) // an error says that none is left
}
