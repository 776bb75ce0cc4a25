package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rentop/remote/gpu"
	"rentop/session"
	"rentop/sync"
)

func (a *app) gpuCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "gpu NAME [flags]",
		Short: "Show what an instance's GPUs and host are doing",
		Args:  cobra.ExactArgs(1),
	}
	asJSON := jsonFlag(c)
	watch := c.Flags().Bool("watch", false, "go on, a sample a second; with --json one line each")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			if *watch {
				return a.watchGPU(cmd, s, *asJSON)
			}
			sample, err := s.Sample(cmd.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(a.Out, sample)
			}
			return printSample(a.Out, sample)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

func (a *app) watchGPU(cmd *cobra.Command, s *session.Session, asJSON bool) error {
	clear := ""
	if isTerminal(a.Out) && !asJSON {
		clear = "\x1b[H\x1b[J" // home, and clear what is below
	}
	err := s.Samples(cmd.Context(), func(sample gpu.Sample) {
		if asJSON {
			if line, err := json.Marshal(sample); err == nil {
				fmt.Fprintf(a.Out, "%s\n", line)
			}
			return
		}
		var b strings.Builder
		b.WriteString(clear)
		if printSample(&b, &sample) == nil {
			io.WriteString(a.Out, b.String())
		}
	})
	if cmd.Context().Err() != nil {
		return nil // the person has seen enough
	}
	return err
}

// printSample is a sample for a person: a card a row, then processes, then the host.
func printSample(w io.Writer, s *gpu.Sample) error {
	if s.Problem != nil {
		fmt.Fprintf(w, "%s: %s\n", s.Problem.What, s.Problem.Cure)
	}
	if len(s.GPUs) > 0 {
		t := newTable("GPU", "NAME", "UTIL", "MEMORY", "POWER", "TEMP", "SM MHZ", "THROTTLE").alignRight(2, 3, 4, 5, 6)
		for _, g := range s.GPUs {
			why := strings.Join(g.Throttle, ", ")
			if g.Problem != "" {
				why = g.Problem
			}
			t.add(fmt.Sprint(g.Index), g.Name, value(g.Util, "%.0f%%"), used(g.MemUsed, g.MemTotal),
				value(g.Power, "%.0f")+"/"+value(g.PowerLimit, "%.0f W"), value(g.Temp, "%.0f°C"), value(g.ClockSM, "%.0f"), why)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if len(s.Processes) > 0 {
		t := newTable("GPU", "PID", "USER", "MEMORY", "COMMAND").alignRight(1, 3)
		for _, p := range s.Processes {
			index := "?"
			if p.GPUIndex >= 0 {
				index = fmt.Sprint(p.GPUIndex)
			}
			t.add(index, fmt.Sprint(p.PID), p.User, size(p.Mem), p.Command)
		}
		fmt.Fprintln(w)
		if err := t.print(w); err != nil {
			return err
		}
	}
	rows := session.Hidden(s)
	for _, t := range rows {
		fmt.Fprintln(w, t)
	}
	if len(rows) == 0 && s.Hidden && len(s.Processes) == 0 {
		fmt.Fprintln(w, "\nprocesses hold the GPU, but the container does not show them")
	}
	if src := session.Source(s); len(src) > 0 {
		fmt.Fprintf(w, "\nsource %s\n", src)
	}
	h := s.Host
	_, err := fmt.Fprintf(w, "\ncpu %s of %d cores   load %s   memory %s   net ↓%s/s ↑%s/s\n",
		value(h.CPU, "%.0f%%"), h.CPUs, value(h.Load1, "%.2f"), used(h.MemUsed, h.MemTotal), size(h.NetRx), size(h.NetTx))
	for _, d := range h.Disks {
		if err == nil {
			_, err = fmt.Fprintf(w, "disk %s   %s\n", d.Mount, used(d.Used, d.Total))
		}
	}
	return err
}

// value writes a cell: what was measured, "–" where there is none, "err" where reading it failed.
func value(v gpu.Value, format string) string {
	switch v.State {
	case gpu.OK:
		return fmt.Sprintf(format, v.V)
	case gpu.Failed:
		return "err"
	}
	return "–"
}

func size(v gpu.Value) string {
	if n, ok := v.Get(); ok {
		return sync.Size(int64(n))
	}
	return value(v, "")
}

func used(part, all gpu.Value) string { return size(part) + "/" + size(all) }
