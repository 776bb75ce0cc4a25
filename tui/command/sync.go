package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/sync"
)

func (a *app) syncCommand() *cobra.Command {
	c := &cobra.Command{Use: "sync", Short: "Take back what a transfer has removed", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.AddCommand(a.undoCommand())
	for _, sub := range c.Commands() {
		sub.DisableFlagsInUseLine = true
		checkArgs(sub)
	}
	return c
}

func (a *app) undoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "undo NAME [DST] [flags]",
		Short: "Put back what the last push --delete removed on an instance",
		Long: "What --delete removes on an instance is kept in a trash beside it until its room is needed. This puts\n" +
			"back what the last transfer into DST removed; again, and the one before is put back. Nothing is\n" +
			"overwritten: what has something else in its place by now stays in the trash and is named. Without DST\n" +
			"the instance's first sync pair is taken.",
		Example: "  rentop sync undo a100 project",
		Args:    cobra.RangeArgs(1, 2),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		dst := ""
		if len(args) == 2 {
			dst = args[1]
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			restored, err := s.UndoTransfer(cmd.Context(), dst)
			var left *sync.UndoError
			if err != nil && !errors.As(err, &left) {
				return err
			}
			return errors.Join(a.printUndo(s.Name(), restored, left, *asJSON), err)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

func (a *app) printUndo(name string, restored []string, left *sync.UndoError, asJSON bool) error {
	clean := make([]string, len(restored))
	for i, p := range restored {
		clean[i] = remote.Clean(p)
	}
	failed := []failure{}
	if left != nil {
		for _, f := range left.Left {
			failed = append(failed, failure{remote.Clean(f.Path), remote.Clean(f.Err.Error())})
		}
	}
	if asJSON {
		return printJSON(a.Out, map[string]any{"restored": clean, "failed": failed})
	}
	for _, f := range failed {
		a.note("not put back: %s: %s", f.Path, f.Error)
	}
	_, err := fmt.Fprintf(a.Out, "put back %s on %s\n", commas(len(clean)), name)
	return err
}
