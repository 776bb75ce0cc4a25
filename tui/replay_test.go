package tui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/session/phrase"
	"rentop/session/record"
	"rentop/session/release"
)

// recording is a player of views, a second apart.
func recording(t *testing.T, views ...*session.FleetView) *record.Player {
	t.Helper()
	var file bytes.Buffer
	w, err := record.New(&file, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range views {
		v.At = noon.Add(time.Duration(i) * time.Second)
		if err := w.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	r, err := record.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p, err := record.NewPlayer(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// driveReplay plays a person before a recording that runs.
func driveReplay(t *testing.T, lang string, w, h int, views ...*session.FleetView) *driver {
	p := recording(t, views...)
	d := drive(t, p.View(), lang, w, h)
	d.opt.player, d.opt.Readonly, d.app.fleet, d.clock = p, true, replayed{p: p}, p.Now
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(t.Context()) }()
	t.Cleanup(func() { <-ended }) // before the recording is closed
	return d
}

// until waits for the player to do what the keys asked for; "no x" is without x.
func (d *driver) until(texts ...string) *driver {
	d.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		d.send(changedMsg{})
		s, there := d.screen(), true
		for _, x := range texts {
			x, gone := strings.CutPrefix(x, "no ")
			there = there && strings.Contains(s, x) != gone
		}
		if there {
			return d
		}
	}
	d.t.Fatalf("not within 10 s: %q\n%s", texts, d.screen())
	return d
}

// body is a screen without header and footer.
func body(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[1:len(lines)-1], "\n")
}

// even gives a made-up history rows of one length, as session's have.
func even(v *session.FleetView) *session.FleetView {
	for i := range v.Sessions {
		h := &v.Sessions[i].History
		h.Mean, h.CPU = wave(60, 40, 20, i), wave(60, 30, 20, i)
		for g := range h.Util {
			h.Util[g] = wave(60, 50, 20, g)
		}
		if h.Mem = nil; h.Step > 0 {
			h.Mem = make([][]float64, len(h.Util))
			for g := range h.Mem {
				h.Mem[g] = wave(60, 50, 20, g)
			}
		} else {
			*h = session.History{}
		}
	}
	return v
}

// A replay shows the same screens.
func TestReplayShowsTheSame(t *testing.T) {
	for _, v := range []*session.FleetView{even(sample()), even(trouble()), even(inRelease(release.Waiting))} {
		for _, keys := range [][]string{{}, {"enter"}, {"enter", "J"}, {"j", "enter"}, {"j", "r"}, {"s"}, {"G", "enter"}} {
			for _, lang := range []string{"en", "zh"} {
				real := drive(t, v, lang, 120, 40)
				again := driveReplay(t, lang, 120, 40, v)
				again.opt.player.Toggle()
				v.At, real.opt.Readonly = noon, true
				real.send(changedMsg{})
				real.press(keys...)
				again.press(keys...)
				if got, want := body(again.screen()), strings.ReplaceAll(body(real.screen()), real.T("why.readonly"), real.T("why.replay")); got != want {
					t.Errorf("after %q in %s:\n%s\nwas\n%s", keys, lang, got, want)
				}
			}
		}
	}
}

func TestReplayKeys(t *testing.T) {
	var views []*session.FleetView
	for i := range 40 {
		v := sample()
		if i >= 20 {
			v.Sessions[0].Alerts = []session.Alert{{ID: "hot", Text: phrase.Say("alert.hot.untold", 7)}}
		}
		views = append(views, v)
	}
	d := driveReplay(t, "en", 120, 40, views...)
	d.press("space").until("replay 11-30 12:00:", "paused", "+10 s")
	d.press("<").until("12:00:00").press("enter").until("a100-tune", "no GPU 7 is slowed down")
	d.press("right").until("12:00:10")
	d.press("right").until("12:00:20", "GPU 7 is slowed down")
	d.press("left").until("12:00:10", "no GPU 7 is slowed down")
	d.press(">").until("12:00:39", "end", "GPU 7 is slowed down")
	d.press("+", "+", "space").until("×4")
}

// Nothing can be done in a replay, by key, paste or palette, and it is said why.
func TestReplayOnlyLooks(t *testing.T) {
	d := driveReplay(t, "en", 120, 40, sample(), sample())
	seen := 0
	try := func() {
		t.Helper()
		for _, x := range d.actions() {
			if looks(x.id) || x.why == nil || len(d.keysOf(x)) == 0 {
				continue
			}
			seen++
			if why := x.why(); !strings.Contains(why, "replay") {
				t.Errorf("%s can be done: %q", x.id, why)
			}
			d.run(x)
			d.see("this is a replay")
		}
	}
	try()
	for _, key := range []string{"enter", "J"} {
		d.press(key)
		try()
	}
	d.press("esc", "s")
	try()
	d.press("esc", "r")
	try()
	d.send(tea.PasteMsg{Content: "ssh -p 22 root@h"})
	d.see("this is a replay")
	if seen < 40 {
		t.Errorf("only %d actions were tried", seen)
	}
	d.press("q")
	if !d.quit {
		t.Error("a replay in which something moves asks before it ends")
	}
	if d.f.heard() != "" {
		t.Errorf("the fleet was asked: %s", d.f.heard())
	}
}
