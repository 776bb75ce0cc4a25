package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/session/phrase"
)

// rung is what a view makes the terminal do.
func rung(d *driver, v *session.FleetView) string {
	d.a().v = v
	cmd := d.a().ring()
	if cmd == nil {
		return ""
	}
	raw, is := cmd().(tea.RawMsg)
	if !is {
		d.t.Fatalf("ring gives %T", cmd())
	}
	return fmt.Sprint(raw.Msg)
}

func (d *driver) a() *app { return d.app }

// An alarm rings once while it lasts; what an instance says cannot leave its sequence.
func TestRing(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	if got := rung(d, sample()); got != "" {
		t.Errorf("nobody asked for it, and it rings: %q", got)
	}
	d.opt.Ring = Ring{Bell: true, Desktop: true, Least: session.Warn}
	if got := rung(d, sample()); got != "\x1b]9;rentop: 4090-data: has been idle for 24 min at ¥4.98/h and holds 12 files that exist nowhere else\x1b\\\a" {
		t.Errorf("rings %q", got)
	}
	if got := rung(d, sample()); got != "" {
		t.Errorf("rings again: %q", got)
	}
	v := sample()
	v.Sessions[0].Alerts = []session.Alert{{ID: "memory", Level: session.Info, Text: phrase.Say("alert.memory", 0, 98)},
		{ID: "job x", Level: session.Warn, Text: phrase.Text{{ID: "alert.job.failed", Args: []string{"\x1b\\\x07\x1b]0;evil\x07", "1"}}}}, {ID: "gpu0", Level: session.Urgent, Text: phrase.Say("alert.gpu", 0, "lost")}}
	got := rung(d, v)
	if !strings.Contains(got, "a100-tune: GPU 0: lost (and 1 more)") || strings.Count(got, "\x1b") != 2 || strings.Count(got, "\a") != 1 {
		t.Errorf("rings %q", got)
	}
	v = sample()
	v.Sessions[1].Alerts = nil
	if got := rung(d, v); got != "" {
		t.Errorf("an end rings %q", got)
	}
	if got := rung(d, sample()); !strings.Contains(got, "idle") {
		t.Errorf("when it comes back: %q", got)
	}
	d.opt.Ring.Desktop = false
	v = sample()
	v.Sessions[2].Alerts = []session.Alert{{ID: "x", Level: session.Urgent, Text: phrase.Text{{ID: "alert.gpu", Args: []string{"\x1b]9;evil\a", "y"}}}}}
	if got := rung(d, v); got != "\a" {
		t.Errorf("only the bell: %q", got)
	}
}
