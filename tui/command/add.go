package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/config"
)

func (a *app) addCommand() *cobra.Command {
	var d details
	var name string
	c := &cobra.Command{
		Use:   "add 'LINE' --name NAME [flags]",
		Short: "Add an instance by the login line that your platform gives",
		Example: "  rentop add 'ssh -p 41237 root@connect.example' --name a100 --price 8/h --currency CNY\n" +
			"  rentop add root@203.0.113.7:41237 --name b --price '$0.69/h'\n" +
			"  rentop add my-ssh-alias --name c",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := config.Instance{Name: name}
			login(args, &in)
			if err := d.apply(cmd, &in); err != nil {
				return err
			}
			return a.fleet(cmd.Context(), func(f *session.Fleet) error {
				if err := f.Add(in); err != nil {
					return err
				}
				_, err := fmt.Fprintf(a.Out, "added %s (%s)\n", in.Name, f.ConfigFile())
				if in.Rate == nil || in.Rate.PerHour == "" {
					a.note("its price is not known, so its cost is ?: rentop edit %s --price 8/h --currency CNY", in.Name)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "what you call it (`NAME`)")
	d.flags(c.Flags())
	return c
}
