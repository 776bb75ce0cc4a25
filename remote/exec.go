// Running scripts: one constant command line that every login shell understands,
// the script itself on the first line of stdin, its output after a marker.

package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// bootLine means the same in sh, bash, dash, zsh, fish, csh and tcsh. `read`
// takes one line byte by byte, so what follows on stdin is the script's own; a line
// that the network cut fails it, so no half of a script is ever run.
const bootLine = `exec sh -c 'IFS= read -r l && eval "$(printf %b "$l")"'`

// prologue completes the poor PATH of a shell that is no login shell (AutoDL:
// exit 127), at its end: what the person's own PATH finds is found first.
const prologue = `unset l; PATH="${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/opt/conda/bin"; export PATH
`

const (
	markerTimeout = 30 * time.Second // start-up files may be slow (conda), not endless
	stderrKept    = 4 << 10          // bytes of stderr kept for an ExitError
)

// scriptLine encodes a script as the line that bootLine reads.
func scriptLine(script string) (string, error) {
	var b strings.Builder
	b.Grow(len(script) + len(script)/8)
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == 0:
			return "", errors.New("a script may not contain a NUL byte")
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\\' || c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&b, `\0%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// newMarker is a line that no start-up file prints.
func newMarker() string {
	var b [12]byte
	rand.Read(b[:])
	return "rentop:" + hex.EncodeToString(b[:])
}

// Run runs a script, see [Runner]. Where the script's own end is unknown the
// error is or wraps *BusyError, *NoMarkerError, ErrCut or ctx's. When ctx ends,
// the script and what it runs in the foreground are ended too. Run waits for a
// Write in progress; a Read of c.Stdin that blocks may outlive it.
func (c *Conn) Run(ctx context.Context, cmd Cmd) error {
	_, err := c.open.run(ctx, cmd)
	return err
}

// further opens another connection for c.open, which closes it.
func (c *Conn) further(ctx context.Context) (*ssh.Client, error) {
	a, err := c.Again(ctx)
	if err != nil {
		return nil, err
	}
	return a.Client(), nil
}

// run also returns how many bytes came on stdout before the script's own.
func (c *channels) run(ctx context.Context, cmd Cmd) (noise int, err error) {
	marker := newMarker()
	line, err := scriptLine("printf '%s\\n' " + marker + "; printf '%s\\n' " + marker + " >&2; " + prologue + cmd.Script)
	if err != nil {
		return 0, err
	}
	ch, err := c.get(ctx)
	if err != nil {
		return 0, err
	}
	kept := &tailBuffer{max: stderrKept}
	if cmd.Stdout == nil {
		cmd.Stdout = io.Discard
	}
	if cmd.Stderr == nil {
		cmd.Stderr = kept
	}
	begun := make(chan struct{})
	out := &demarker{marker: []byte(marker + "\n"), w: cmd.Stdout, begun: begun}
	errOut := &demarker{marker: out.marker, w: cmd.Stderr}

	// The command, its script and its stdin go out together in one round trip, in
	// this order: a server drops data that comes before the command. Only the first
	// command on a connection waits to hear whether commands are allowed at all.
	// Every goroutine ends with the channel (the second when a Read returns).
	ended, failed := make(chan exit, 1), make(chan error, 3)
	go func() { ended <- ch.wait() }()
	go func() {
		if err := ch.exec(bootLine); err != nil {
			failed <- err
			return
		}
		if _, err := io.WriteString(ch, line); err == nil && cmd.Stdin != nil {
			io.Copy(ch, cmd.Stdin) // an error: the script does not read on
		}
		ch.CloseWrite()
	}()
	copied := make(chan struct{}, 2)
	copyTo := func(w io.Writer, r io.Reader) {
		if _, err := io.Copy(w, r); err != nil {
			failed <- err // of the caller's writer: a channel's end is EOF
			io.Copy(io.Discard, r)
		}
		copied <- struct{}{}
	}
	go copyTo(out, ch)
	go copyTo(errOut, ch.Stderr())

	late := time.NewTimer(markerTimeout)
	defer late.Stop()
	err = nil
	for streams := 2; streams > 0 && err == nil; {
		select {
		case <-copied:
			streams--
		case <-begun:
			begun = nil
			late.Stop()
		case err = <-failed:
		case <-late.C:
			err = &NoMarkerError{Timeout: true}
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	var end exit
	if err == nil {
		select { // the exit status may trail the streams' end
		case end = <-ended:
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		select { // a write that failed at the very end
		case err = <-failed:
		default:
		}
	}
	if err != nil {
		ch.abandon()
	} else {
		ch.end()
	}
	found, noise, said := out.shut()
	errFound, _, errSaid := errOut.shut()
	var silent *NoMarkerError
	switch {
	case errors.As(err, &silent), err == nil && end.known && !(found && errFound):
		return noise, &NoMarkerError{Said: Short(strings.TrimSpace(said+" "+errSaid), saidLimit), Timeout: silent != nil}
	case err != nil:
		return noise, err
	}
	return noise, end.err(kept.b)
}
