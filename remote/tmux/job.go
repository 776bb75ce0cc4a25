// Package tmux starts commands on an instance that outlive the connection, and
// tells the truth about them. tmux is how a person attaches; files are what is
// believed: a job is a directory, its exit code a file written before it starts.
package tmux

import "time"

// State of a job.
type State string

const (
	Starting State = "starting" // claimed, not yet proven to run
	Running  State = "running"
	Done     State = "done" // ended by itself: ExitCode is set
	Killed   State = "killed"
	Lost     State = "lost" // the box restarted or the runner was killed: no exit code exists
)

// Spec is a job to start.
type Spec struct {
	ID      string            // unique, made by the caller: starting it twice starts it once
	Name    string            // what the person calls it
	Command string            // one shell command line, run by the login shell (`$SHELL -l`)
	Dir     string            // working directory; "" is the login's home; "~" is expanded
	Env     map[string]string // added to the login's environment
}

// Job is one job as its files tell it. Texts are cleaned.
type Job struct {
	ID        string
	Name      string
	Command   string
	Dir       string
	State     State
	ExitCode  *int // nil while running and where lost
	StartedAt time.Time
	EndedAt   time.Time // zero while running
	PID       int
	LogSize   int64
	LastLine  string
	Tmux      bool   // can be attached
	Why       string // for Lost: "the instance restarted at …"
}
