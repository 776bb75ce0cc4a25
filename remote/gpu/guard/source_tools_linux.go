package guard

// Samples from another maker's tool: it is started anew for each, because none of
// them keeps telling.

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"rentop/remote/gpu/sample"
	"rentop/remote/gpu/vendors"
)

const (
	// toolEvery is long, because such a tool takes up to a second of a core; a sample is
	// not stale before the next one but one.
	toolEvery  = 6 * time.Second
	toolWithin = 25 * time.Second
	toolOutput = 1 << 20
)

// tool is one that is there.
type tool struct {
	name, path string
	commands   []vendors.Command
}

func otherTool() (tool, bool) {
	for _, t := range vendors.Tools {
		if path, err := exec.LookPath(t.Name); err == nil {
			return tool{t.Name, path, t.Commands}, true
		}
	}
	return tool{}, false
}

// fromTool asks it again and again, until it does not answer with cards.
func (s *source) fromTool(ctx context.Context, t tool, emit func(sample.Sample)) error {
	next := time.NewTicker(toolEvery)
	defer next.Stop()
	for {
		parts := map[byte]string{}
		code := 0
		for _, c := range t.commands {
			out, err := ask(ctx, t.path, c.Args)
			if c.Part == vendors.Metric && err != nil {
				code = -1
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
					code = exit.ExitCode()
				}
			}
			parts[c.Part] = out
		}
		cards, ok := vendors.Read(t.name, func(p byte) string { return parts[p] })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !ok {
			return errors.New(vendors.Problem(t.name, code, parts[vendors.Metric]).What)
		}
		emit(sample.Sample{TakenAt: time.Now(), Source: t.name, Driver: cards.Driver, GPUs: cards.GPUs, Processes: cards.Procs, Host: s.host.Read()})
		select {
		case <-next.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask runs one call, bounded in time and length, and gives what it printed; where that
// is nothing, what it complained of. One that hangs in the driver cannot be killed:
// nobody waits for it.
func ask(ctx context.Context, path string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolWithin)
	defer cancel()
	var out, bad printed
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &bad
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process
	select {
	case err := <-ended:
		if out.Len() == 0 {
			return bad.String(), err
		}
		return out.String(), err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// printed keeps a tool's output; too much of it is no answer.
type printed struct{ strings.Builder }

func (p *printed) Write(b []byte) (int, error) {
	if p.Len()+len(b) > toolOutput {
		return 0, errors.New("it prints too much")
	}
	return p.Builder.Write(b)
}
