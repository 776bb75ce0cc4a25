// Package release is the checklist between a person and a torn-down instance:
// a journaled state machine. Every step is written before and after it happens,
// so that a crash at any line is resumed by showing where it stood; nothing that
// was proven before a crash counts as proven after it.
package release

import (
	"time"

	"rentop/remote/provider"
	"rentop/session/phrase"
)

// CheckID names a line of the checklist, in the order they are done.
type CheckID string

const (
	CheckJobs      CheckID = "jobs"        // every job ended
	CheckArtifacts CheckID = "artifacts"   // each artifact exists at its destination with equal SHA-256
	CheckUnsaved   CheckID = "unsaved"     // files that exist nowhere else
	CheckGit       CheckID = "git"         // uncommitted or unpushed work
	CheckEnv       CheckID = "environment" // pip, conda, apt, driver, GPU captured here
	CheckSnapshot  CheckID = "snapshot"    // offered: taken, declined, or not possible
	CheckCosts     CheckID = "costs"       // what will go on costing money
)

// State of a check.
type CheckState string

const (
	Pending CheckState = "pending"
	Active  CheckState = "running"
	Passed  CheckState = "passed"
	Failed  CheckState = "failed"  // something would be lost: waived only by the typed name
	Unknown CheckState = "unknown" // could not be checked: treated as Failed
	Waived  CheckState = "waived"
	Offered CheckState = "offered" // waits for a decision (snapshot)
)

// Check is one line with its evidence.
type Check struct {
	ID       CheckID
	State    CheckState
	Summary  phrase.Text // one sentence
	Evidence []Evidence  // what would be lost first, by size
	At       time.Time
	Cure     phrase.Text // what to do about a failure; none where passed
}

// Evidence is one thing that a check found.
type Evidence struct {
	What   string // a path, a job, a git tree; cleaned
	Size   int64  // bytes; -1 where it has none
	Detail phrase.Text
	Lost   bool // would be lost
	More   int  // how many things this one stands for, where it is not one
}

// Goal is what the person wants to happen to the instance at the end.
type Goal string

const (
	CheckOnly Goal = "check"
	Stop      Goal = "stop"
	Destroy   Goal = "destroy"
)

// Phase of a whole release.
type Phase string

const (
	Checking   Phase = "checking"
	Waiting    Phase = "waiting"    // for the typed name (or for a decision)
	Saving     Phase = "saving"     // a snapshot or a pull that was asked for; then everything is checked again
	Rechecking Phase = "rechecking" // nothing may have changed since the proof
	Tearing    Phase = "tearing down"
	Proving    Phase = "proving" // asking the provider until it says stopped or gone
	Review     Phase = "review"  // done: what it cost
	Stuck      Phase = "stuck"   // the provider refused or does not confirm: Why says
	Cancelled  Phase = "cancelled"
)

// View is the state of a release, for a screen or for JSON.
type View struct {
	ID       string // of this run
	Instance string // name
	Goal     Goal
	Phase    Phase
	Checks   []Check
	Why      phrase.Text // for Stuck, and why a recheck started over
	Lost     []Evidence
	LostSize int64
	// PullTraffic is what bringing Lost away costs at most in traffic: "?" where no price
	// is known, "" where there is nothing to bring.
	PullTraffic string
	GoesOn      []GoesOn // what costs money afterwards
	CanStop     bool
	CanDestroy  bool
	StopNote    string         // what a stop does not end
	Snapshots   []SnapshotKind // that can be taken now
	Shown       string         // names exactly this picture; a typed name carries it back
	StartedAt   time.Time
	Resumed     bool           // this is a run that an earlier rentop left unfinished
	Proof       phrase.Text    // the provider's word at the end
	Ended       provider.State // the same as a state; "" before
	Cost        string         // the review's line; "?" where unknown
	Review      []phrase.Text  `json:",omitempty"` // what else is to be learnt from this rental
	Commits     int            // git trees whose commits exist nowhere else: a pull brings them
	Pulled      int            // files that this run brought to PulledTo
	PulledTo    string         // a folder here; "" where none
}

// Losses counts Lost: files, and what is none (jobs, git trees).
func (v View) Losses() (files, others int) {
	for _, e := range v.Lost {
		if e.Size < 0 {
			others++
			continue
		}
		files += max(1, e.More)
	}
	return files, others
}

// Fails lists the lines that a typed name would waive.
func (v View) Fails() []Check {
	var out []Check
	for _, c := range v.Checks {
		if c.State == Failed || c.State == Unknown {
			out = append(out, c)
		}
	}
	return out
}

// GoesOn is one thing that costs money after the teardown. PerMonth is a
// decimal with its currency, "?" where unknown.
type GoesOn struct {
	What     phrase.Text
	PerMonth string
}
