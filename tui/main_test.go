package tui

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"rentop/session"
	"rentop/session/release"
)

// TestMain is the tests, or with RENTOP_TUI_SAMPLE the screen over a hand-made
// fleet, for the tests that need a real terminal and for eyes.
func TestMain(m *testing.M) {
	views := map[string]func() *session.FleetView{
		"sample": sample, "trouble": trouble, "empty": func() *session.FleetView { return &session.FleetView{} },
		"release": func() *session.FleetView { return inRelease(release.Waiting) },
	}
	if v := views[os.Getenv("RENTOP_TUI_SAMPLE")]; v != nil {
		f := newFake(v())
		f.log = "loading\rloading 50%\rloading done\nepoch 1 \x1b[32mloss 2.1\x1b[0m\n进度 完成\n"
		if err := Run(context.Background(), f, Options{Theme: os.Getenv("RENTOP_TUI_THEME"), Now: func() time.Time { return noon }}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
