package tui

import (
	"context"
	"os"

	"rentop/remote"
)

// HandOver gives the person's terminal to run, as the screen does, for a
// command. It returns the exit code of the shell that ran there.
func HandOver(ctx context.Context, in, out *os.File, run func(context.Context, remote.TerminalOptions) (int, error)) (int, error) {
	h := &handover{ctx: ctx, run: run, in: in, out: out}
	err := h.Run()
	return h.code, err
}
