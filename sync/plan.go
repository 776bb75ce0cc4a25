package sync

import (
	"fmt"
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
