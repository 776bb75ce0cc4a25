package command

import (
	"github.com/spf13/cobra"

	"rentop/session"
)

func (a *app) killCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "kill NAME JOB [flags]",
		Short: "End a job with all its children",
		Args:  cobra.ExactArgs(2),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			j, err := s.KillJob(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return a.printJob(jobOf(s.Name(), j), *asJSON)
		})
	}
	c.ValidArgsFunction = a.jobNames
	return a.connects(c)
}

// printJob is one job after something was done to it.
func (a *app) printJob(j job, asJSON bool) error {
	if asJSON {
		return printJSON(a.Out, j)
	}
	return a.printJobs([]job{j}, false)
}
