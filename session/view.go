package session

import (
	"time"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session/billing"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// State of a session.
type State string

const (
	Idle       State = "idle"       // not asked to connect
	Connecting State = "connecting" // Reason says at which stage
	Asking     State = "asking"     // waits for the person's answer
	Live       State = "live"
	Stalled    State = "stalled" // connected, but the instance does not answer
	Waiting    State = "waiting" // lost; the next try is at View.RetryAt
	Refused    State = "refused" // needs the person: login refused, host key changed
	Stopped    State = "stopped" // the provider says so
	Gone       State = "gone"
)

// FleetView is an immutable picture of everything, for a screen to draw.
type FleetView struct {
	At         time.Time
	Simulated  bool   // the demo's
	Sessions   []View // sorted: what needs the person first
	PerHour    Sums   // what the fleet burns now
	Today      Sums   // since local midnight
	BudgetLeft Sums   // of those instances that have one
	Balances   []Balance
	Questions  []Question
	Notices    []Notice // newest last
	ConfigErr  string   // the config cannot be read: says file and line
}

// Sums is money in one or more currencies, never added without a rate that the
// person gave. Unknown counts instances whose part is not known.
type Sums struct {
	Amounts []billing.Amount
	Unknown int
}

// View is an immutable picture of one session.
type View struct {
	Name                                       string
	Provider                                   string // kind; "" is plain SSH
	Address                                    string // user@host:port
	State                                      State
	Reason                                     phrase.Text // always there unless Live
	Since                                      time.Time
	RetryAt                                    time.Time     // while Waiting
	RTT                                        time.Duration // 0: not measured
	Facts                                      *remote.Facts // nil until probed
	Sample                                     *gpu.Sample   // nil until the first
	History                                    History
	Day                                        History // the last 24 hours; with a guard also those away
	Guard                                      *Guard  // nil until asked
	Meter                                      Meter
	Jobs                                       []tmux.Job         // newest first
	JobsErr                                    string             // why Jobs may be old
	Receipts                                   map[string]Receipt // what each of Jobs has used, by its id
	Running                                    int                // of Jobs
	Saved                                      Saved
	Artifacts                                  int            // as configured
	Saving                                     *SavingView    // of them, as they are finished; nil: not now
	Transfer                                   []TransferView // in the order in which they run
	Limit                                      int64          // of its transfers, bytes a second each way; 0: none
	Syncs                                      []SyncPair     // as configured
	Ports                                      []Port         // of the instance, that are brought here
	Alerts                                     []Alert
	PastAlerts                                 []PastAlert   // what was said, newest last, also what is silenced
	Release                                    *release.View // nil where none is under way
	CanStop, CanStart, CanDestroy, CanSnapshot bool
}

// History is the recent past, a value a step, oldest first; NaN where nothing
// was heard.
type History struct {
	Step time.Duration
	Util [][]float64 // by GPU, percent
	Mem  [][]float64 // by GPU, percent
	CPU  []float64
	Mean []float64 // mean of Util over GPUs
}

// Meter is what an instance has cost. Nil is unknown and shown as ?.
type Meter struct {
	Cost       *billing.Amount // of this rental, until now
	AtLeast    *billing.Amount // where Cost is unknown: the known part
	Today      *billing.Amount
	PerHour    *billing.Amount // now, in the present state
	Running    *billing.Amount // an hour while it runs, in whatever state it is
	ByMidnight *billing.Amount // today's sum at this rate
	Budget     *billing.Amount
	BudgetLeft *billing.Amount
	Since      time.Time   // when the rental's first known interval began
	Missing    []string    // what is not known: "price", "disk price"
	Note       phrase.Text // "counted from first contact: the start time could not be read"
}

// Saved says whether anything on the instance exists nowhere else.
type Saved struct {
	Known bool
	Files int
	Bytes int64
	At    time.Time
}

// TransferView is one transfer, running or ended.
type TransferView struct {
	ID        int
	Direction sync.Direction
	Local     string
	Remote    string
	Progress  sync.Progress
	Result    *sync.Result // nil while it runs
	Err       string
	Cancelled bool
	Paused    bool // until it is resumed; Progress is as it was
}

// SyncPair is a configured pair of folders.
type SyncPair struct {
	Local, Remote string
}

// Alert is something that needs the person.
type Alert struct {
	ID    string // stable while it lasts
	Level Level
	Text  phrase.Text // with its evidence
	Since time.Time
}

// PastAlert is an alert that was said.
type PastAlert struct {
	Alert
	Ended    time.Time // zero while it lasts, and where Unseen
	Silenced time.Time // until then it is not said; zero: it is
	Unseen   bool      // it lasted when a rentop ended: its end was not seen
}

// Level of an Alert.
type Level int

const (
	Info Level = iota
	Warn
	Urgent
)

// String is the level's name in JSON and metrics.
func (l Level) String() string {
	switch l {
	case Urgent:
		return "urgent"
	case Warn:
		return "warning"
	}
	return "info"
}

// Notice is a line that passes: something ended, failed or was done.
type Notice struct {
	At       time.Time
	Instance string
	Level    Level
	Text     phrase.Text
}

// Question is a remote.Question that waits in the screen.
type Question struct {
	ID int
	remote.Question
}
