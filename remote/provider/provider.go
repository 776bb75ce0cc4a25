// Package provider starts, stops, destroys and snapshots instances where they
// were rented. One file a provider; all pass the suite in providertest.
package provider

import (
	"context"
	"errors"
	"time"
)

// State of an instance as its provider tells it.
type State string

const (
	Running  State = "running"
	Stopped  State = "stopped"
	Gone     State = "gone" // the provider says it does not exist
	Changing State = "changing"
	Unknown  State = "unknown" // the provider answered, but nothing we understand
)

// Status is the provider's word at one moment.
type Status struct {
	State     State
	StartedAt time.Time // when the running period began; zero where not told
	Billed    *bool     // whether compute is charged in this state; nil where not told
	Detail    string    // the provider's own word, cleaned
}

// Snapshot is an image or disk snapshot that the provider keeps.
type Snapshot struct {
	ID       string
	Name     string
	PerMonth string // decimal, "" where unknown
	Currency string
}

// Leftover is something that goes on costing money.
type Leftover struct {
	Kind     string // "disk", "snapshot", "ip", "volume", "instance"
	ID       string
	Name     string // a person's name for it, cleaned; "" where it has none
	PerMonth string // decimal, "" where unknown
	Currency string
	Note     string // what else a person should know, cleaned: "at least $1.20 a month"
}

// Can says what a provider can do for an instance.
type Can struct {
	Start, Stop, Destroy, Snapshot bool
	StopKeepsCharging              string // "" or a sentence: what stopping does not end
	StopMayLose                    string // "" or a sentence: what a stop may lose for good, such as the place on the GPU
}

// StopNote is what a person reads before a stop: all that it does not end, and
// all that it may lose; "" where there is nothing.
func (c Can) StopNote() string {
	if c.StopKeepsCharging == "" || c.StopMayLose == "" {
		return c.StopKeepsCharging + c.StopMayLose
	}
	return c.StopKeepsCharging + "; " + c.StopMayLose
}

// ErrUnsupported is returned by an action that Can excludes.
var ErrUnsupported = errors.New("not supported by this provider")

// Provider acts on instances by the provider's own id. Every call may be retried
// with the same arguments. Stop and Destroy return when the provider accepted;
// only Status proves what became of it.
type Provider interface {
	Kind() string
	Can() Can
	// Status returns Gone, not an error, where the instance does not exist; an
	// error means that nothing is known.
	Status(ctx context.Context, id string) (Status, error)
	Start(ctx context.Context, id string) error
	Stop(ctx context.Context, id string) error
	Destroy(ctx context.Context, id string) error
	Snapshot(ctx context.Context, id, name string) (Snapshot, error)
	// Leftovers lists what goes on costing money after the given state (Stopped
	// or Gone); ErrUnsupported where the provider cannot tell.
	Leftovers(ctx context.Context, id string, after State) ([]Leftover, error)
}
