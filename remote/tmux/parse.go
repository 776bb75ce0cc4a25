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

// answer is what a script told of jobs.
type answer struct {
	jobs  []Job
	older int // ended jobs that were not told
	// unsettled are jobs that have ended, and whose sums are not to be believed.
	unsettled []string
}

// parse reads the records of list.sh, start.sh and kill.sh. now is our clock at
// the time of the answer: the instance's may be wrong.
func parse(out []byte, now time.Time) (answer, error) {
	var (
		a            answer
		recs         []*record
		rec          *record
		box          string
		skew         time.Duration
		begun, ended bool
	)
	seen := map[string]bool{} // a folder's name with a line break may look like another's
	rest := sums{jobs: map[string]*record{}, sizes: map[string]int64{}}
	for raw := range bytes.Lines(out) {
		line := strings.TrimSuffix(string(raw), "\n")
		key, value, _ := strings.Cut(line, " ")
		if ended = line == "rentop-jobs-end"; ended {
			continue // believed as the last line
		}
		switch {
		case rest.mode != "":
			rest.line(line, key, value)
		case key == "fail" && rec == nil:
			if value == "no such job" {
				return answer{}, ErrNoJob
			}
			return answer{}, errors.New(remote.Short(value, 300))
		case key == "rentop-jobs" && value == "1":
			begun = true
		case !begun:
			return answer{}, fmt.Errorf("the instance's list of jobs begins with %q", remote.Short(line, 80))
		case key == "now" && rec == nil:
			if t := seconds(value, 0); !t.IsZero() {
				if d := now.Sub(t); d < -2*time.Second || d > 2*time.Second {
					skew = d.Round(time.Second) // below, it is the round trip
				}
			}
		case key == "box" && rec == nil:
			box = value
		case key == "older" && rec == nil:
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				a.older = n
			}
		case line == "logs" && rec == nil:
			rest.mode = line
		case key == "job":
			rec = &record{id: value}
		case key == "end" && rec != nil:
			if len(recs) < maxJobs && checkID(rec.id) == nil && !seen[rec.id] {
				seen[rec.id] = true
				recs = append(recs, rec)
				if rec.settled {
					rest.jobs[rec.id] = rec
				}
			}
			rec = nil
		case rec != nil:
			rec.set(key, value)
		}
	}
	if !ended {
		return answer{}, errors.New("the instance's list of jobs is cut short")
	}
	for _, r := range recs {
		if _, waits := rest.jobs[r.id]; waits {
			a.unsettled = append(a.unsettled, r.id)
		} else if job, ok := r.job(box, skew); ok {
			a.jobs = append(a.jobs, job)
		}
	}
	return a, nil
}

// record is one job's fields as they came.
type record struct {
	id, spec, last string
	pid, exit      []string
	alive          bool
	begun, kill    bool
	settled        bool // its facts come with the sums
	size           int64
}

func (r *record) set(key, value string) {
	switch key {
	case "alive":
		r.alive = value == "1"
	case "settled":
		r.settled = value == "1"
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
