package command

// From an error to one clear sentence and an exit code.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session"
	"rentop/session/config"
	"rentop/sync"
)

// The exit codes that scripts may rely on.
const (
	done    = 0
	failed  = 1
	usage   = 2
	refused = 3
)

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func badUsage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// refusal is something that is not done, for safety, until the person decides.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

func refuse(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...)}
}

// exitWith is another program's exit code that is passed through, in silence.
type exitWith int

// code fits what a process can end with: 256 from a server would become 0, done.
func (e exitWith) code() int {
	if e < 0 || e > 255 {
		return 255
	}
	return int(e)
}

func (e exitWith) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// end tells an error once and gives the exit code; cmd is the command that ran.
func (a *app) end(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return done
	}
	var through exitWith
	if errors.As(err, &through) {
		return through.code()
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.Err, "rentop: interrupted")
		return failed
	}
	err = inOurWords(cmd, err)
	code := exitCode(err)
	fmt.Fprintln(a.Err, "rentop:", remote.CleanLines(strings.TrimSpace(err.Error())))
	var bad *usageError
	if errors.As(err, &bad) {
		fmt.Fprintf(a.Err, "%s --help shows how it is used.\n", cmd.CommandPath())
	}
	return code
}

func exitCode(err error) int {
	var (
		bad     *usageError
		no      *refusal
		cfg     *config.Error
		deletes *sync.RefusedError
		inside  *provider.NotInsideError
		taken   *session.OccupiedError
		full    *session.NoRoomError
		changed *remote.HostKeyChangedError
		unknown *remote.HostKeyUnknownError
	)
	switch {
	case errors.As(err, &no), errors.As(err, &deletes), errors.As(err, &changed), errors.As(err, &unknown), errors.As(err, &inside), errors.As(err, &taken), errors.As(err, &full),
		errors.Is(err, session.ErrAtOnce), errors.Is(err, remote.ErrNobodyToAsk), errors.Is(err, remote.ErrDeclined), errors.Is(err, session.ErrReleasing):
		return refused
	case errors.As(err, &bad), errors.As(err, &cfg), errors.Is(err, session.ErrUnknownInstance),
		errors.Is(err, config.ErrExists), errors.Is(err, config.ErrNotFound):
		return usage
	}
	return failed
}
