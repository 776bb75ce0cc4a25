package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print rentop's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.Out, a.versionLine())
			return err
		},
	}
}

func (a *app) versionLine() string {
	return fmt.Sprintf("rentop %s (%s/%s, %s)\n", a.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
