package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"rentop/session"
)

func (a *app) rmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "Take an instance out of the config; the machine itself is not touched",
		Long: "Takes an instance out of the config and forgets its host key and kept password. The\n" +
			"machine goes on, and so does its bill: to give it back, use rentop release NAME.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.fleet(cmd.Context(), func(f *session.Fleet) error {
				if err := f.Remove(args[0]); err != nil {
					return err
				}
				fmt.Fprintf(a.Out, "removed %s from %s\n", args[0], f.ConfigFile())
				a.note("the machine was not touched: if it still runs, it still costs money")
				return nil
			})
		},
		ValidArgsFunction: a.instanceNames,
	}
}
