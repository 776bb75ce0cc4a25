package command

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/tui"
)

// howToLeave is said before the terminal is given away.
func howToLeave(kept bool) string {
	if kept {
		return "leave: Ctrl-b d keeps what runs here; Enter ~ . cuts the connection"
	}
	return "leave: exit, or Enter ~ . where nothing answers; without tmux there, both end what runs in this shell"
}

func (a *app) shellCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "shell NAME [JOB]",
		Short: "Open the instance's shell, or attach to a running job",
		Long: "Gives this terminal to the instance's shell: inside tmux where there is one, so that it is still\n" +
			"there after a cut. With JOB it attaches to that job. Enter ~ . leaves, also where nothing answers.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, isIn := a.In.(*os.File)
			out, isOut := a.Out.(*os.File)
			if !isIn || !isOut || !isTerminal(in) || !isTerminal(out) {
				return badUsage("a shell needs a terminal; without one: rentop exec %s -- COMMAND", args[0])
			}
			return a.session(cmd.Context(), args[0], func(s *session.Session) error {
				if err := s.Ready(cmd.Context()); err != nil { // asks while the terminal is still ours
					return err
				}
				a.note("%s", howToLeave(len(args) == 2 || s.KeepsShell(cmd.Context())))
				code, err := tui.HandOver(cmd.Context(), in, out, func(ctx context.Context, t remote.TerminalOptions) (int, error) {
					if len(args) == 2 {
						return s.JobTerminal(ctx, args[1], t)
					}
					return s.Terminal(ctx, t)
				})
				if err == nil && code != 0 {
					return exitWith(code)
				}
				return err
			})
		},
		ValidArgsFunction: a.jobNames,
	}
	return a.connects(c)
}
