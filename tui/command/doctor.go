package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
)

func (a *app) doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [NAME] [flags]",
		Short: "Say what an instance has, what it lacks, and what that means",
		Long:  "Says what an instance has, what it lacks, and what that means. Without a name it says\nwhich providers' API keys are found on this computer, and asks nobody anything.",
		Args:  cobra.MaximumNArgs(1),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return a.fleet(cmd.Context(), func(f *session.Fleet) error {
				var found []session.Finding
				for _, k := range f.DoctorKeys() {
					found = append(found, k.Finding)
				}
				return a.printFindings(found, *asJSON)
			})
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			found, err := s.Doctor(cmd.Context())
			if err != nil {
				return err
			}
			return a.printFindings(found, *asJSON)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

func (a *app) printFindings(found []session.Finding, asJSON bool) error {
	type line struct {
		OK   bool   `json:"ok"`
		What string `json:"what"`
		So   string `json:"so"`
	}
	lines := make([]line, 0, len(found))
	for _, f := range found {
		lines = append(lines, line{f.OK, f.What.String(), f.So.String()})
	}
	if asJSON {
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
}
