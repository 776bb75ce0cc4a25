package tui

// What keys, pastes and clicks do, played by a driver.

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"rentop/remote"
	"rentop/session"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/tui/text"
)

func TestMoveAndOpen(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("j", "enter").see("rentop → 4090-data", "ubuntu@10.0.0.7")
	d.press("esc").see("3 instances")
	d.press("esc").see("this is the first screen")
	d.press("G", "enter").see("h20-infer", "stopped")
}

// The selection stays on its instance when others move.
func TestSelectionStays(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("j")
	v := sample()
	v.Sessions[0], v.Sessions[1] = v.Sessions[1], v.Sessions[0]
	d.f.set(v)
	d.send(changedMsg{})
	d.see("▸ ● 4090-data")
	v = sample()
	v.Sessions = v.Sessions[:1]
	d.f.set(v)
	d.send(changedMsg{})
	d.see("▸ ● a100-tune")
}

func TestDisabledKeysSayWhy(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("G", "t").see("terminal: h20-infer is stopped")
	d.press("g", "S").see("start: a100-tune is not stopped")
	d.press("K").see("a100-tune has no alert")
	d.press("J", "G", "x").see("kill: “old” has ended")
	d.opt.Readonly = true
	d.press("esc", "n").see("read-only")
	d.press("t").see("terminal: rentop was started read-only")
	d.paste("ssh -p 22 root@h").see("read-only")
	if d.f.heard() != "" {
		t.Errorf("the fleet was asked: %s", d.f.heard())
	}
}

func TestPasteOpensAdd(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.paste("$ ssh -p 41237 root@connect.westb.example\npassword: x\n").see("Add an instance", "ssh -p 41237 root@connect.westb.example", "connect")
	d.press("tab", "'8.00", "tab", "'cny", "ctrl+s").heard(`add connect "ssh -p 41237 root@connect.westb.example" 8.00 CNY`)
	d.not("Add an instance").see("connect is saved")
	d.paste("hello world").see("That is not an ssh line")
}

// A fault keeps the form, with what was typed.
func TestFormKeepsItsFault(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.f.fail = errors.New("price \"-1\" is negative; give what an hour costs")
	d.press("a", "'ssh h", "ctrl+s").see("is negative", "ssh h", "Add an instance")
	d.f.fail = nil
	d.press("ctrl+s").not("Add an instance")
}

func TestSSHLine(t *testing.T) {
	for in, want := range map[string]string{
		"ssh -p 1 root@h":        "ssh -p 1 root@h",
		"  $ ssh root@h  \n":     "ssh root@h",
		"ssh://root@h:22":        "ssh://root@h:22",
		"root@h:41237":           "root@h:41237",
		"Login: ssh\nroot@h":     "root@h",
		"ssh":                    "",
		"see you @ noon":         "",
		"https://me@example.org": "",
		"":                       "",
	} {
		if got := sshLine(in); got != want {
			t.Errorf("sshLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFilter(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("/", "'!stopped", "enter").see("a100-tune", "4090-data").not("h20-infer")
	d.press("/", "ctrl+u", "'~a1tn", "enter").see("a100-tune").not("4090-data  ")
	d.press("/", "ctrl+u", "'nothing").see("Nothing matches")
	d.press("esc").see("h20-infer")
}

func TestPaletteRunsByName(t *testing.T) {
	d := drive(t, sample(), "zh", 80, 24)
	d.press(":", "'newjob", "enter").see("在 a100-tune 上新建任务")
	d.press("esc", "ctrl+p", "'h20", "enter").see("rentop → h20-infer")
	d.press("ctrl+p", "'quit", "enter", "y")
	if !d.quit {
		t.Error("the palette's quit did not quit")
	}
}

func TestHelpShowsEveryKey(t *testing.T) {
	d := drive(t, sample(), "en", 120, 60)
	acts := d.actions()
	d.press("?")
	s := d.screen()
	for _, x := range acts {
		if !strings.Contains(s, d.T("act."+x.id)) {
			t.Errorf("the help lacks %q", x.id)
		}
	}
	d.press("'transfer").not("mouse")
}

// No key means two things on one screen.
func TestKeysAreUnique(t *testing.T) {
	for _, sc := range scenes {
		d := drive(t, sc.view(), "en", 80, 24)
		d.play(sc.keys)
		seen := map[string]string{}
		for _, x := range d.actions() {
			for _, k := range d.keysOf(x) {
				if old, ok := seen[k]; ok {
					t.Errorf("%s: %q is both %s and %s", sc.name, k, old, x.id)
				}
				seen[k] = x.id
			}
		}
	}
}

func TestKeysCanBeChanged(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.opt.Keys = map[string][]string{"open": {"v"}}
	d.press("enter").see("3 instances", "v open")
	d.press("v").see("rentop → a100-tune")
}

func TestJobs(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("n").see("New job on a100-tune", "~/project")
	d.press("'python train.py --a b", "enter").heard(`job a100-tune "python train.py --a b" in "~/project"`).not("New job")
	d.press("J", "x").see("Kill “train”?").press("enter")
	d.not("Kill “train”?")
	if strings.Contains(d.f.heard(), "kill") {
		t.Error("Enter must not kill")
	}
	d.press("x", "y").heard("kill a100-tune j3")
	d.press("j", "R").see("python prep.py").press("y").heard("restart a100-tune j2")
}

func TestLog(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("J", "enter").heard("follow a100-tune j3").see("loading done", "loss 2.1", "进度 完成", "hostile ␛]0;x␇ end").not("loading 50%")
	d.press("/", "'loss", "enter").see("loss 2.1").not("loading done")
}

func TestLogFollowsAndStops(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.f.log = strings.Repeat("line\n", 200) + "the end\n"
	d.press("J", "enter").see("the end")
	d.press("g").not("the end")
	d.press("G").see("the end")
}

func TestLogBufferIsBounded(t *testing.T) {
	b := newLogBuffer()
	chunk := []byte(strings.Repeat("x", 1000) + "\n")
	for range 20000 {
		b.Write(chunk)
	}
	b.Write([]byte(strings.Repeat("y", 1<<20)))
	lines, cut := b.all()
	if !cut || b.size > keepLog || len(lines[len(lines)-1]) > keepLine {
		t.Errorf("%d bytes, cut %v, the last line %d", b.size, cut, len(lines[len(lines)-1]))
	}
}

func TestSyncPlansFirst(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("s", "p").heard("plan a100-tune push . ~/project delete=false").see("1 new", "1 changed", "src/train.py", "412 unchanged", "≤ 5s at the 1.0M/s last measured", "traffic ≤ ¥0.12")
	d.press("enter").heard("transfer a100-tune push delete=false")
	// What would be removed is listed, then asked for.
	d.press("p", "d").see("old/run-1.log", "1 to be removed").press("enter").see("is removed on a100-tune")
	d.press("enter")
	if strings.Contains(d.f.heard(), "delete=true verify") {
		t.Error("Enter must not delete")
	}
	d.press("enter", "y").heard("transfer a100-tune push delete=true verify=false shown=[old/run-1.log]")
	d.press("j", "j", "x", "y").heard("cancel a100-tune 2")
	d.press("n", "'x").see("Copy folders")
	// Where nothing was measured, nothing is made up.
	d.press("esc", "P").see("time ?", "traffic ?")
}

// The queue is ordered, paused and limited by keys, and by name in the palette.
func TestTransferQueue(t *testing.T) {
	d := drive(t, sample(), "en", 120, 40)
	d.press("s").see("limited to 4.0M/s", "paused", "queued", "2.0G on the wire (67 %)", "512M there already", "slower: commands cannot run")
	d.press("j", "j", "space").heard("pause a100-tune 2 true")
	d.press("j", "space").heard("pause a100-tune 3 false")
	d.press("w").heard("save a100-tune false")
	d.press("j", "K").heard("move a100-tune 4 true").press("J").heard("move a100-tune")
	d.press("b").see("Limit the transfers of a100-tune", "4096K").press("ctrl+u", "'fast", "enter").see("is no rate")
	d.press("ctrl+u", "'20M", "enter").heard("limit a100-tune 20971520").not("is no rate")
	d.press("b", "ctrl+u", "enter").heard("limit a100-tune 0")
	d.press(":", "'limittransfers", "enter").see("Limit the transfers")
	d.press("esc")
	d.opt.Readonly = true
	d.press("space").see("pause: rentop was started read-only")
}

// What is marked is released together, each by its own name; what is under way is not
// begun again.
func TestReleaseTogether(t *testing.T) {
	d := drive(t, inRelease(release.Waiting), "en", 80, 24)
	d.press("space", "space").see("2 marked", "r release", "Esc back")
	d.press("esc", "r").see("rentop → h20-infer → release") // unmarked
	d.press("esc", "g", "space", "space", "r", "d").see("rentop → release 2", "a release of 4090-data is under way").heard("release a100-tune destroy")
	if heard := d.f.heard(); strings.Contains(heard, "release 4090-data") {
		t.Errorf("what is under way was begun again: %s", heard)
	}
	d.press("j", "enter").see("→ 4090-data → release")
	d.press("enter", "'4090-data", "enter").heard(`decide 4090-data name name="4090-data" shown="shown-1"`)
	if heard := d.f.heard(); strings.Contains(heard, "decide a100-tune") {
		t.Errorf("one name was taken for two: %s", heard)
	}
	d.press("esc").see("rentop → release 2")
	d.press("x").heard("decide 4090-data cancel")
	if heard := d.f.heard(); strings.Contains(heard, "decide a100-tune") {
		t.Errorf("what was not begun was cancelled: %s", heard)
	}
}

func TestRelease(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("r", "d").heard("release a100-tune destroy")
	d = drive(t, sample(), "en", 80, 24)
	d.press("G", "r", "s").see("command cannot stop")

	d = drive(t, inRelease(release.Waiting), "en", 80, 24)
	d.press("j", "r").see("12 files, 2.9 GB, exist nowhere else", "/root/ckpt/step-9000.safetensors", "?", "git is not installed")
	d.press("enter", "'4090-dat", "enter").see("Nothing was done")
	if strings.Contains(d.f.heard(), "name") {
		t.Error("a wrong name was passed on")
	}
	d.press("'a", "enter").heard(`decide 4090-data name name="4090-data" shown="shown-1"`)
	d.press("p").heard("decide 4090-data pull")
	d.press("w", "enter").heard("snapshot=portable")
	d.press("x").heard("decide 4090-data cancel")

	d = drive(t, inRelease(release.Tearing), "en", 80, 24)
	d.press("j", "r", "x").see("the provider was asked already")
	d.press("enter").see("it is still busy")
}

func TestQuestions(t *testing.T) {
	v := sample()
	v.Questions = []session.Question{
		{ID: 1, Question: remote.Question{Kind: remote.AskPassword, Instance: "a", Host: "root@h:22", CanRemember: true}},
		{ID: 2, Question: remote.Question{Kind: remote.AskHostKey, Instance: "b", Host: "root@\x1b[2Jh:22", KeyType: "ssh-ed25519", Fingerprint: "SHA256:x"}},
	}
	d := drive(t, sample(), "en", 80, 24)
	d.f.set(v)
	d.send(changedMsg{})
	d.see("a: password").press("'q?secret").not("secret").see("••••")
	d.press("tab", "enter").heard(`answer 1 true "q?secret" true`)
	d.see("b: is this the right machine?", "SHA256:x", "␛[2J").press("enter", "space").see("right machine")
	d.press("esc").not("right machine").see("1 question waits for you")
	d.press("A").see("right machine").press("y").heard(`answer 2 true`)
	// One that is not asked any more goes away.
	d.f.set(v)
	d = drive(t, sample(), "en", 80, 24)
	d.f.set(v)
	d.send(changedMsg{})
	d.see("a: password")
	d.f.set(sample())
	d.send(changedMsg{})
	d.not("password")
}

func TestQuitAsksWhileFilesMove(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("q").see("3 transfers are running")
	if d.quit {
		t.Error("it left while files moved")
	}
	d.press("y")
	if !d.quit {
		t.Error("y must leave")
	}
}

func TestNotices(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	v := sample()
	v.Notices = []session.Notice{{At: noon.Add(1), Instance: "a100-tune", Level: session.Warn, Text: phrase.Say("job.failed", "train", 1)}}
	d.f.set(v)
	d.send(changedMsg{})
	d.see("! a100-tune: job train failed with exit code 1").press("j").not("exit code 1")
}

func TestMouse(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.screen()
	d.send(tea.MouseClickMsg{X: 10, Y: 4, Button: tea.MouseLeft})
	d.see("▸ ● 4090-data")
	d.send(tea.MouseClickMsg{X: 10, Y: 4, Button: tea.MouseLeft})
	d.see("rentop → 4090-data").press("esc")
	d.send(tea.MouseWheelMsg{X: 10, Y: 4, Button: tea.MouseWheelDown})
	d.see("▸ ○ h20-infer")
	d.send(tea.MouseClickMsg{X: 75, Y: 2, Button: tea.MouseLeft})
	d.see("COST↓")
}

func TestPanicInWorkIsShown(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.do(d.app.act("", func(ctxT) error { panic("boom") }), 0)
	d.see("An error in rentop itself", "boom")
	d.press("esc").see("a100-tune")
}

func TestKeepAndCopy(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	d.press("j", "K").heard("keep 4090-data idle 1h0m0s")
	d.press("y").see("copied ubuntu@10.0.0.7:22")
	d.press("e", "tab", "ctrl+u", "'60", "ctrl+s")
	d.press("D", "'4090-data", "enter").heard("remove 4090-data")
	d.press("G", "S", "y").heard("start h20-infer")
}

func TestEscapeLeaves(t *testing.T) {
	cases := []struct{ in, out string }{
		{"ls\r", "ls\r"}, {"a~.", "a~."}, {"ls\r~.rest", "ls\r"}, {"~.", ""}, {"~~x", "~x"}, {"~x\r", "~x\r"}, {"\r~~.\r", "\r~.\r"},
	}
	for _, c := range cases {
		left := false
		got, err := io.ReadAll(&escape{r: strings.NewReader(c.in), leave: func() { left = true }})
		if err != nil || string(got) != c.out && !left || left && !strings.HasPrefix(c.out, string(got)) {
			t.Errorf("%q gave %q (left %v, %v), want %q", c.in, got, left, err, c.out)
		}
		if want := strings.HasSuffix(c.in, "~.rest") || c.in == "~."; left != want {
			t.Errorf("%q: left %v, want %v", c.in, left, want)
		}
	}
}

func TestRunNeedsATerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = Run(t.Context(), newFake(sample()), Options{Out: f, Getenv: getenvUTF8})
	if err == nil || !strings.Contains(err.Error(), "rentop ls") {
		t.Errorf("%v", err)
	}
}

func TestASCIIGlyphs(t *testing.T) {
	d := drive(t, sample(), "en", 80, 24)
	tx, _ := text.Load("en")
	_ = tx
	c, err := loadASCII()
	if err != nil {
		t.Fatal(err)
	}
	d.gl = c
	v := sample()
	v.Sessions = v.Sessions[1:2]
	d.f.set(v)
	d.send(changedMsg{})
	for _, r := range strings.ReplaceAll(d.screen(), "¥", "") {
		if r > 0x7e {
			t.Fatalf("%q is not ASCII:\n%s", r, d.screen())
		}
	}
}
