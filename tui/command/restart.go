package command

import (
	"github.com/spf13/cobra"

	"rentop/session"
)

func (a *app) restartCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "restart NAME JOB [flags]",
		Short: "Run an ended job's command once more, as a new job",
		Args:  cobra.ExactArgs(2),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			j, err := s.RestartJob(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return a.printJob(jobOf(s.Name(), j), *asJSON)
		})
	}
	c.ValidArgsFunction = a.jobNames
	return a.connects(c)
}
