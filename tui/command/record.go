package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/record"
	"rentop/sync"
)

func (a *app) recordCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "record FILE [NAME…] [flags]",
		Short: "Record what the instances show, for replay",
		Long: "Watches the instances (all, or those named) and writes what a screen would show into a new file, once\n" +
			"a second, until Ctrl-C: states, figures, jobs with their last line, alarms and costs; no keys and no logs.\n" +
			"With --redact names, hosts, users, paths and commands are stand-ins, the same for the same.",
		Args: cobra.MinimumNArgs(1),
	}
	redact := c.Flags().Bool("redact", false, "hide names, hosts, users, paths, commands and last lines")
	limit := c.Flags().Duration("for", 0, "end after this `TIME`, as in 8h")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := record.Create(args[0], record.Options{Rentop: a.Version, Redact: *redact})
		if err != nil {
			return err
		}
		fleet, err := a.watched(cmd.Context(), args[1:])
		if err != nil {
			return errors.Join(err, w.Discard())
		}
		ctx := cmd.Context()
		if *limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *limit)
			defer cancel()
		}
		a.note("recording %s to %s until Ctrl-C; watch it with: rentop replay %s", counted(len(fleet.Names()), "instance"), args[0], args[0])
		n, err := recordViews(ctx, fleet, w)
		err = errors.Join(err, fleet.Close(), w.Close())
		a.note("recorded %s: %s, %s", args[0], counted(n, "view"), sync.Size(w.Size()))
		return err
	}
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault // a file
		}
		return a.anyInstances(cmd, args, typed)
	}
	return a.connects(c)
}

// recordViews adds a view a second, where there is a new one, until ctx ends.
func recordViews(ctx context.Context, f *session.Fleet, w *record.Recorder) (n int, err error) {
	var last *session.FleetView
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if v := f.View(); v != last {
			if err := w.Add(v); err != nil {
				return n, err
			}
			last = v
			n++
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return n, nil
		}
	}
}
