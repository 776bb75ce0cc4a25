// The begin marker: what separates a login shell's noise from a script's output.

package remote

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// NoMarkerError is returned where a command's output never began: the login
// shell ran something else, or hangs.
type NoMarkerError struct {
	Said    string // the first bytes that came instead, cleaned
	Timeout bool   // nothing ended; we stopped waiting
}

func (e *NoMarkerError) Error() string {
	what := "the login shell ended without running the command"
	if e.Timeout {
		what = "the login shell did not run the command in time"
	}
	said := "it printed nothing"
	if e.Said != "" {
		said = fmt.Sprintf("it printed %q", e.Said)
	}
	return what + "; " + said + ". Its start-up files (.bashrc, .profile) start something else, as Vast.ai's automatic tmux does: " +
		"run `touch ~/.no_auto_tmux` on the instance, or let them return early where there is no terminal"
}

// saidLimit bounds how much noise is kept for an error's text.
const saidLimit = 400

// demarker passes on what follows a marker line and counts what came before.
type demarker struct {
	marker []byte        // ends in '\n'
	begun  chan struct{} // closed at the marker; may be nil

	mu    sync.Mutex
	w     io.Writer // nil: shut
	found bool
	held  []byte // a possible beginning of the marker
	noise int
	said  []byte
}

func (d *demarker) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.w == nil {
		return 0, io.ErrClosedPipe
	}
	if d.found {
		return d.w.Write(p)
	}
	n := len(p)
	d.held = append(d.held, p...)
	i := bytes.Index(d.held, d.marker)
	if i < 0 {
		d.drop(len(d.held) - len(d.marker) + 1)
		return n, nil
	}
	d.drop(i)
	rest := d.held[len(d.marker):]
	d.found, d.held = true, nil
	if d.begun != nil {
		close(d.begun)
	}
	if len(rest) > 0 {
		if _, err := d.w.Write(rest); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (d *demarker) drop(n int) {
	if n <= 0 {
		return
	}
	if room := saidLimit - len(d.said); room > 0 {
		d.said = append(d.said, d.held[:min(room, n)]...)
	}
	d.noise += n
	d.held = append(d.held[:0], d.held[n:]...)
}

// shut ends all writing to the caller's writer, waiting for a Write in progress.
func (d *demarker) shut() (found bool, noise int, said string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w = nil
	if !d.found {
		d.drop(len(d.held))
	}
	return d.found, d.noise, string(d.said)
}

// tailBuffer keeps the last max bytes written to it. Complaints without end are
// an error, which ends the command.
type tailBuffer struct {
	max  int
	b    []byte
	seen int
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	if t.seen += len(p); t.seen > maxOutput {
		return 0, ErrTooLong
	}
	t.b = append(t.b, p[max(0, len(p)-t.max):]...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}
