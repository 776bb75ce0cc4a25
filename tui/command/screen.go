package command

import (
	"context"
	"errors"
	"runtime"

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
	o := session.Options{Dirs: dirs, Live: true, Held: true}
	defer frugal(&o)()
	fleet, err := session.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(a.Screen(ctx, fleet), fleet.Close())
}

// frugal keeps a screen that only watches on one processor: a sample that is
// handed on need not wake a second one for it. Transfers and releases get them all.
func frugal(o *session.Options) (restore func()) {
	all := runtime.GOMAXPROCS(1)
	o.Working = func(busy bool) {
		if busy {
			runtime.GOMAXPROCS(all)
		} else {
			runtime.GOMAXPROCS(1)
		}
	}
	return func() { runtime.GOMAXPROCS(all) }
}

func (a *app) needScreen() error {
	if !isTerminal(a.In) || !isTerminal(a.Out) {
		return badUsage("the screen needs a terminal; without one, use a command such as: rentop ls")
	}
	return nil
}
