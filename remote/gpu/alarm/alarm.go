// Package alarm decides what about an instance needs its person: rules over a
// window of samples, each a pure function with its evidence. A rule must hold for a
// while before it is said and be gone for a while before it ends; what was said is
// kept. The package knows no clock, no screen and no money: it is given moments,
// and gives keys of phrases with their arguments. So the helper on the instance
// can run the same rules while nobody is connected.
package alarm

import (
	"time"

	"rentop/remote/gpu/sample"
)

// Level of a finding.
type Level int

// Levels, the least first.
const (
	Info Level = iota
	Warn
	Urgent
)

// Text is a key of a phrase with its arguments, and more behind it.
type Text struct {
	Key  string
	Args []any
	N    int // with Many: how many of what the phrase counts; its first argument
	Many bool
	More []Text
}

// Finding is what one rule found.
type Finding struct {
	ID    string // stable while it lasts: "hot", "disk /data"
	Level Level
	Text  Text
	Since time.Time // when it began, not when it was first said
}

// Moment is all that is known at one instant. The zero value of a field is unknown.
type Moment struct {
	At     time.Time
	Live   bool // samples come
	Sample *sample.Sample

	Billed      bool          // as running
	Unreachable time.Duration // how long; 0: it answers, or is not meant to
	Why         Text          // that it does not answer
	Cost        any           // until now, and an hour: as they are shown
	PerHour     any
	Hourly      func(time.Duration) any // what a time costs at the present rate
	Budget      any
	Spent       float64       // part of the budget that is used; 1 is all
	Runway      time.Duration // until the balance is used up at the present rate

	RunwayAtMost bool // the rate is not known whole: it is used up before that
	Jobs         []Job
	Watched      []Watched
	Unsaved      int // files that exist nowhere else
}

// Job is one job of the person's.
type Job struct {
	Name    string
	Running bool
	Code    *int // exit code, where it ended and is known
	Lost    bool // it ended without one
	Began   time.Time
	Ended   time.Time
}

// Watched is a path that something must keep writing.
type Watched struct {
	Path   string
	Newest time.Time
	Limit  time.Duration
}

func (m *Moment) running() bool {
	for _, j := range m.Jobs {
		if j.Running {
			return true
		}
	}
	return false
}

// Limits are the thresholds. Usual are right for machines that were recorded, busy
// and idle; a person may set others.
type Limits struct {
	IdleBelow     float64       // percent of utilisation that counts as idle
	IdleFor       time.Duration // before it is said
	MemoryFull    float64       // percent of a GPU's memory
	MemoryWithin  time.Duration // growing to full within
	Disk          float64       // percent of a disk, or of its inodes
	DiskWithin    time.Duration // growing to full within
	StarvedBelow  float64       // percent of mean utilisation
	StarvedSwing  float64       // percent: standard deviation of the utilisation
	StarvedCPU    float64       // percent of CPU, or
	StarvedWait   float64       // percent of I/O wait beside it
	Steal         float64       // percent of CPU time that went to others
	ShallowPower  float64       // percent of the power limit that a busy GPU draws less than
	LeftoverBytes float64       // memory that a job's process holds after its end
	RunwayJob     time.Duration // of the balance, while a job runs
	RunwayIdle    time.Duration // of the balance otherwise
	Off           []string      // rules that say nothing, by name
}

// Usual are the defaults.
func Usual() Limits {
	return Limits{IdleBelow: 5, IdleFor: 10 * time.Minute, MemoryFull: 97, MemoryWithin: 10 * time.Minute, Disk: 95, DiskWithin: 30 * time.Minute,
		StarvedBelow: 60, StarvedSwing: 25, StarvedCPU: 90, StarvedWait: 20, Steal: 10, ShallowPower: 30, LeftoverBytes: 512 << 20,
		RunwayJob: 2 * time.Hour, RunwayIdle: 30 * time.Minute}
}

// Span writes a duration so that it is read in every language: 24 min, 3 h 12 min, 2 d.
func Span(d time.Duration) string { return span(d) }
