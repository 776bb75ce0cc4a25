package tui

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"rentop/remote/gpu"
	"rentop/session"
	"rentop/session/release"
)

// TestMain is the tests, or with RENTOP_TUI_SAMPLE the screen over a hand-made
// fleet, for the tests that need a real terminal and for eyes.
func TestMain(m *testing.M) {
	views := map[string]func() *session.FleetView{
		"sample": sample, "trouble": trouble, "empty": func() *session.FleetView { return &session.FleetView{} },
		"release": func() *session.FleetView { return inRelease(release.Waiting) },
		"busy":    func() *session.FleetView { return crowd(20, 2) },
	}
	if v := views[os.Getenv("RENTOP_TUI_SAMPLE")]; v != nil {
		f := newFake(v())
		f.log = "loading\rloading 50%\rloading done\nepoch 1 \x1b[32mloss 2.1\x1b[0m\n进度 完成\n"
		if os.Getenv("RENTOP_TUI_SAMPLE") == "busy" {
			go f.live()
		}
		if err := Run(context.Background(), f, Options{Theme: os.Getenv("RENTOP_TUI_THEME"), Now: func() time.Time { return noon }}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// live changes each session once a second, one after the other, as samples come in.
func (f *fake) live() {
	for i := 0; ; i++ {
		old := f.View()
		v := *old
		v.Sessions = append([]session.View(nil), old.Sessions...)
		s := &v.Sessions[i%len(v.Sessions)]
		smp := *s.Sample
		smp.GPUs = append([]gpu.GPU(nil), smp.GPUs...)
		smp.GPUs[0].Util = gpu.Of(float64(i % 100))
		s.Sample = &smp
		s.History.Mean = append(s.History.Mean[1:len(s.History.Mean):len(s.History.Mean)], float64(i%100))
		f.set(&v)
		time.Sleep(time.Second / time.Duration(len(v.Sessions)))
	}
}
