// Command rentop is the cockpit for GPUs that you rent by the hour.
// docs/architecture.md says how its parts fit together.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"rentop/session"
	"rentop/session/config"
	"rentop/session/record"
	"rentop/tui"
	"rentop/tui/command"
)

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version string

// memory is where the garbage collector begins to work harder, in bytes: strong
// compression for a fast link may want more than a laptop should give.
const memory = 250 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	os.Exit(command.Run(ctx, command.Program{
		Version: versionName(),
		In:      os.Stdin,
		Out:     os.Stdout,
		Err:     os.Stderr,
		Now:     time.Now,
		Screen:  screen,
		Replay:  replay,
	}, os.Args[1:]))
}

// screen shows the fleet as the config says it should look.
func screen(ctx context.Context, f *session.Fleet) error {
	file := f.Config()
	ui := file.UI
	if action, what := tui.CheckKeys(ui.Keys); what != "" {
		return file.Fault(what, "ui", "keys", action)
	}
	return tui.Run(ctx, tui.Over(f), tui.Options{
		Theme: ui.Theme, Lang: ui.Language, Glyphs: ui.Glyphs, Readonly: ui.Readonly, Keys: ui.Keys,
		Drawn: f.Begin,
		Ring:  tui.Ring{Bell: file.Alarms.Bell, Desktop: file.Alarms.Desktop, Least: session.Level(file.Alarms.Level())},
	})
}

// replay shows a recording as the config says screens should look; without one that
// can be read, as they look of themselves.
func replay(ctx context.Context, p *record.Player) error {
	var ui config.UI
	if dirs, err := session.DefaultDirs(); err == nil {
		if file, err := config.Load(filepath.Join(dirs.Config, "config.toml")); err == nil {
			ui = file.UI
		}
	}
	if action, _ := tui.CheckKeys(ui.Keys); action != "" {
		ui.Keys = nil
	}
	return tui.Replay(ctx, p, tui.Options{Theme: ui.Theme, Lang: ui.Language, Glyphs: ui.Glyphs, Keys: ui.Keys})
}

// versionName is what the build said, else what the go command knows.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
