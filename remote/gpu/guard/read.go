package guard

// Reading a guard back, and ending one: scripts for any login, without the helper.

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rentop/remote/clean"
)

//go:embed common.sh
var commonScript string

//go:embed read.sh
var readScript string

//go:embed off.sh
var offScript string

// ReadScript tells where the guard of this login stands, in one run.
func ReadScript() string { return commonScript + readScript }

// OffScript disarms it, and then tells where it stands.
func OffScript() string { return commonScript + offScript + readScript }

// Report is what ReadScript told.
type Report struct {
	Now     time.Time // by the instance's clock
	Alive   bool      // the process that wrote State lives
	Off     bool      // it was told to end
	State   *State    // nil: there never was a guard
	Journal []Entry   // the last ones, oldest first
}

const (
	maxReport  = 512 << 10
	maxEntries = 50
	// late is how old the state of a living guard may be before it is said to hang.
	late = time.Minute
)

// Armed says whether the guard watches or acts now: its process lives, and wrote so a
// moment ago.
func (r *Report) Armed() bool {
	if r.State == nil || !r.Alive || r.Hangs() {
		return false
	}
	switch r.State.Phase {
	case Watching, Saving, Acting, Waiting, Stopping:
		return true
	}
	return false
}

// Hangs says whether the process lives and has not written for a minute.
func (r *Report) Hangs() bool {
	return r.State != nil && r.Alive && r.Now.Sub(r.State.Now).Abs() > late && !r.Now.IsZero()
}

// Stopped says whether the guard ended the instance, which has been started since: it
// and what starts it again ended while it did so.
func (r *Report) Stopped() bool {
	return r.State != nil && !r.Alive && r.State.Spec.Stops && (r.State.Phase == Acting || r.State.Phase == Stopping)
}

// Gone says whether a guard that was armed has ended, and neither said so nor was
// told to.
func (r *Report) Gone() bool {
	if r.State == nil || r.Alive || r.Off || r.Stopped() {
		return false
	}
	switch r.State.Phase {
	case Off, Refused, Done, Unsure:
		return false
	}
	return true
}

// ParseReport reads what ReadScript or OffScript printed. The instance is not
// trusted.
func ParseReport(out []byte) (*Report, error) {
	if len(out) > maxReport {
		return nil, errors.New("the instance told more of its guard than there can be")
	}
	var (
		r            Report
		box, process string
		begun, ended bool
	)
	for raw := range bytes.Lines(out) {
		raw = bytes.TrimSuffix(raw, []byte("\n"))
		key, value, _ := strings.Cut(string(raw[:min(len(raw), 400)]), " ")
		_, body, _ := bytes.Cut(raw, []byte(" "))
		if ended = string(raw) == "rentop-guard-end"; ended {
			continue
		}
		switch {
		case key == "rentop-guard" && value == "1":
			begun = true
		case key == "fail" && begun:
			return nil, errors.New(clean.Short(value, 300))
		case !begun:
			return nil, fmt.Errorf("the instance's answer about its guard begins with %q", clean.Short(string(raw), 80))
		case key == "now":
			n, err := strconv.ParseInt(value, 10, 64)
			if err == nil && n > 0 && n < 1<<40 {
				r.Now = sane(time.Unix(n, 0))
			}
		case key == "box":
			box = value
		case key == "off":
			r.Off = true
		case key == "process":
			process = value
		case key == "state" && r.State == nil:
			st, err := ParseState(body)
			if err != nil {
				return nil, err
			}
			r.State = st
		case key == "entry" && len(r.Journal) < maxEntries:
			if e, ok := parseEntry(body); ok {
				r.Journal = append(r.Journal, e)
			}
		}
	}
	if !ended {
		return nil, errors.New("the instance's answer about its guard is cut short")
	}
	if s := r.State; s != nil {
		r.Alive = s.PID > 0 && s.Box == box && process == fmt.Sprintf("%d %d", s.PID, s.Start)
	}
	return &r, nil
}
