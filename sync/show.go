package sync

import (
	"fmt"
	"strings"
	"time"

	"rentop/remote"
)

// This file shows plans, to a person and to a script.

// Row is one line of a plan, as JSON has it.
type Row struct {
	Op   Op     `json:"op"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	Why  string `json:"why"`
}

// Rows are all actions and deletes in the order in which they are done.
func (p *Plan) Rows() []Row {
	rows := make([]Row, 0, len(p.Actions)+len(p.Deletes))
	for _, list := range [][]Action{p.Actions, p.Deletes} {
		for _, a := range list {
			rows = append(rows, Row{Op: a.Op, Path: a.Entry.Path, Size: a.Entry.Size, Why: a.Why})
		}
	}
	return rows
}

// Counts says how many actions of each kind there are, --delete included.
func (p *Plan) Counts() map[Op]int {
	n := map[Op]int{}
	for _, list := range [][]Action{p.Actions, p.Deletes} {
		for _, a := range list {
			n[a.Op]++
		}
	}
	return n
}

// Removes are the paths that are gone from the destination afterwards, or that
// something of another kind replaces.
func (p *Plan) Removes() []string {
	var out []string
	for _, list := range [][]Action{p.Actions, p.Deletes} {
		for _, a := range list {
			if a.Op == Delete {
				out = append(out, a.Entry.Path)
			}
		}
	}
	return out
}

// Empty says whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Actions) == 0 && len(p.Deletes) == 0 }

// Local and Remote are the absolute roots of the two sides.
func (p *Plan) Local() string  { return p.local }
func (p *Plan) Remote() string { return p.remote }

// String lists the plan, one path a line, with a line of totals at its end.
func (p *Plan) String() string {
	var b strings.Builder
	for _, r := range p.Rows() {
		size := ""
		if r.Op == Send {
			size = Size(r.Size)
		}
		fmt.Fprintf(&b, "%-8s %9s  %s  (%s)\n", r.Op, size, remote.Clean(r.Path), remote.Clean(r.Why))
	}
	b.WriteString(p.Summary())
	b.WriteByte('\n')
	if p.Refused != nil {
		fmt.Fprintf(&b, "%s\n", remote.Clean(p.Refused.Error()))
	}
	return b.String()
}

// Summary is the line of totals.
func (p *Plan) Summary() string {
	n := p.Counts()
	parts := []string{fmt.Sprintf("%d files to send, %s", n[Send], Size(p.Bytes))}
	for _, w := range []struct {
		op   Op
		text string
	}{{Mkdir, "folders"}, {Link, "symlinks"}, {Attr, "attributes"}, {Delete, "to delete"}, {Skip, "cannot be done"}} {
		if n[w.op] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[w.op], w.text))
		}
	}
	parts = append(parts, fmt.Sprintf("%d unchanged", p.Unchanged))
	if p.Ignored > 0 {
		parts = append(parts, fmt.Sprintf("%d ignored", p.Ignored))
	}
	return strings.Join(parts, ", ")
}

// Size is n bytes as people read it, in powers of 1024.
func Size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), 0
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	if v < 10 {
		return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[unit])
	}
	return fmt.Sprintf("%.0f %ciB", v, "KMGTP"[unit])
}

// String is the state on one line: files, bytes, rate and time left.
func (p Progress) String() string {
	if p.FilesAll == 0 && p.BytesAll == 0 && (p.Stage == "scan" || p.Stage == "plan") {
		return fmt.Sprintf("%s: %d seen", p.Stage, p.Files) // how many there are is not known yet
	}
	s := fmt.Sprintf("%s %d/%d files", p.Stage, p.Files, p.FilesAll)
	if p.Bytes > 0 || p.BytesAll > 0 { // some stages only count
		s += fmt.Sprintf(", %s of %s", Size(p.Bytes), Size(p.BytesAll))
	}
	if p.Growing {
		s += " so far"
	}
	if p.Rate > 0 {
		s += fmt.Sprintf(", %s/s", Size(int64(p.Rate)))
	}
	if p.Left >= 0 {
		s += fmt.Sprintf(", %s left", p.Left.Round(time.Second))
	}
	if p.FailedSoon > 0 {
		s += fmt.Sprintf(", %d failed", p.FailedSoon)
	}
	return s
}
