package command

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/config"
)

// instanceNames completes the first word of a command from the config alone: a
// press of Tab must not open a ledger or a connection.
func (a *app) instanceNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	dirs, err := session.DefaultDirs()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	file, err := config.Load(filepath.Join(dirs.Config, "config.toml"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(file.Instance)), cobra.ShellCompDirectiveNoFileComp
}
