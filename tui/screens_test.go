package tui

// Every screen as it is drawn, against golden files; renew them with -update and
// read the difference.

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"rentop/remote"
	"rentop/session"
	"rentop/session/release"
	"rentop/themes"
	"rentop/tui/text"
)

var update = flag.Bool("update", false, "write the golden files")

// driver plays a person: it presses keys and reads the screen, without a terminal.
type driver struct {
	t testing.TB
	*app
	f    *fake
	quit bool
	wait time.Duration // for what a command gives
}

func drive(t testing.TB, v *session.FleetView, lang string, w, h int) *driver {
	t.Helper()
	tx, err := text.Load(lang)
	if err != nil {
		t.Fatal(err)
	}
	c, err := themes.Choose("dark", "unicode", getenvUTF8)
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(v)
	f.log = "loading\rloading 50%\rloading done\nepoch 1 \x1b[32mloss 2.1\x1b[0m\n进度 完成\nhostile \x1b]0;x\x07 end\n"
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	d := &driver{t: t, f: f, wait: 20 * time.Millisecond}
	d.app = newApp(ctx, f, Options{}, look{th: c.Theme, gl: c.Glyphs, tx: tx}, func() time.Time { return noon })
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	return d
}

// send gives a message to the model and does what it asks for, as the program
// would, but not what only waits.
func (d *driver) send(m tea.Msg) {
	d.t.Helper()
	_, cmd := d.Update(m)
	d.do(cmd, 0)
}

func (d *driver) do(cmd tea.Cmd, depth int) {
	if cmd == nil || depth > 20 {
		return
	}
	got := make(chan tea.Msg, 1)
	go func() { got <- cmd() }()
	var m tea.Msg
	select {
	case m = <-got:
	case <-time.After(d.wait):
		return // it waits for something
	}
	switch m := m.(type) {
	case nil:
	case tea.QuitMsg:
		d.quit = true
	case tea.BatchMsg:
		for _, c := range m {
			d.do(c, depth+1)
		}
	case then, changedMsg:
		_, next := d.Update(m)
		d.do(next, depth+1)
	}
}

var named = map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace, "home": tea.KeyHome, "end": tea.KeyEnd,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown}

func keyOf(s string) tea.KeyPressMsg {
	if code, ok := named[s]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if r, ok := strings.CutPrefix(s, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(r[0]), Mod: tea.ModCtrl}
	}
	if s == "space" {
		return tea.KeyPressMsg{Code: ' ', Text: " "}
	}
	r := []rune(s)
	k := tea.KeyPressMsg{Code: r[0], Text: s}
	if len(r) == 1 && r[0] >= 'A' && r[0] <= 'Z' {
		k.Code, k.ShiftedCode, k.Mod = r[0]+32, r[0], tea.ModShift
	}
	return k
}

// press gives keys by name, and types what begins with a quote.
func (d *driver) press(keys ...string) *driver {
	d.t.Helper()
	for _, k := range keys {
		if s, ok := strings.CutPrefix(k, "'"); ok {
			for _, r := range s {
				d.send(keyOf(string(r)))
			}
			continue
		}
		d.send(keyOf(k))
	}
	return d
}

func (d *driver) paste(s string) *driver { d.send(tea.PasteMsg{Content: s}); return d }

// screen is what is shown, as plain lines.
func (d *driver) screen() string {
	d.dirty = true
	d.View()
	return strings.Join(d.grid.Lines(), "\n") + "\n"
}

func (d *driver) see(want ...string) *driver {
	d.t.Helper()
	s := d.screen()
	for _, w := range want {
		if !strings.Contains(s, w) {
			d.t.Errorf("the screen does not show %q:\n%s", w, s)
		}
	}
	return d
}

func (d *driver) not(unwanted ...string) *driver {
	d.t.Helper()
	s := d.screen()
	for _, w := range unwanted {
		if strings.Contains(s, w) {
			d.t.Errorf("the screen shows %q:\n%s", w, s)
		}
	}
	return d
}

func (d *driver) heard(want string) *driver {
	d.t.Helper()
	if got := d.f.heard(); !strings.Contains(got, want) {
		d.t.Errorf("the fleet was not asked %q, but: %s", want, got)
	}
	return d
}

func withQuestion(q remote.Question) func() *session.FleetView {
	return func() *session.FleetView {
		v := sample()
		v.Questions = []session.Question{{ID: 7, Question: q}}
		return v
	}
}

// scenes are the screens, and how to get there.
var scenes = []struct {
	name string
	view func() *session.FleetView
	keys []string
}{
	{"overview", sample, []string{"j"}},
	{"overview-trouble", trouble, nil},
	{"overview-empty", func() *session.FleetView { return &session.FleetView{} }, nil},
	{"overview-filter", sample, []string{"/", "'4090"}},
	{"overview-order", trouble, []string{"o", "O"}},
	{"instance", sample, []string{"enter"}},
	{"instance-cards", told, []string{"enter", "G"}},
	{"instance-lost-card", trouble, []string{"G", "enter"}},
	{"instance-no-driver", trouble, []string{"G", "k", "enter"}},
	{"jobs", sample, []string{"J", "j"}},
	{"log", sample, []string{"J", "enter"}},
	{"kill", sample, []string{"J", "x"}},
	{"new-job", sample, []string{"n"}},
	{"sync", sample, []string{"s"}},
	{"sync-plan", sample, []string{"s", "p", "d"}},
	{"release-choice", sample, []string{"r"}},
	{"release-waiting", func() *session.FleetView { return inRelease(release.Waiting) }, []string{"j", "r"}},
	{"release-confirm", func() *session.FleetView { return inRelease(release.Waiting) }, []string{"j", "r", "enter"}},
	{"release-review", func() *session.FleetView { return inRelease(release.Review) }, []string{"j", "r", "G"}},
	{"overview-marked", sample, []string{"space", "space"}},
	{"release-together", func() *session.FleetView { return inRelease(release.Waiting) }, []string{"space", "space", "space", "r", "j"}},
	{"alarms", alarmed, []string{"!", "j"}},
	{"alarms-of-one", alarmed, []string{"j", "enter", "!"}},
	{"costs", sample, []string{"$"}},
	{"costs-by-day", sample, []string{"$", "3"}},
	{"costs-by-job", sample, []string{"$", "2"}},
	{"help", sample, []string{"?"}},
	{"palette", sample, []string{":", "'rel"}},
	{"add", sample, []string{"a"}},
	{"host-key", withQuestion(remote.Question{Kind: remote.AskHostKey, Instance: "a100-tune", Host: "root@connect.example:41237", KeyType: "ssh-ed25519", Fingerprint: "SHA256:qTdbEYs0hLjuLmBqKSMLB5gG1pUcBQ6M7FzQHUmYl9A"}), []string{"changed"}},
	{"password", withQuestion(remote.Question{Kind: remote.AskPassword, Instance: "a100-tune", Host: "root@connect.example:41237", CanRemember: true, Retry: true}), []string{"changed", "'秘密x", "tab"}},
}

func (d *driver) play(keys []string) {
	for _, k := range keys {
		if k == "changed" {
			d.f.set(d.f.View())
			d.send(changedMsg{})
			continue
		}
		d.press(k)
	}
}

func TestScreens(t *testing.T) {
	for _, sc := range scenes {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
			for _, lang := range text.Names() {
				name := fmt.Sprintf("%s-%dx%d-%s", sc.name, size[0], size[1], lang)
				t.Run(name, func(t *testing.T) {
					d := drive(t, sc.view(), lang, size[0], size[1])
					d.play(sc.keys)
					golden(t, name, d.screen())
					sound(t, d, size[0], size[1])
				})
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "screens", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./tui -update writes it", err)
	}
	if string(want) != got {
		t.Errorf("%s differs; go test ./tui -update, then read the difference\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

// sound checks what holds for every frame: its height, no line wider than the
// terminal by either way of counting, and no control character but our colours.
func sound(t testing.TB, d *driver, w, h int) {
	t.Helper()
	lines := strings.Split(d.frame, "\n")
	if len(lines) != h {
		t.Errorf("%d lines in a window of %d", len(lines), h)
	}
	for i, l := range lines {
		plain := ansi.Strip(l)
		if ansi.StringWidth(plain) > w || ansi.StringWidthWc(plain) > w {
			t.Errorf("line %d is %d cells wide in a window of %d: %q", i, ansi.StringWidth(plain), w, plain)
		}
		for _, r := range plain {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				t.Errorf("line %d has the control character %U: %q", i, r, plain)
			}
		}
	}
}

// A frame whose content is the same is the same string: it costs the terminal
// nothing. What was asked twice is not drawn twice.
func TestSameFrameIsEqual(t *testing.T) {
	d := drive(t, sample(), "en", 120, 40)
	first := d.View()
	d.send(tickMsg{})
	if again := d.View(); again.Content != first.Content {
		t.Error("a tick without a change drew another frame")
	}
	d.frame = "kept"
	if d.View().Content != "kept" {
		t.Error("a frame was made anew though nothing had happened")
	}
}

func TestTooSmall(t *testing.T) {
	for _, lang := range text.Names() {
		d := drive(t, sample(), lang, 59, 20)
		d.see("59×20", "60×15")
		sound(t, d, 59, 20)
	}
	d := drive(t, sample(), "en", 60, 15)
	d.see("a100-tune", "97%", "¥25.61")
	sound(t, d, 60, 15)
}

// The overview's last column ends in the same cell in every row and in its
// heading, whatever double-width names stand before it.
func TestChineseLinesStayAligned(t *testing.T) {
	for _, w := range []int{80, 97, 120, 200} {
		d := drive(t, trouble(), "zh", w, 40)
		lines := strings.Split(d.screen(), "\n")
		if !strings.Contains(lines[2], "花费") {
			t.Fatalf("no heading in %q", lines[2])
		}
		end := ansi.StringWidth(lines[2])
		for _, l := range lines[3 : 3+len(trouble().Sessions)] {
			if got := ansi.StringWidth(l); got != end {
				t.Errorf("%d cells: the row ends at %d, its heading at %d: %q", w, got, end, l)
			}
		}
	}
}
