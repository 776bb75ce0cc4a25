package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"rentop/sync"
)

// snapshot keeps what is on an instance as an archive here. A provider's own, which
// costs money, is the command's and the release's to take.
func (a *app) snapshot(instance string) tea.Cmd {
	a.say(info, a.T("snapshot.begun", instance))
	return a.work(func(ctx context.Context) then {
		s, err := a.fleet.Snapshot(ctx, instance)
		return func() tea.Cmd {
			if err != nil {
				a.say(bad, err.Error())
			} else {
				a.say(info, a.T("snapshot.kept", instance, s.Portable.Files, sync.Size(s.Portable.Size), s.ID))
			}
			return nil
		}
	})
}
