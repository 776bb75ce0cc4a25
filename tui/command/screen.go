package command

import (
	"context"
	"errors"

	"rentop/session"
)

// screen is rentop without a command.
func (a *app) screen(ctx context.Context) error {
	if err := a.needScreen(); err != nil {
		return err
	}
	dirs, err := session.DefaultDirs()
	if err != nil {
		return err
	}
	fleet, err := session.Open(ctx, session.Options{Dirs: dirs, Live: true})
	if err != nil {
		return err
	}
	return errors.Join(a.Screen(ctx, fleet), fleet.Close())
}

func (a *app) needScreen() error {
	if !isTerminal(a.In) || !isTerminal(a.Out) {
		return badUsage("the screen needs a terminal; without one, use a command such as: rentop ls")
	}
	return nil
}
