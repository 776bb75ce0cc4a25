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

func TestSyncFormProposesFolders(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("s", "n", "'hl/out", "tab", "'/data", "enter").heard("plan a100-tune push hl/out /data")
	// The direction has keys of its own; a proposal that is left is used.
	d = drive(t, sample(), "en", 80, 24)
	d.press("s", "n", "up", "'hlx", "right", "enter").heard("plan a100-tune pull . ~/project delete")
	// Moving in a proposal keeps it; what is only an example is no value.
	d = drive(t, sample(), "en", 80, 24)
	d.press("s", "n", "end", "'/out", "enter").heard("plan a100-tune push ./out ~/project")
	d = drive(t, sample(), "en", 80, 24)
	d.press("j", "s", "n").see("e.g. ~/project").press("enter").see("Both folders are needed")
}

func TestExamplesAreNoValues(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("a").see("e.g. 8.00", "e.g. 0.02", "e.g. ssh -p 41237 root@connect.example").press("enter").see("Where is it?")
	drive(t, sample(), "zh", 80, 24).press("a").see("例如 8.00")
	drive(t, sample(), "en", 80, 24).press("j", "n").see("e.g. python train.py", "(the home folder)")
}
