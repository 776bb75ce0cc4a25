package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man [COMMAND]",
		Short:   "Print the manual page of rentop or of a command",
		Example: "  rentop man release | man -l -",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			page, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return badUsage("there is no command %q: rentop --help lists them", strings.Join(args, " "))
			}
			page.DisableAutoGenTag = true
			return doc.GenMan(page, &doc.GenManHeader{Section: "1", Source: "rentop " + a.Version}, a.Out)
		},
	}
}
