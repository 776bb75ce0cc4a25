package command

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/config"
)

// jobNames completes an instance, then one of its jobs as the
// ledger knows them: it never connects.
func (a *app) jobNames(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.instanceNames(cmd, args, typed)
	}
	fleet, err := a.open(cmd.Context(), silent{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer fleet.Close()
	s, err := fleet.Session(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names, err := s.KnownJobs(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// anyInstances completes every word as instanceNames does the first.
func (a *app) anyInstances(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.instanceNames(cmd, nil, typed)
}

// instanceNames completes the first word of a command from the config alone: a
// press of Tab must open no connection.
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
