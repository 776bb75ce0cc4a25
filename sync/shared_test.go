package sync

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"rentop/remote"
)

// localSh runs scripts on this machine as an instance would.
type localSh struct {
	home string
	path string   // PATH, "" for this process's
	env  []string // more
}

func (l localSh) Run(ctx context.Context, c remote.Cmd) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.Script)
	cmd.Dir = l.home
	cmd.Env = append(os.Environ(), "HOME="+l.home)
	if l.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+l.path)
	}
	cmd.Env = append(cmd.Env, l.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Minute
	cmd.Cancel = func() error { return nil } // a lost connection kills nothing; its streams end
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		if c.Stdin != nil {
			io.Copy(in, c.Stdin)
		}
		in.Close()
	}()
	err = cmd.Wait()
	var x *exec.ExitError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &x) {
		return &remote.ExitError{Code: x.ExitCode()}
	}
	return err
}

// noMeter hears nothing.
type noMeter struct{}

func (noMeter) Content(int64)  {}
func (noMeter) Wire(int64)     {}
func (noMeter) Current(string) {}

func write(dir, name, text string) {
	p := filepath.Join(dir, name)
	os.MkdirAll(filepath.Dir(p), 0o755)
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		panic(err)
	}
}
