package provider

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

// shell gives the line to cmd as it was written: cmd has its own quoting.
func shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /S /C "` + line + `"`, HideWindow: true}
	cmd.Cancel = func() error {
		exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run() // an error says that none is left
		return cmd.Process.Kill()
	}
	return cmd
}

// sweep leaves what a line that ended left behind: its number may already be
// another program's.
func sweep(int) {}
