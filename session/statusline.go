package session

import (
	"context"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/remote/tmux"
)

// statusLine is the meter for tmux's status line, while the screen is away.
func (s *Session) statusLine() string {
	v := s.View()
	cost, rate := "?", "?"
	if v.Meter.Cost != nil {
		cost = v.Meter.Cost.String()
	} else if v.Meter.AtLeast != nil {
		cost = "≥ " + v.Meter.AtLeast.String()
	}
	if v.Meter.PerHour != nil {
		rate = v.Meter.PerHour.String()
	}
	line := fmt.Sprintf("%s  %s/h  %s", v.Name, rate, cost)
	for _, a := range v.Alerts {
		if a.Level == Urgent {
			return line + "  ! " + remote.Short(a.Text.String(), 60)
		}
	}
	return line
}

// keepStatusLine rewrites it every few seconds while the person is in the
// terminal. The returned function ends that and waits for it.
func (s *Session) keepStatusLine(ctx context.Context, r remote.Runner) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := ""
		every(ctx, 5*time.Second, func() {
			line := s.statusLine()
			if line == last {
				return
			}
			if _, err := remote.Output(ctx, r, tmux.MeterScript(line)); err == nil {
				last = line
			}
		})
	}()
	return func() { cancel(); <-done }
}
