package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rentop/remote"
)

// Lines are a person's own shell lines for an instance; "" is not possible. They
// run on this computer with sh -c (cmd /C on Windows) and find RENTOP_ID,
// RENTOP_NAME and, where it applies, RENTOP_SNAPSHOT (the wanted name) or
// RENTOP_AFTER ("stopped" or "gone", for Leftovers) in their environment.
//
// Status prints JSON, {"state": "running", "started_at": "2026-11-30T10:00:00Z",
// "billed": true, "detail": "…"} of which only the state must be there, or one
// word, or nothing. The exit code is 0; 3 and 4 say stopped and gone. Nothing
// printed and 0 says running. Any other code says that nothing is known.
//
// The other lines succeed with exit code 0, also when what they do was done
// before. Snapshot may print the snapshot's id or JSON {"id": …, "name": …,
// "per_month": "1.20", "currency": "USD"}; Leftovers prints a JSON list of {"kind": …,
// "id": …, "per_month": …, "currency": …}.
type Lines struct {
	Status, Start, Stop, Destroy, Snapshot, Leftovers string
}

// CommandOptions describe a provider made of shell lines.
type CommandOptions struct {
	Name             string // the instance's, for RENTOP_NAME
	Lines            Lines
	StopKeepsCharges string        // see Can.StopKeepsCharging
	Timeout          time.Duration // of one line; 0: a minute for questions, ten for actions
}

// command is a provider made of shell lines. It keeps no state.
type command struct{ o CommandOptions }

const (
	questionTimeout = time.Minute
	actionTimeout   = 10 * time.Minute
)

// Command makes a provider of shell lines. Without a status line nothing that
// the others do could be proven, so there must be one.
func Command(o CommandOptions) (Provider, error) {
	if strings.TrimSpace(o.Lines.Status) == "" {
		return nil, fmt.Errorf("the command provider of %q has no status line: without one nobody can tell whether a stop worked, add status = \"…\"", o.Name)
	}
	return &command{o}, nil
}

func (c *command) Kind() string { return "command" }

func (c *command) Can() Can {
	l := c.o.Lines
	return Can{Start: l.Start != "", Stop: l.Stop != "", Destroy: l.Destroy != "", Snapshot: l.Snapshot != "", StopKeepsCharging: c.o.StopKeepsCharges}
}

func (c *command) Status(ctx context.Context, id string) (Status, error) {
	out, err := c.run(ctx, "status", c.o.Lines.Status, id, questionTimeout)
	code := 0
	var exit *exitError
	if errors.As(err, &exit) && (exit.code == exitStopped || exit.code == exitGone) {
		code, err = exit.code, nil
	}
	if err != nil {
		return Status{}, err
	}
	s, err := parseStatus(out, code)
	if err != nil {
		return Status{}, c.failed("status", id, err)
	}
	return s, nil
}

func (c *command) Start(ctx context.Context, id string) error {
	_, err := c.run(ctx, "start", c.o.Lines.Start, id, actionTimeout)
	return err
}

func (c *command) Stop(ctx context.Context, id string) error {
	_, err := c.run(ctx, "stop", c.o.Lines.Stop, id, actionTimeout)
	return err
}

func (c *command) Destroy(ctx context.Context, id string) error {
	_, err := c.run(ctx, "destroy", c.o.Lines.Destroy, id, actionTimeout)
	return err
}

func (c *command) Snapshot(ctx context.Context, id, name string) (Snapshot, error) {
	out, err := c.run(ctx, "snapshot", c.o.Lines.Snapshot, id, actionTimeout, "RENTOP_SNAPSHOT="+name)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := parseSnapshot(out, name)
	if err != nil {
		return Snapshot{}, c.failed("snapshot", id, fmt.Errorf("the line succeeded, but %w", err))
	}
	return s, nil
}

func (c *command) Leftovers(ctx context.Context, id string, after State) ([]Leftover, error) {
	out, err := c.run(ctx, "leftovers", c.o.Lines.Leftovers, id, questionTimeout, "RENTOP_AFTER="+string(after))
	if err != nil {
		return nil, err
	}
	list, err := parseLeftovers(out)
	if err != nil {
		return nil, c.failed("leftovers", id, err)
	}
	return list, nil
}

// run runs one line to its end and gives what it printed.
func (c *command) run(ctx context.Context, what, line, id string, timeout time.Duration, env ...string) ([]byte, error) {
	if line == "" {
		return nil, c.failed(what, id, fmt.Errorf("no %s line is configured: %w", what, ErrUnsupported))
	}
	if id == "" || strings.ContainsRune(id, 0) {
		return nil, c.failed(what, id, errors.New("the instance has no usable id: add id = \"…\""))
	}
	if c.o.Timeout > 0 {
		timeout = c.o.Timeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the line did not end within %v and was killed", timeout))
	defer cancel()
	out, err := runLine(ctx, line, append(env, "RENTOP_ID="+id, "RENTOP_NAME="+c.o.Name))
	if err != nil {
		return out, c.failed(what, id, err) // out: for an exit code that is an answer
	}
	return out, nil
}

// failed names the provider, the action and the instance. The line itself is
// left out: it may hold a secret.
func (c *command) failed(what, id string, err error) error {
	return fmt.Errorf("provider command: %s of %q (%s): %w", what, remote.Short(id, 80), remote.Short(c.o.Name, 80), err)
}
