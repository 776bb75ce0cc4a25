package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"rentop/session"
)

func (a *app) startCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "start NAME",
		Short: "Have the provider start a stopped instance",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), args[0], func(s *session.Session) error {
				if err := s.Start(cmd.Context()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(a.Out, "%s is running, says its provider; from now on it costs %s an hour\n", s.Name(), orUnknown(s.View().Meter.Running))
				return err
			})
		},
		ValidArgsFunction: a.instanceNames,
	}
}
