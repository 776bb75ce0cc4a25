package command

import (
	"slices"

	"github.com/spf13/cobra"

	"rentop/remote/agent/rentop-agent/services"
	"rentop/remote/store/hand"
)

// agentCommand is rentop as its own helper on an instance, when it was built from
// source: what the program rentop-agent is to a release.
func (a *app) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "agent serve SERVICE",
		Short:              "Run on an instance as rentop's helper; not for people",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			code := 0
			if slices.Equal(args, []string{"serve", "store"}) { // rentop-store's, to a release
				code = hand.Main(cmd.Context(), args)
			} else {
				code = services.Main(cmd.Context(), []string{"agent"}, args)
			}
			if code != 0 {
				return exitWith(code)
			}
			return nil
		},
	}
}
