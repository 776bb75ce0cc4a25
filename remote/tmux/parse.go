package tmux

// Reading what list.sh prints. The instance is not trusted: every field is
// bounded, checked and cleaned.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"rentop/remote"
)

// parse reads the records of list.sh, start.sh and kill.sh. now is our clock at
// the time of the answer: the instance's may be wrong.
func parse(out []byte, now time.Time) ([]Job, error) {
	var (
		jobs         []Job
		rec          *record
		box          string
		skew         time.Duration
		begun, ended bool
	)
	for line := range bytes.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch {
		case key == "fail" && rec == nil:
			if value == "no such job" {
				return nil, ErrNoJob
			}
			return nil, errors.New(remote.Short(value, 300))
		case key == "rentop-jobs" && value == "1":
			begun = true
		case !begun:
			return nil, fmt.Errorf("the instance's list of jobs begins with %q", remote.Short(string(line), 80))
		case key == "now" && rec == nil:
			if t := seconds(value, 0); !t.IsZero() {
				if d := now.Sub(t); d < -2*time.Second || d > 2*time.Second {
					skew = d.Round(time.Second) // below, it is the round trip
				}
			}
		case key == "box" && rec == nil:
			box = value
		case key == "rentop-jobs-end":
			ended = true
		case key == "job":
			rec = &record{id: value}
		case key == "end" && rec != nil:
			if job, ok := rec.job(box, skew); ok && len(jobs) < maxJobs {
				jobs = append(jobs, job)
			}
			rec = nil
		case rec != nil:
			rec.set(key, value)
		}
	}
	if !ended {
		return nil, errors.New("the instance's list of jobs is cut short")
	}
	return jobs, nil
}

// record is one job's fields as they came.
type record struct {
	id, spec, last string
	pid, exit      []string
	alive          bool
	begun, kill    bool
	size           int64
}

func (r *record) set(key, value string) {
	switch key {
	case "alive":
		r.alive = value == "1"
	case "begun":
		r.begun = value == "1"
	case "kill":
		r.kill = value == "1"
	case "pid":
		r.pid = strings.Fields(value)
	case "exit":
		r.exit = strings.Fields(value)
	case "size":
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && n >= 0 {
			r.size = n
		}
	case "last":
		if b, err := hex.DecodeString(value); err == nil {
			r.last = lastLine(b)
		}
	case "spec":
		r.spec = value
	}
}

// job judges the fields. Only a whole record of the runner is believed: an exit
// code that cannot be read is no exit code.
func (r *record) job(box string, skew time.Duration) (Job, bool) {
	var s Spec
	if checkID(r.id) != nil || json.Unmarshal([]byte(r.spec), &s) != nil {
		return Job{}, false
	}
	j := Job{ID: r.id, Name: remote.Short(s.Name, 200), Command: remote.Short(s.Command, maxCommand), Dir: remote.Short(s.Dir, 1000),
		LogSize: r.size, LastLine: r.last, State: Starting}
	claimed := len(r.pid) == 5
	if claimed {
		if n, err := strconv.Atoi(r.pid[0]); err == nil && n > 0 {
			j.PID = n
		}
		j.StartedAt = seconds(r.pid[2], skew)
	}
	if len(r.exit) == 2 {
		code, err := strconv.Atoi(r.exit[0])
		at := seconds(r.exit[1], skew)
		if err == nil && code >= 0 && code <= 255 && !at.IsZero() {
			j.ExitCode, j.EndedAt, j.State = &code, at, Done
			if r.kill {
				j.State = Killed
			}
			return j, true
		}
	}
	switch {
	case !claimed:
	case box != "" && r.pid[4] != box:
		j.State, j.Why = Lost, "the instance restarted while it ran"
	case !r.alive && r.kill:
		j.State = Killed
	case !r.alive:
		j.State, j.Why = Lost, "its runner was killed (out of memory, or kill -9); what it started may still run"
	case r.begun:
		j.State, j.Tmux = Running, r.pid[3] == "1"
	}
	return j, true
}

// lastLine is the last line with something on it, a progress bar's last state
// included.
func lastLine(b []byte) string {
	text := ansi.Strip(strings.ToValidUTF8(string(b), "\ufffd"))
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(lines[i]); s != "" {
			return remote.Short(s, 400)
		}
	}
	return ""
}
