//go:build !windows

package remote

import (
	"os/exec"
	"syscall"
)

func shellCommand(command string) *exec.Cmd { return exec.Command("/bin/sh", "-c", command) }

// processGroup is a command with all its children.
type processGroup struct{ pgid int }

func startGroup(cmd *exec.Cmd) (*processGroup, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &processGroup{cmd.Process.Pid}, nil
}

// kill must come before the command was waited for, or its number may be another
// group's; a group whose leader has ended keeps its number while children live.
func (g *processGroup) kill()    { syscall.Kill(-g.pgid, syscall.SIGKILL) }
func (g *processGroup) release() {}
