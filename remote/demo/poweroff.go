//go:build unix

package demo

// An instance that stops itself, as a guard on it does: demo-poweroff there leaves a
// file, and the fleet pulls the plug.

import (
	"os"
	"path/filepath"
	"time"

	"rentop/remote/provider"
)

const poweroffScript = `#!/bin/sh
# Stops this simulated instance from inside, as AutoDL's shutdown does.
: >"${XDG_RUNTIME_DIR:?}/poweroff"
`

const switchEvery = 300 * time.Millisecond

// watchSwitches stops the instances that ask for it, until the fleet ends.
func (f *Fleet) watchSwitches() {
	t := time.NewTicker(switchEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-f.ctx.Done():
			return
		}
		for _, m := range f.machines {
			_, err := os.Stat(filepath.Join(m.root, "run", "poweroff"))
			if err == nil && m.instance().State == provider.Running {
				_ = rental{f}.Stop(f.ctx, m.id) // asked for again at the next look where it failed
			}
		}
	}
}
