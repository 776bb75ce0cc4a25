package tmux

// The sums of settled jobs: what one file in a job's folder keeps of its facts, so
// that a list starts no process for a job that has ended.

import (
	"slices"
	"strconv"
	"strings"
)

// sums reads what list.sh prints after the records. The facts of a sum are taken
// where it is whole, was made for these very pid and exit lines, and the log has the
// size it had then; how a job ended is never read from it.
type sums struct {
	jobs  map[string]*record // those that wait for their facts
	sizes map[string]int64   // of the logs, now
	mode  string             // "logs" or "sums"; "" before them
	cur   *sum
}

// sum is one file's fields as they came.
type sum struct {
	id, pid, exit    string
	size, last, spec *string
}

// line takes one line after the records.
func (s *sums) line(line, key, value string) {
	switch {
	case s.mode == "logs" && line == "sums":
		s.mode = line
	case s.mode == "logs":
		// ls -ln: mode, links, owner, group, bytes, three of the date, ID/log
		if f := strings.Fields(line); len(f) >= 9 {
			if n, err := strconv.ParseInt(f[4], 10, 64); err == nil && n >= 0 {
				s.sizes[strings.TrimSuffix(f[len(f)-1], "/log")] = n
			}
		}
	case key == "sum":
		s.cur = &sum{id: value}
	case s.cur == nil:
	case key == "sum-end":
		s.take(s.cur)
		s.cur = nil
	case key == "pid":
		s.cur.pid = value
	case key == "exit":
		s.cur.exit = value
	case key == "size":
		s.cur.size = &value
	case key == "last":
		s.cur.last = &value
	case key == "spec":
		s.cur.spec = &value
	}
}

func (s *sums) take(m *sum) {
	r, ok := s.jobs[m.id]
	if !ok || m.size == nil || m.last == nil || m.spec == nil ||
		!slices.Equal(r.pid, strings.Fields(m.pid)) || !slices.Equal(r.exit, strings.Fields(m.exit)) {
		return
	}
	size, ok := s.sizes[m.id]
	if !ok || strings.TrimSpace(*m.size) != strconv.FormatInt(size, 10) {
		return
	}
	r.set("size", *m.size)
	r.set("last", *m.last)
	r.set("spec", *m.spec)
	delete(s.jobs, m.id)
}
