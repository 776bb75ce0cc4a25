package remote

import (
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

func shellCommand(command string) *exec.Cmd {
	cmd := exec.Command("cmd.exe")
	// cmd.exe does not split as others do: it gets the line as written.
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /d /s /c "` + command + `"`, HideWindow: true}
	return cmd
}

// processGroup is a job object: closing it ends the command with all its children.
type processGroup struct {
	job windows.Handle
	cmd *exec.Cmd
}

func startGroup(cmd *exec.Cmd) (*processGroup, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		windows.CloseHandle(job)
		return nil, err
	}
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, p)
		windows.CloseHandle(p)
	}
	if err != nil { // the command alone will be ended
		windows.CloseHandle(job)
		return &processGroup{cmd: cmd}, nil
	}
	return &processGroup{job: job, cmd: cmd}, nil
}

func (g *processGroup) kill() {
	if g.job != 0 {
		windows.TerminateJobObject(g.job, 1)
	}
	g.cmd.Process.Kill()
}

func (g *processGroup) release() {
	if g.job != 0 {
		windows.CloseHandle(g.job)
	}
}
