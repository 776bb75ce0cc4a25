package tui

import (
	"strings"
	"testing"
	"time"

	"rentop/session"
	"rentop/session/phrase"
)

// alarmed is sample with alarms that last, are silenced, are over, or were not seen
// to end.
func alarmed() *session.FleetView {
	v := sample()
	said := func(id string, level session.Level, t phrase.Text, ago, took time.Duration) session.PastAlert {
		p := session.PastAlert{Alert: session.Alert{ID: id, Level: level, Text: t, Since: noon.Add(-ago)}}
		if took > 0 {
			p.Ended = p.Since.Add(took)
		}
		return p
	}
	disk := said("disk /root/data", session.Warn, phrase.Say("alert.disk", "/root/data", 96), 30*time.Minute, 0)
	disk.Silenced = noon.Add(40 * time.Minute)
	old := said("runway", session.Urgent, phrase.Say("alert.runway", "1 h 12 min").Then(phrase.Say("alert.runway.job")), 26*time.Hour, 0)
	old.Unseen = true
	v.Sessions[0].PastAlerts = []session.PastAlert{old, said("hot", session.Warn, phrase.Say("alert.hot.at", 0, 88).Then(phrase.Say("throttle.too hot (driver)")), 2*time.Hour, 7*time.Minute), disk}
	v.Sessions[1].PastAlerts = []session.PastAlert{said("memory", session.Info, phrase.Say("alert.memory", 1, 98), 90*time.Minute, 30*time.Second),
		{Alert: v.Sessions[1].Alerts[0]}, said("job \x1b[31mevil", session.Warn, phrase.Say("alert.job.failed", "\x1b[31mevil", 1), 3*time.Hour, 10*time.Minute)}
	return v
}

func TestAlarmsScreen(t *testing.T) {
	d := drive(t, alarmed(), "en", 120, 40)
	d.press("!").see("alarms", "4090-data", "has been idle for 24 min", "silent to 12:40", "end not seen", "GPU 1 has 98 %", "from level hint")
	d.press("l").see("from level warning").not("GPU 1 has 98 %")
	d.press("l").see("from level urgent").not("the disk at")
	d.press("l", "/", "'disk", "enter").see("the disk at /root/data").not("has been idle")
	d.press("K").heard("keep a100-tune disk /root/data 0s").see("it is said again")
	d.press("esc").see("has been idle")
	d.press("g", "K").heard("keep 4090-data idle 1h0m0s")
	d.press("G", "K").see("this alarm is over")
	d.press("g", "enter").see("rentop → alarms → 4090-data")
	d.press("esc", "esc", "g", "enter", "!").see("a100-tune → alarms").not("has been idle")
}

func TestNoAlarms(t *testing.T) {
	v := sample()
	v.Sessions[1].Alerts = nil
	d := drive(t, v, "en", 80, 24)
	d.press("!").see("No alarm was said")
	d.press("K").see("silence 1h: No alarm was said")
	d.press("enter").see("No alarm was said")
}

// The selection stays on its alarm when others come.
func TestAlarmSelectionStays(t *testing.T) {
	v := alarmed()
	d := drive(t, v, "en", 120, 40)
	d.press("!", "G")
	v = alarmed()
	v.Sessions[2].Alerts = []session.Alert{{ID: "unreachable", Level: session.Warn, Since: noon, Text: phrase.Say("alert.unreachable", "2 min")}}
	d.f.set(v)
	d.send(changedMsg{})
	for _, line := range strings.Split(d.screen(), "\n") {
		if strings.Contains(line, "▸") && !strings.Contains(line, "the balance lasts") {
			t.Errorf("selected is %q", line)
		}
	}
	d.see("not reachable for 2 min")
}
