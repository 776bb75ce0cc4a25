// The same scripts on this machine.

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Local is a Runner for this machine's own sh: for tests, and where a
// destination is another folder here.
type Local struct {
	Env []string // nil: this process's environment
	Dir string   // "": this process's directory
}

// Run runs a script under sh, see [Runner].
func (l Local) Run(ctx context.Context, c Cmd) error {
	line, err := scriptLine(prologue + c.Script)
	if err != nil {
		return err
	}
	kept := &tailBuffer{max: stderrKept}
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.TrimSuffix(strings.TrimPrefix(bootLine, "exec sh -c '"), "'"))
	cmd.Env, cmd.Dir = l.Env, l.Dir
	cmd.Stdin = strings.NewReader(line)
	if c.Stdin != nil {
		cmd.Stdin = io.MultiReader(strings.NewReader(line), c.Stdin)
	}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	if c.Stderr == nil {
		cmd.Stderr = kept
	}
	cmd.WaitDelay = 2 * time.Second // a child that holds our pipes
	ownGroup(cmd)
	err = cmd.Run()
	var e *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case errors.As(err, &e):
		end := exit{known: true, code: e.ExitCode()}
		if w, ok := e.Sys().(interface {
			Signaled() bool
			Signal() syscall.Signal
		}); ok && w.Signaled() {
			end.code, end.signal = 128+int(w.Signal()), fmt.Sprint(int(w.Signal()))
			for name, n := range signals {
				if n == int(w.Signal()) {
					end.signal = name
				}
			}
		}
		return end.err(kept.b)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("run a script on this machine: no sh found: %w", err)
	}
	return err
}
