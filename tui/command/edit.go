package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"rentop/session"
)

func (a *app) editCommand() *cobra.Command {
	var d details
	var rename, line string
	c := &cobra.Command{
		Use:     "edit NAME [flags]",
		Short:   "Change an instance; what it has cost so far stays as it was",
		Example: "  rentop edit a100 --price 7.50/h\n  rentop edit a100 --ssh 'ssh -p 2222 root@new.example' --rename a100-b",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.fleet(cmd.Context(), func(f *session.Fleet) error {
				in, err := f.Instance(args[0])
				if err != nil {
					return err
				}
				if cmd.Flags().NFlag() == 0 {
					return badUsage("nothing to change: give flags, or edit %s by hand", f.ConfigFile())
				}
				if rename != "" {
					in.Name = rename
				}
				if line != "" {
					login([]string{line}, &in)
				}
				if err := d.apply(cmd, &in); err != nil {
					return err
				}
				if err := f.Edit(args[0], in); err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.Out, "changed %s (%s)\n", in.Name, f.ConfigFile())
				return err
			})
		},
	}
	c.ValidArgsFunction = a.instanceNames
	c.Flags().StringVar(&rename, "rename", "", "its new `NAME`; its history goes with it")
	c.Flags().StringVar(&line, "ssh", "", "its new login `LINE`")
	d.flags(c.Flags())
	return c
}
