package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Cmd is a POSIX sh script to run on an instance. It runs under `exec sh`
// whatever the login shell is; nothing that the login printed before it reaches
// Stdout or Stderr.
type Cmd struct {
	Script string    // POSIX sh; words from outside go through Quote
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: discarded
	Stderr io.Writer // nil: kept (bounded) for ExitError
}

// Runner runs scripts on one instance. *Conn is the real one; consumers ask for
// this so that they can be tested over a local sh.
type Runner interface {
	// Run returns nil on exit 0, *ExitError on any other end of the script, and
	// another error where the connection or the context ended first.
	Run(ctx context.Context, c Cmd) error
}

// ExitError says how a script ended.
type ExitError struct {
	Code   int    // exit code; 128+n where a signal ended it
	Signal string // "KILL", or ""
	Stderr string // the last bytes of stderr, cleaned; "" where Cmd.Stderr was set
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != "" {
		s = "ended by signal " + e.Signal
	}
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

// ExitCode returns the exit code in err, and whether it holds one (nil is 0).
func ExitCode(err error) (int, bool) {
	if err == nil {
		return 0, true
	}
	var e *ExitError
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}

// maxOutput bounds what Output keeps: an instance may not fill our memory.
const maxOutput = 16 << 20

// ErrTooLong is returned where an instance sent more than a caller will hold.
var ErrTooLong = errors.New("the instance sent more output than expected")

// Output runs script and returns its stdout, at most 16 MiB.
func Output(ctx context.Context, r Runner, script string) ([]byte, error) {
	var b limitedBuffer
	b.max = maxOutput
	err := r.Run(ctx, Cmd{Script: script, Stdout: &b})
	if err == nil && b.over {
		err = ErrTooLong
	}
	return b.kept.Bytes(), err
}

// limitedBuffer keeps the first max bytes; more is an error, which ends the
// command: draining an endless answer would never end. The buffer has a name so
// that its ReadFrom is not ours.
type limitedBuffer struct {
	kept bytes.Buffer
	max  int
	over bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := b.max - b.kept.Len(); len(p) > room {
		b.over = true
		b.kept.Write(p[:room])
		return room, ErrTooLong
	}
	return b.kept.Write(p)
}

// Quote makes one word of s for a POSIX shell. It is the only place that quotes.
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
