package sync

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// This file holds what is said about a comparison: its rules and its outcome.

// Options of a comparison.
type Options struct {
	Delete      bool // list what the source does not have
	Force       bool // delete although it is refused otherwise
	Checksum    bool // equal SHA-256 decides where both sides have one, not the time
	IgnoreModes bool // a side without permission bits (Windows)
	// Protected names what deletes leave alone: what the source's rules ignore.
	Protected func(p string, isDir bool) bool
	// Incomplete is why the source's listing may lack something, "" where it
	// does not: then nothing is deleted.
	Incomplete string
	// The destination's limits.
	Windows  bool // its reserved names
	FoldCase bool // names that differ only in case, or in how accents are written, are one
	KeepIn   bool // no symlinks that point out of the root
	// Lookup asks a destination that folds names what it has under p; may be nil.
	Lookup func(p string) (Entry, bool)
}

// Plan is what a transfer would do.
type Plan struct {
	// Actions in the order in which they are done: replaced things away, folders,
	// files, symlinks, attributes; Skips last.
	Actions   []Action
	Deletes   []Action // what --delete removes, after all else; deepest first
	Unchanged int64    // files and symlinks that are there already
	Ignored   int64    // left out by rules
	Bytes     int64    // of file contents to move
	Refused   *RefusedError

	spec    Spec
	local   string // absolute
	remote  string // absolute
	newRoot bool   // the destination folder is not there yet
	litter  []Entry
	trash   *Entry    // the destination's, nil where it has none
	files   *pathList // with Verify: all regular files that are to be equal afterwards
	took    time.Duration
}

// RefusedError is a delete that was stopped for safety; a command ends with 3.
type RefusedError struct {
	Why     string
	Deletes []Action
	Have    int // entries at the destination
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused to delete %d of %d entries: %s", len(e.Deletes), e.Have, e.Why)
}

// Compare makes the plan that turns dst into src. Both are listings as a walk and
// Transport.List give them, in any order.
func Compare(src, dst []Entry, o Options) *Plan {
	p := &Plan{}
	g := &gathered{}
	c := newComparer(o, g.add)
	c.unchanged = func(Entry) { p.Unchanged++ }
	if err := c.merge(sorted(src), sorted(dst)); err != nil {
		panic("sync: sorted listings are out of order: " + err.Error()) // a listing in memory has no other error
	}
	g.fill(p, c, o.Incomplete)
	return p
}

// gathered are the actions of a comparison by kind.
type gathered struct{ replace, mkdirs, sends, links, attrs, skips []Action }

func (g *gathered) add(a Action) {
	switch a.Op {
	case Delete:
		g.replace = append(g.replace, a)
	case Mkdir:
		g.mkdirs = append(g.mkdirs, a)
	case Send:
		g.sends = append(g.sends, a)
	case Link:
		g.links = append(g.links, a)
	case Attr:
		g.attrs = append(g.attrs, a)
	case Skip:
		g.skips = append(g.skips, a)
	}
}

// fill puts all into p, in the order in which it is done.
func (g *gathered) fill(p *Plan, c *comparer, incomplete string) {
	for _, list := range [][]Action{g.mkdirs, g.sends, g.links, g.attrs, g.skips} {
		slices.SortStableFunc(list, func(a, b Action) int { return strings.Compare(a.Entry.Path, b.Entry.Path) })
	}
	p.Actions = slices.Concat(g.replace, g.mkdirs, g.sends, g.links, g.attrs, g.skips)
	for _, a := range g.sends {
		if p.Bytes += a.Entry.Size; p.Bytes < 0 { // sizes that no disk holds
			p.Bytes = math.MaxInt64
		}
	}
	p.Deletes, p.Refused = c.finish(g.replace, incomplete)
}
