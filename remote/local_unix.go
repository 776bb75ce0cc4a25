//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// ownGroup lets the end of a command's context end its children too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
