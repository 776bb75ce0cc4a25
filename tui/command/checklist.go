package command

// How a release is shown outside the screen.

import (
	"fmt"
	"io"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/release"
	"rentop/sync"
)

// checklist prints each line of a release once it is known.
type checklist struct {
	out   io.Writer
	lines map[release.CheckID]string
	why   string
	phase release.Phase
	// of several releases a list is shown at once, there, when it is decided about.
	block io.Writer
}

func newChecklist(out io.Writer) *checklist {
	return &checklist{out: out, lines: map[release.CheckID]string{}}
}

// marks of the states; words, since colour and signs do not survive every pipe.
var marks = map[release.CheckState]string{
	release.Passed: "ok", release.Failed: "FAIL", release.Unknown: "?", release.Waived: "waived", release.Offered: "offer",
}

func (l *checklist) show(v release.View) {
	if v.Phase != l.phase {
		l.phase = v.Phase
		switch v.Phase {
		case release.Rechecking, release.Tearing, release.Proving, release.Stuck:
			fmt.Fprintf(l.out, "%s …\n", v.Phase)
		}
	}
	why := v.Why.String()
	if why != "" && why != l.why && v.Phase != release.Review { // the end says it
		fmt.Fprintln(l.out, why)
	}
	l.why = why
	if v.Phase != release.Rechecking && l.block == nil {
		l.checks(v)
	}
}

func (l *checklist) checks(v release.View) {
	for _, c := range v.Checks {
		mark, known := marks[c.State]
		if !known {
			continue
		}
		text := fmt.Sprintf("%-6s  %-11s  %s\n", mark, c.ID, c.Summary)
		if l.lines[c.ID] != text {
			l.lines[c.ID] = text
			io.WriteString(l.out, text)
			l.evidence(c)
		}
	}
}

// whole shows the list that a decision is about, where its lines were not shown yet.
func (l *checklist) whole(v release.View) {
	if l.block == nil {
		return
	}
	fmt.Fprintf(l.block, "%s:\n", v.Instance)
	newChecklist(l.block).checks(v)
}

// evidence lists what a failing line found, the largest first.
func (l *checklist) evidence(c release.Check) {
	if c.State == release.Passed && c.ID != release.CheckSnapshot { // where a snapshot went is wanted later
		return
	}
	more := 0
	for n, e := range c.Evidence {
		if n >= maxLines {
			more += max(1, e.More)
			continue
		}
		size := ""
		if e.Size >= 0 {
			size = sync.Size(e.Size)
		}
		fmt.Fprintf(l.out, "        %9s  %s", size, remote.Clean(e.What))
		if len(e.Detail) > 0 {
			fmt.Fprintf(l.out, "  (%s)", e.Detail)
		}
		fmt.Fprintln(l.out)
	}
	if more > 0 {
		fmt.Fprintf(l.out, "        %9s  and %d more\n", "", more)
	}
	if len(c.Cure) > 0 {
		fmt.Fprintf(l.out, "                   → %s\n", c.Cure)
	}
}

// maxLines bounds how many things a line of the list names.
const maxLines = 20

// lost says in one clause what would be lost.
func lost(v release.View) string {
	files, others := v.Losses()
	var parts []string
	if files > 0 {
		parts = append(parts, fmt.Sprintf("%s, %s", counted(files, "file"), sync.Size(v.LostSize)))
	}
	if others > 0 {
		what := counted(others, "job or git tree")
		if others > 1 {
			what = fmt.Sprintf("%d jobs or git trees", others)
		}
		parts = append(parts, what)
	}
	if len(parts) == 0 {
		return "whether something would be lost is not known"
	}
	return strings.Join(parts, " and ") + " would be lost"
}

// bringing says what the traffic of saving it costs.
func bringing(v release.View) string {
	switch v.PullTraffic {
	case "":
		return ""
	case "?":
		return "; to bring it away: traffic ?"
	}
	return "; to bring it away: traffic at most " + v.PullTraffic
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// kept says where what was brought away lies; it is asked for when the instance is gone.
func (l *checklist) kept(v release.View) {
	if v.PulledTo != "" {
		fmt.Fprintf(l.out, "pulled: %s, now in %s\n", counted(v.Pulled, "file"), remote.Clean(v.PulledTo))
	}
	for _, c := range v.Checks {
		if c.ID != release.CheckSnapshot {
			continue
		}
		for _, e := range c.Evidence {
			fmt.Fprintf(l.out, "snapshot: %s (%s)\n", remote.Clean(e.What), e.Detail)
		}
	}
}

// end sums up a picture: what would be lost and what goes on costing money.
func (l *checklist) end(v release.View) {
	out := l.out
	if l.block != nil {
		out = l.block
	}
	if len(v.Lost) > 0 {
		fmt.Fprintln(out, lost(v)+bringing(v))
	}
	for _, g := range v.GoesOn {
		fmt.Fprintf(out, "goes on costing: %s: %s a month\n", g.What, g.PerMonth)
	}
	if v.Goal == release.Stop && v.StopNote != "" {
		fmt.Fprintln(out, remote.Clean(v.StopNote))
	}
}

// released is a release in JSON. Names are added, never changed.
type released struct {
	ID        string     `json:"id"`
	Instance  string     `json:"instance"`
	Goal      string     `json:"goal"`
	Phase     string     `json:"phase"`
	Checks    []check    `json:"checks"`
	Lost      []evidence `json:"lost"`
	LostBytes int64      `json:"lost_bytes"`
	GoesOn    []goesOn   `json:"goes_on"`
	Why       string     `json:"why"`
	Proof     string     `json:"proof"`
	Cost      string     `json:"cost"` // "?" where it is not known
	StartedAt *time.Time `json:"started_at"`
	Resumed   bool       `json:"resumed"`
	LostFiles int        `json:"lost_files"`   // also those that lost does not name
	Traffic   string     `json:"pull_traffic"` // at most, to bring what is lost away; "?" where not known, "" where nothing is
	Pulled    int        `json:"pulled"`
	PulledTo  string     `json:"pulled_to"` // a folder here; "" where nothing was pulled
	Review    []string   `json:"review"`    // what is to be learnt from this rental, at its end
}

type check struct {
	ID       string     `json:"id"`
	State    string     `json:"state"` // passed, failed, unknown, waived, offered, pending, running
	Summary  string     `json:"summary"`
	Evidence []evidence `json:"evidence"`
	Cure     string     `json:"cure"`
}

type evidence struct {
	What   string `json:"what"`
	Size   *int64 `json:"size"` // bytes; null where it has none
	Detail string `json:"detail"`
	Lost   bool   `json:"lost"`
}

type goesOn struct {
	What     string `json:"what"`
	PerMonth string `json:"per_month"` // "?" where it is not known
}

func releaseOf(v release.View) released {
	r := released{
		ID: v.ID, Instance: v.Instance, Goal: string(v.Goal), Phase: string(v.Phase), Checks: []check{},
		Lost: evidenceOf(v.Lost), LostBytes: v.LostSize, GoesOn: []goesOn{}, Why: v.Why.String(), Proof: v.Proof.String(), Cost: v.Cost,
		StartedAt: instant(v.StartedAt), Resumed: v.Resumed, Traffic: v.PullTraffic, Pulled: v.Pulled, PulledTo: v.PulledTo,
	}
	r.LostFiles, _ = v.Losses()
	r.Review = []string{}
	for _, l := range v.Review {
		r.Review = append(r.Review, l.String())
	}
	for _, c := range v.Checks {
		r.Checks = append(r.Checks, check{string(c.ID), string(c.State), c.Summary.String(), evidenceOf(c.Evidence), c.Cure.String()})
	}
	for _, g := range v.GoesOn {
		r.GoesOn = append(r.GoesOn, goesOn{g.What.String(), g.PerMonth})
	}
	return r
}

func evidenceOf(list []release.Evidence) []evidence {
	out := []evidence{}
	for _, e := range list {
		x := evidence{What: e.What, Detail: e.Detail.String(), Lost: e.Lost}
		if e.Size >= 0 {
			x.Size = &e.Size
		}
		out = append(out, x)
	}
	return out
}
