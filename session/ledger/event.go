// Package ledger is the durable record behind every amount and every promise:
// an append-only list of events in SQLite. It is safe against kill -9 and
// against two rentops at once.
package ledger

import (
	"encoding/json"
	"time"
)

// Kind of an Event. Unknown kinds are kept and ignored: a newer rentop may have
// written them.
type Kind string

const (
	Added        Kind = "added"       // an instance entered the config: Data is its Identity
	Removed      Kind = "removed"     // it left the config
	Renamed      Kind = "renamed"     // Data: {"to": name}
	PlanSet      Kind = "plan"        // how it is billed from At on: Data is a PlanData
	Observed     Kind = "observed"    // seen in a state: Data is an Observation
	FirstSeen    Kind = "first-seen"  // first contact: Data is a FirstSeenData
	JobStarted   Kind = "job-started" // Data: the tmux.Job
	JobEnded     Kind = "job-ended"   // Data: the tmux.Job
	Transferred  Kind = "transferred" // Data: a summary of a sync.Result, Traffic in it
	Release      Kind = "release"     // one step of the release journal: Data is release.Entry
	NoteRecorded Kind = "note"
	Alarm        Kind = "alarm"     // an alarm was said, or ended: Data is session's
	Silenced     Kind = "silenced"  // an alarm, by the person: Data is session's
	Described    Kind = "described" // Data: a Description
	Hardware     Kind = "hardware"  // Data: a HardwareData
	LeftBehind   Kind = "left"      // Data: a LeftData
	Charged      Kind = "charged"   // by the provider: Data is a ChargeData
	Used         Kind = "used"      // what was watched of a stretch of time: Data is a usage.Segment
	Snapshot     Kind = "snapshot"  // asked of the provider, or made there: Data is session's
	Moved        Kind = "move"      // one step of a move away from it: Data is session's
)

// Event is one fact. Events are never changed; a correction is another event.
type Event struct {
	Seq      int64     // order of writing; given by the ledger
	At       time.Time // when it became true (UTC): what is billed
	Recorded time.Time // rentop's clock when it was written: At may lie before it
	Instance string    // the instance's uid; "" for the fleet
	Kind     Kind
	Source   string // "provider", "ssh", "user", "rentop"
	Data     json.RawMessage
}

// Observation says that an instance was in a state at Event.At. StartedAt is
// the beginning of the running period where it could be read (the provider, or
// the instance's own PID 1), so that time before rentop looked is billed too.
type Observation struct {
	State     string    `json:"state"` // running, stopped, hibernated, gone, unknown
	StartedAt time.Time `json:"started_at,omitzero"`
	Box       string    `json:"box,omitempty"` // boot id + PID 1 start: changes at each restart
	Why       string    `json:"why,omitempty"`
}

// FirstSeenData fixes the instance's own clock at first contact; the release
// checklist looks for files changed since.
type FirstSeenData struct {
	InstanceClock time.Time `json:"instance_clock"`
	BoxStartedAt  time.Time `json:"box_started_at,omitzero"`
	Box           string    `json:"box"`
}
