package tui

import (
	"context"
	"io"
	"time"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// Fleet is what the screens draw and what they ask to act. [Over] makes one of
// session's. View, Changed, Answer, Keep, Nudge and those about a transfer in the
// queue never block; the others are called in the background.
type Fleet interface {
	View() *session.FleetView
	Changed() <-chan struct{}
	Answer(id int, a remote.Answer)
	Keep(instance, alert string, d time.Duration)
	Nudge(instance string)

	Instance(name string) (config.Instance, error)
	Add(in config.Instance) error
	Edit(name string, in config.Instance) error
	Remove(name string) error
	Start(ctx context.Context, instance string) error
	Doctor(ctx context.Context, instance string) ([]session.Finding, error)
	Costs(ctx context.Context, since time.Time) (Costs, error)

	Terminal(ctx context.Context, instance string, t remote.TerminalOptions) (int, error)
	JobTerminal(ctx context.Context, instance, job string, t remote.TerminalOptions) (int, error)

	PastRuns(ctx context.Context, instance string) (*session.PastRuns, error)
	StartJob(ctx context.Context, instance string, spec session.JobSpec) (tmux.Job, error)
	KillJob(ctx context.Context, instance, job string) (tmux.Job, error)
	RestartJob(ctx context.Context, instance, job string) (tmux.Job, error)
	Arm(ctx context.Context, instance string, spec session.GuardSpec) (session.Guard, error)
	Disarm(ctx context.Context, instance string) (session.Guard, error)
	Follow(ctx context.Context, instance, job string, from int64, w io.Writer) error

	PlanTransfer(ctx context.Context, instance string, spec session.TransferSpec) (*sync.Plan, error)
	StartTransfer(instance string, spec session.TransferSpec) (int, error)
	CancelTransfer(instance string, id int)
	PauseTransfer(instance string, id int, on bool)
	MoveTransfer(instance string, id int, forward bool) bool
	LimitTransfers(instance string, bytesPerSecond int64)
	Outline(instance string, d sync.Direction, p *sync.Plan) session.Outline

	KeepSaving(instance string, on bool) error
	Snapshot(ctx context.Context, instance string) (session.Snapshot, error)
	OpenPort(ctx context.Context, instance, port string) (session.Port, error)
	ClosePort(instance, port string) bool
	StartRelease(instance string, goal release.Goal) error
	Decide(instance string, d release.Decision) error
}

// Costs is what was spent in a time.
type Costs struct {
	Since, Until time.Time
	Lines        []CostLine
	Total        session.Sums // traffic of no known price is not in it
	Parts        session.Parts
	Month        session.Forecast
	Said         []CostSaid
}

// CostSaid is a sentence about an instance's money: its budget, what was charged.
type CostSaid struct {
	Instance string
	Text     phrase.Text
}

// CostLine is a part of it: an instance on a day, its traffic or what it left behind on
// a day, or a job (whose cost is part of its instance's).
type CostLine struct {
	Instance string
	Provider string // "" is plain SSH
	Tags     []string
	Job      string // "" for an instance's day
	Day      time.Time
	Amount   *billing.Amount // nil: not known
	AtLeast  *billing.Amount // the known part, where Amount is not known
}
