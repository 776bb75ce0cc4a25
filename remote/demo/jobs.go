//go:build unix

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"rentop/remote"
	"rentop/remote/tmux"
)

// Run runs a script on the instance as a login would, without a connection: it
// makes a machine a remote.Runner.
func (m *machine) Run(ctx context.Context, c remote.Cmd) error {
	cmd := exec.CommandContext(ctx, m.shell, "-c", "exec sh -c "+remote.Quote(c.Script))
	cmd.Args[0] = filepath.Base(m.shell)
	cmd.Dir, cmd.Env = m.home, m.env()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	var said strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &limited{w: &said, left: 4 << 10}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a daemon may hold the outputs
	m.mu.Lock()
	if m.ln == nil {
		m.mu.Unlock()
		return fmt.Errorf("%s is not running", m.name)
	}
	err := cmd.Start()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	var e *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &e):
		return &remote.ExitError{Code: e.ExitCode(), Stderr: remote.Clean(said.String())}
	}
	return err
}

// limited keeps the first bytes and takes the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:min(len(p), l.left)])
	if l.left -= n; err != nil {
		return n, err
	}
	return len(p), nil
}

// startJobs starts what each character works on, as rentop itself would.
func (f *Fleet) startJobs() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, m := range f.machines {
		if m.stopped {
			continue
		}
		for i, j := range m.jobs {
			wg.Go(func() {
				spec := tmux.Spec{ID: fmt.Sprintf("%s-%d", m.id, i+1), Name: j.Name, Command: j.Command, Dir: j.Dir}
				if _, err := tmux.New(m, f.now).Start(f.ctx, spec); err != nil && f.ctx.Err() == nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	f.jobsErr = errors.Join(errs...)
	close(f.jobsRun)
}

// WaitJobs returns when the jobs that Options.Jobs asked for run, which a little
// after Start they do, or why one does not.
func (f *Fleet) WaitJobs(ctx context.Context) error {
	select {
	case <-f.jobsRun:
		return f.jobsErr
	case <-ctx.Done():
		return ctx.Err()
	}
}
