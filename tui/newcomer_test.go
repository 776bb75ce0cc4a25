package tui

// What a newcomer stumbled over, played again.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rentop/session"
	"rentop/session/phrase"
	"rentop/session/release"
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
	d := drive(t, v, "en", 80, 24)
	d.press("a").see("add: the demo's list cannot be changed; start rentop without demo").not("Add an instance")
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

// The header of a log has the command as far as there is room, and R in it goes on
// to the new job's log.
func TestLogOfARestartedJob(t *testing.T) {
	d := drive(t, sample(), "en", 120, 36)
	d.press("J", "enter").see("--out ckpt/run-7 --resume").press("esc")
	d.press("j", "enter", "R").see("Restart “tokenize”?").press("y").heard("restart a100-tune j2; follow a100-tune j9").see("loading done", "“tokenize” runs again")
}

func TestSavedFitsItsColumn(t *testing.T) {
	for n, want := range map[int]string{12: "✗ 12 ", 999: "✗ 999 ", 1300: "✗1.3k ", 12345: "✗ 12k ", 123456: "✗123k ", 9999: "✗ 10k ", 999999: "✗1.0M "} {
		v := sample()
		v.Sessions[1].Saved.Files = n
		drive(t, v, "en", 80, 24).see(want)
	}
}

func TestCountsOfOneAndNone(t *testing.T) {
	v := inRelease(release.Waiting)
	r := v.Sessions[1].Release
	r.LostSize = 0
	d := drive(t, v, "en", 100, 30)
	d.press("j", "r").see("still costs").press("enter").see("2 lines of the checklist of 4090-data fail: unsaved files, git trees.").not("0B")
	r.Checks = r.Checks[:3]
	drive(t, v, "en", 100, 30).press("j", "r", "enter").see("1 line of the checklist of 4090-data fails: unsaved files.")
	drive(t, v, "zh", 100, 30).press("j", "r", "enter").see("4090-data：清单有 1 项未通过：").not("0B")
	v = sample()
	v.Sessions[0].Saved.Files = 1
	drive(t, v, "en", 80, 24).press("r").see("1 file (0B) exists nowhere else")
	drive(t, v, "zh", 80, 24).press("r").see("不再收计算费")
}

func TestManyAlertsOfOneInstance(t *testing.T) {
	v := sample()
	hot := func(n int) (out []session.Alert) {
		for i := range n {
			out = append(out, session.Alert{ID: fmt.Sprint("hot", i), Level: session.Warn, Since: noon, Text: phrase.Say("alert.hot.untold", i)})
		}
		return out
	}
	v.Sessions[0].Alerts = hot(8)
	d := drive(t, v, "en", 80, 24)
	// It works: keeping is offered, releasing is not.
	d.see("a100-tune: GPU 0 is slowed down", "GPU 2 is slowed down", "+5: ↵ open", "K keep 1h", "97%").not("GPU 3", "r release   K")
	d.press("j").see("a100-tune: GPU 0 is slowed down, and the driver", "+7 more of this instance", "r release   K keep 1h").not("GPU 1 is")
	d.press("k", "enter").see("GPU 2 is slowed", "+5 more alerts at the end of this page", "GPU UTIL").not("GPU 3 is").press("G").see("GPU 7 is slowed down")
	drive(t, v, "zh", 80, 24).press("j").see("此实例还有 7 条")
}

// What is not live has no round trip; what was measured then is old.
func TestNoPingWithoutAConnection(t *testing.T) {
	v := sample()
	v.Sessions[2].RTT = 31 * time.Millisecond
	drive(t, v, "en", 200, 40).not("31ms").press("G", "enter").not("31ms")
}

// Bars are compared within a currency: each currency's lines stand together and say whose they are.
func TestCostBarsSayTheirCurrency(t *testing.T) {
	d := drive(t, sample(), "en", 100, 30)
	d.press("$").see("CNY █", "USD █")
	var seen []string
	for _, l := range strings.Split(d.screen(), "\n") {
		for _, c := range []string{"CNY", "USD"} {
			if strings.Contains(l, c+" ") {
				seen = append(seen, c)
			}
		}
	}
	if got := strings.Join(seen, " "); got != "CNY CNY USD" {
		t.Errorf("the lines are in the order %s:\n%s", got, d.screen())
	}
}

// Where there is room nothing is cut: the reason of a slow card, a process's command.
func TestWideScreensCutNothing(t *testing.T) {
	v := sample()
	s := v.Sessions[0].Sample
	s.GPUs[0].Throttle = []string{"power cap", "too hot (hardware)", "slowed by the power supply"}
	s.Processes[0].Command = "python train.py " + strings.Repeat("--option value ", 5) + "--end"
	d := drive(t, v, "en", 160, 45)
	d.press("enter").see("power cap, too hot (hardware), slowed by the power supply", "--option value --end")
}

func TestDoctorIsInThePalette(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press(":", "'doctor", "enter").heard("doctor a100-tune").see("What a100-tune has and lacks", "✓ tmux 3.3a", "✗ no rsync: files go by ␛[31msftp").press("esc").not("has and lacks")
	d.f.fail = errSample
	d.press("enter", "i").see("connection lost")
	drive(t, sample(), "zh", 80, 24).press(":", "'体检", "enter").heard("doctor a100-tune")
}

func TestPasteAddsFromAnyScreen(t *testing.T) {
	for _, keys := range [][]string{{"enter"}, {"J"}, {"J", "enter"}, {"s"}, {"r"}, {"$"}} {
		drive(t, sample(), "en", 80, 24).press(keys...).paste("ssh -p 22 root@new.example\n").see("Add an instance", "ssh -p 22 root@new.example")
	}
}
