package tui

import (
	"math"
	"testing"
	"time"

	"rentop/session"
	"rentop/session/phrase"
)

// The dialog arms what it says; what cannot be read stays in it, with the reason.
func TestGuardDialog(t *testing.T) {
	d := drive(t, sample(), "en", 100, 30)
	d.press("enter", "w").see("Guard a100-tune", "20m", "stop (or a command there)")
	d.press("enter").see("Say when")
	d.paste("soon").press("enter").see("Idle is a time such as 20m")
	for range "soon" {
		d.press("backspace")
	}
	d.paste("20m").press("ctrl+s").heard(`arm a100-tune 20m0s "" ""`).see("a100-tune: the guard is armed").not("Say when")
	d.press("W").see("a100-tune has no guard")
	v := sample()
	v.Sessions[0].Guard = &session.Guard{Phase: "watching", Armed: true, SeenAt: noon, Text: phrase.Say("guard.idle", "20 min")}
	d.f.set(v)
	d.send(changedMsg{})
	d.press("W").heard("disarm a100-tune").see("the guard is off")
}

// A rule that cannot be armed is an error in the dialog.
func TestGuardRefused(t *testing.T) {
	d := drive(t, sample(), "zh", 100, 30)
	d.f.fail = errNoGuard{}
	d.press("enter", "w").paste("20m").press("ctrl+s").see("守护", "it cannot stop itself")
}

type errNoGuard struct{}

func (errNoGuard) Error() string { return "it cannot stop itself" }

// Armed, old, in doubt and gone look different; of none nothing is said.
func TestGuardLine(t *testing.T) {
	seen := noon.Add(-5 * time.Second)
	for _, c := range []struct {
		g    *session.Guard
		want string
	}{
		{nil, ""}, {&session.Guard{}, ""}, {&session.Guard{Phase: "off"}, ""},
		{&session.Guard{Phase: "watching", Armed: true, SeenAt: seen, Text: phrase.Say("guard.idle", "20 min")}, "guard armed · idle for 20 min"},
		{&session.Guard{Phase: "watching", Armed: true, SeenAt: noon.Add(-time.Hour), Text: phrase.Say("guard.idle", "20 min")}, "read back 1h00m ago"},
		{&session.Guard{Phase: "watching", Problem: phrase.Say("guard.gone"), Text: phrase.Say("guard.gone")}, "guard not armed · the guard that was armed is gone"},
	} {
		v := sample()
		v.Sessions[0].Guard = c.g
		d := drive(t, v, "en", 120, 40)
		d.press("enter")
		if c.want != "" {
			d.see(c.want)
		} else {
			d.not("guard armed", "guard not armed")
		}
	}
}

// The hours away are a line under the cards; a short or silent past is none.
func TestDay(t *testing.T) {
	day := make([]float64, 720)
	for i := range day {
		if day[i] = 90; i < 300 {
			day[i] = math.NaN()
		} else if i < 500 {
			day[i] = 0
		}
	}
	v := sample()
	v.Sessions[0].Day = session.History{Step: 2 * time.Minute, Mean: day}
	drive(t, v, "en", 100, 30).press("enter").see("the last 14h00m ▁", "▇▇▇")
	v.Sessions[0].Day.Mean = day[:310]
	drive(t, v, "en", 100, 30).press("enter").not("the last")
	if got := squeeze([]float64{1, 3, math.NaN(), math.NaN(), 5}, 2); got[0] != 2 || got[1] != 5 {
		t.Errorf("%v", got)
	}
}
