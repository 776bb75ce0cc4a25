package command

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
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
			var text bytes.Buffer
			if err := doc.GenMan(page, &doc.GenManHeader{Section: "1", Source: "rentop " + a.Version}, &text); err != nil {
				return err
			}
			_, err = a.Out.Write(plainFlags(page, text.Bytes()))
			return err
		},
	}
}

// manFlag is a flag as cobra's page writes it: with its default, --stop[=false].
var manFlag = regexp.MustCompile(`\\fB--([a-z-]+)\\fP(\[=[^\]\n]*\]|=\S*)`)

// plainFlags writes flags as --help does: --stop, --name NAME.
func plainFlags(c *cobra.Command, page []byte) []byte {
	return manFlag.ReplaceAllFunc(page, func(text []byte) []byte {
		name := string(manFlag.FindSubmatch(text)[1])
		out := `\fB--` + name + `\fP`
		if f := c.Flag(name); f != nil {
			if value, _ := pflag.UnquoteUsage(f); value != "" {
				out += " " + value
			}
		}
		return []byte(out)
	})
}
