package tui

// What a newcomer stumbled over, played again.

import (
	"testing"

	"rentop/session"
	"rentop/session/phrase"
)

func TestStartSaysThePrice(t *testing.T) {
	drive(t, sample(), "en", 80, 24).press("G", "S").see("It costs ¥3.50/h from the moment it runs")
}

func TestKeepSilencesEveryAlert(t *testing.T) {
	v := sample()
	v.Sessions[1].Alerts = append(v.Sessions[1].Alerts, session.Alert{ID: "hot", Level: session.Warn, Text: phrase.Say("alert.hot.untold", 1)})
	d := drive(t, v, "en", 80, 24)
	d.press("j", "K").heard("keep 4090-data idle 1h0m0s; keep 4090-data hot 1h0m0s").see("2 alerts of 4090-data are silenced")
	d = drive(t, v, "en", 80, 24)
	d.press("j", "enter", "K").heard("keep 4090-data hot 1h0m0s")
	d = drive(t, sample(), "zh", 80, 24)
	d.press("j", "K").see("已将 4090-data 的警报静默一小时")
}

func TestEscapeClearsAKeptFilter(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("/", "'4090", "enter").see("filter: 4090 (2 hidden)").not("h20-infer")
	d.press("enter").see("rentop → 4090-data").press("esc").see("filter: 4090")
	d.press("esc").not("filter: 4090").see("3 instances", "h20-infer")
	d.press("esc").see("this is the first screen")
	d.press("g", "J", "enter", "/", "'loss", "enter").not("loading done").press("esc").see("loading done")
	d.press("esc").see("→ jobs").not("loading done")
}

func TestDemoSaysAtOnceThatItCannotBeAddedTo(t *testing.T) {
	v := sample()
	v.Simulated = true
	d := drive(t, v, "en", 100, 24)
	d.press("a").see("add: the demo's instances cannot be added to").not("Add an instance")
	d.press("j").paste("ssh root@h").see("add: the demo's").not("Add an instance")
	d.press("e").see("edit: the demo's").press("D").see("forget: the demo's")
}
