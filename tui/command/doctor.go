package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor NAME [flags]",
		Short: "Say what an instance has, what it lacks, and what that means",
		Args:  cobra.ExactArgs(1),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			found, err := s.Doctor(cmd.Context())
			if err != nil {
				return err
			}
			type line struct {
				OK   bool   `json:"ok"`
				What string `json:"what"`
				So   string `json:"so"`
			}
			lines := make([]line, 0, len(found))
			for _, f := range found {
				lines = append(lines, line(f))
			}
			if *asJSON {
				return printJSON(a.Out, lines)
			}
			for _, l := range lines {
				mark := "ok  "
				if !l.OK {
					mark = "miss"
				}
				text := l.What
				if l.So != "" {
					text += ": " + l.So
				}
				if _, err := fmt.Fprintf(a.Out, "%s  %s\n", mark, remote.Clean(text)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}
