package tui

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/themes"
	"rentop/tui/cell"
)

// screen fills the body of the window.
type screen interface {
	of() string    // the instance that it is about, "" where it is not about one
	title() string // its crumb in the header, behind the instance's; may be ""
	draw(b cell.Area)
	actions() []action
	wheel(n int) // lines, downwards positive
	close()      // it is left for good
}

// dialog lies above the screens and takes every key.
type dialog interface {
	title() string
	size(w, h int) (int, int) // of its inside, at most w by h
	draw(b cell.Area)
	key(k tea.KeyPressMsg) tea.Cmd
	paste(text string)
	hints() []hint
}

// hint is a key and a word in the footer of a dialog.
type hint struct{ key, word string }

// then is the end of work in the background: it is run by Update.
type then func() tea.Cmd

// app is the one model. Only Update and View touch it.
type app struct {
	look
	ctx     context.Context
	fleet   Fleet
	opt     Options
	clock   func() time.Time
	v       *session.FleetView
	w, h    int
	screens []screen
	dialogs []dialog
	grid    *cell.Grid
	hits    []hit
	frame   string
	cursor  *tea.Cursor
	dirty   bool
	pace    *pace
	noMouse bool
	askBack bool // the terminal is asked for its background

	said      string // one line above the footer, until the next key
	saidLevel level
	saidAt    time.Time
	seen      time.Time    // notices up to here were shown
	later     map[int]bool // questions that the person put off
	answered  map[int]bool // and those answered, until the view has them gone
	lastKey   time.Time
	asking    int             // id of the question on screen; 0 none
	heard     map[string]bool // alarms that were rung for and last
	toldLeave map[string]bool // how a terminal is left, told once each
}

// hit is a rectangle that can be clicked.
type hit struct {
	x, y, w, h int
	do         func() tea.Cmd
}

func newApp(ctx context.Context, f Fleet, o Options, l look, now func() time.Time) *app {
	a := &app{look: l, ctx: ctx, fleet: f, opt: o, clock: now, v: f.View(), grid: cell.NewGrid(l.gl.More), dirty: true, w: 80, h: 24}
	a.seen = now()
	a.later, a.answered, a.toldLeave = map[int]bool{}, map[int]bool{}, map[string]bool{}
	a.screens = []screen{newOverview(a)}
	return a
}

type (
	changedMsg struct{}
	tickMsg    struct{}
	noReplyMsg struct{} // the terminal did not tell its background
)

// firstFrame is how long the renderer takes to look for one, and a little more.
const firstFrame = 20 * time.Millisecond

// Init implements tea.Model.
func (a *app) Init() tea.Cmd {
	cmds := []tea.Cmd{a.await(), a.tick()}
	if a.askBack {
		cmds = append(cmds, tea.RequestBackgroundColor,
			tea.Tick(2*time.Second, func(time.Time) tea.Msg { return noReplyMsg{} }))
	}
	if drawn := a.opt.Drawn; drawn != nil {
		cmds = append(cmds, tea.Tick(firstFrame, func(time.Time) tea.Msg { drawn(); return nil }))
	}
	return tea.Batch(cmds...)
}

// await waits for the fleet to change, not oftener than twice a second
// while nobody types. The fleet is read here and never sends: during a hand-over
// nothing of it waits for us.
func (a *app) await() tea.Cmd {
	gap := 500 * time.Millisecond
	if a.clock().Sub(a.lastKey) < 3*time.Second {
		gap = 100 * time.Millisecond
	}
	changed, ctx := a.fleet.Changed(), a.ctx
	return func() tea.Msg {
		t := time.NewTimer(gap)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-changed:
			return changedMsg{}
		case <-ctx.Done():
			return nil
		}
	}
}

// tick moves the clocks on screen, once a second.
func (a *app) tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model.
func (a *app) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	a.now = a.clock()
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		a.w, a.h, a.dirty = m.Width, m.Height, true
	case tickMsg:
		a.dirty = true
		return a, a.tick()
	case changedMsg:
		a.v, a.dirty = a.fleet.View(), true
		a.takeNotices()
		a.askNext()
		return a, tea.Batch(a.await(), a.ring())
	case then:
		a.dirty = true
		return a, m()
	case tea.KeyPressMsg:
		a.dirty, a.lastKey = true, a.now
		return a, a.key(m)
	case tea.PasteMsg:
		a.dirty = true
		if d := a.dialog(); d != nil {
			d.paste(m.Content)
		} else {
			a.pasted(m.Content)
		}
	case tea.MouseClickMsg:
		a.dirty = true
		return a, a.click(m.Mouse())
	case tea.MouseWheelMsg:
		a.dirty = true
		a.wheel(m.Mouse())
	case tea.BackgroundColorMsg:
		if a.askBack {
			a.askBack, a.dirty = false, true
			a.th = themes.ForBackground(m.IsDark())
		}
	case noReplyMsg:
		a.askBack = false
	case tea.ResumeMsg:
		a.dirty = true
	}
	return a, nil
}

// key gives a press to the dialog, else to the action that it stands for.
func (a *app) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" && a.asking == 0 {
		return a.quit()
	}
	if d := a.dialog(); d != nil {
		return d.key(k)
	}
	a.said = ""
	if x, ok := a.find(k.String()); ok {
		return a.run(x)
	}
	return nil
}

// pasted outside a dialog, what looks like an ssh line opens the dialog that adds it.
func (a *app) pasted(s string) {
	line := sshLine(s)
	if line == "" {
		a.say(info, a.T("paste.what"))
		return
	}
	if why := a.whyNotConfig(); why != "" {
		a.say(warn, a.T("cannot", a.T("act.add"), why))
		return
	}
	a.push(newAdd(a, line))
}

func (a *app) click(m tea.Mouse) tea.Cmd {
	if m.Button != tea.MouseLeft {
		return nil
	}
	for i := len(a.hits) - 1; i >= 0; i-- {
		if h := a.hits[i]; m.X >= h.x && m.X < h.x+h.w && m.Y >= h.y && m.Y < h.y+h.h {
			return h.do()
		}
	}
	return nil
}

func (a *app) wheel(m tea.Mouse) {
	n := 0
	switch m.Button {
	case tea.MouseWheelUp:
		n = -1
	case tea.MouseWheelDown:
		n = 1
	}
	if a.dialog() == nil && n != 0 {
		a.top().wheel(n)
	}
}

// onClick makes an area of the frame clickable.
func (a *app) onClick(r cell.Area, do func() tea.Cmd) {
	x, y := r.Origin()
	a.hits = append(a.hits, hit{x, y, r.W, r.H, do})
}

func (a *app) top() screen { return a.screens[len(a.screens)-1] }

func (a *app) dialog() dialog {
	if len(a.dialogs) == 0 {
		return nil
	}
	return a.dialogs[len(a.dialogs)-1]
}

func (a *app) push(d dialog) { a.dialogs = append(a.dialogs, d) }

// shut takes the top dialog away.
func (a *app) shut() {
	if n := len(a.dialogs); n > 0 {
		a.dialogs = a.dialogs[:n-1]
	}
}

// open puts a screen on top.
func (a *app) open(s screen) { a.screens = append(a.screens, s) }

// narrowed is a screen that a filter can narrow.
type narrowed interface {
	filtered() bool
	clear() bool // it was filtered, and is no more
}

func (a *app) back() tea.Cmd {
	if s, ok := a.top().(narrowed); ok && s.clear() {
		return nil
	}
	if n := len(a.screens); n > 1 {
		a.screens[n-1].close()
		a.screens = a.screens[:n-1]
	}
	return nil
}

// say shows one line above the footer.
func (a *app) say(l level, s string) { a.said, a.saidLevel, a.saidAt = s, l, a.now }

// work runs f in the background and what it returns in Update. A panic in it is
// an error on screen, not the end of the program.
func (a *app) work(f func(ctx context.Context) then) tea.Cmd {
	ctx := a.ctx
	return func() (msg tea.Msg) {
		defer func() {
			if p := recover(); p != nil {
				at := string(debug.Stack())
				msg = then(func() tea.Cmd { a.push(newMessage(a, a.T("internal"), fmt.Sprintf("%v\n%s", p, at))); return nil })
			}
		}()
		if t := f(ctx); t != nil {
			return t
		}
		return nil
	}
}

// act is work of which only the error, or one line, matters.
func (a *app) act(done string, f func(ctx context.Context) error) tea.Cmd {
	return a.work(func(ctx context.Context) then {
		err := f(ctx)
		return func() tea.Cmd {
			switch {
			case err != nil:
				a.fail(err)
			case done != "":
				a.say(info, done)
			}
			return nil
		}
	})
}

// fail shows an error: short ones in the line, long ones in a dialog.
func (a *app) fail(err error) {
	if err == nil || a.ctx.Err() != nil {
		return
	}
	if s := err.Error(); cell.Width(s) <= a.w-4 {
		a.say(bad, s)
	} else {
		a.push(newMessage(a, a.T("failed"), s))
	}
}

// takeNotices shows what passed since the last look.
func (a *app) takeNotices() {
	seen := a.seen
	for _, n := range a.v.Notices {
		if !n.At.After(seen) {
			continue
		}
		a.seen = n.At
		s := a.S(n.Text)
		if n.Instance != "" {
			s = n.Instance + ": " + s
		}
		a.say(levelOf(n.Level), s)
	}
}

// quit leaves, after a question where something would be cut.
func (a *app) quit() tea.Cmd {
	moving := 0
	for i := range a.v.Sessions {
		for j := range a.v.Sessions[i].Transfer {
			if t := &a.v.Sessions[i].Transfer[j]; t.Result == nil && t.Err == "" && !t.Cancelled {
				moving++
			}
		}
	}
	if moving == 0 || a.opt.player != nil {
		return tea.Quit
	}
	a.push(newConfirm(a, a.T("quit.title"), a.N("quit.moving", moving), func() tea.Cmd { return tea.Quit }))
	return nil
}

// nextTheme goes through the themes; what is chosen is not kept.
func (a *app) nextTheme() {
	names := themes.Names()[1:]
	at := 0
	for i, n := range names {
		if n == a.th.Name {
			at = i + 1
		}
	}
	if th, err := themes.Load(names[at%len(names)]); err == nil {
		a.th, a.askBack = th, false
		a.say(info, a.T("theme.now", th.Name))
	}
}

// session of a name, nil where it is not there any more.
func (a *app) session(name string) *session.View {
	for i := range a.v.Sessions {
		if a.v.Sessions[i].Name == name {
			return &a.v.Sessions[i]
		}
	}
	return nil
}
