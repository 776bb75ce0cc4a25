package tui

// The frame around every screen: header, message line, footer, dialogs.

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/themes"
	"rentop/tui/cell"
)

const minW, minH = 60, 15

// View implements tea.Model. The frame is made anew only where something that it
// shows may have changed; equal frames cost the terminal nothing.
func (a *app) View() tea.View {
	if a.dirty {
		a.dirty = false
		a.now = a.clock()
		a.render()
		a.frame = a.grid.String()
		a.pace.changed()
	}
	v := tea.NewView(a.frame)
	v.AltScreen = true
	v.Cursor = a.cursor
	v.WindowTitle = "rentop"
	if !a.noMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

func (a *app) render() {
	all := a.grid.Reset(a.w, a.h)
	a.hits, a.cursor = a.hits[:0], nil
	if a.w < minW || a.h < minH {
		for i, s := range cell.Wrap(a.T("small", a.w, a.h, minW, minH), max(a.w-2, 1)) {
			all.Put(1, i, themes.Style{}, s)
		}
		return
	}
	a.header(all.Row(0))
	a.top().draw(all.Sub(0, 1, a.w, a.h-3))
	a.message(all.Row(a.h - 2))
	for i, d := range a.dialogs {
		a.drawDialog(all.Sub(0, 1, a.w, a.h-2), d, i == len(a.dialogs)-1)
	}
	a.footer(all.Row(a.h - 1))
}

// header: where we are, and what the fleet costs.
func (a *app) header(r cell.Area) {
	var right []string
	if s := sums(a.v.Today, ""); s != "" {
		right = append(right, a.T("head.today")+" "+s)
	}
	if s := sums(a.v.PerHour, "/h"); s != "" {
		right = append(right, s)
	}
	left := ""
	if s := sums(a.v.BudgetLeft, ""); s != "" {
		left = a.T("head.left") + " " + s
	}
	p := r.Pen(1, 0).Put(a.th.Accent.With(themes.Bold), "rentop")
	if a.opt.player != nil {
		a.drawReplay(p)
	}
	if a.v.Simulated {
		p.Skip(1).Put(a.th.Warn, a.T("simulated"))
	}
	if o, ok := a.top().(*overview); ok && o.filter != "" {
		hidden := len(a.v.Sessions) - len(o.rows())
		p.Skip(2).Put(a.th.Warn, a.N("head.filter", hidden, cell.Cut(o.filter, 20)))
	} else if len(a.screens) == 1 {
		p.Skip(2).Put(a.th.Dim, a.counts())
	}
	crumb := func(s string) {
		if s != "" {
			p.Skip(1).Put(a.th.Faint, a.gl.Arrow).Skip(1).Put(a.th.Strong, s)
		}
	}
	of := ""
	for _, s := range a.screens[1:] {
		if s.of() != of {
			of = s.of()
			crumb(of)
		}
		crumb(s.title())
	}
	// From the right, and only whole facts: the crumbs go first.
	if left != "" && p.Left() > 4+cell.Width(left)+cell.Width(strings.Join(right, "   ")) {
		right = append(right, left)
	}
	for len(right) > 0 && p.Left() < 2+cell.Width(strings.Join(right, "   ")) {
		right = right[1:]
	}
	x := r.W - 1
	for i := len(right) - 1; i >= 0; i-- {
		st := a.th.Dim
		if strings.HasSuffix(right[i], "/h") {
			st = a.th.Strong
		}
		x -= cell.Width(right[i])
		r.Put(x, 0, st, right[i])
		x -= 3
	}
}

func (a *app) counts() string {
	live := 0
	for i := range a.v.Sessions {
		if a.v.Sessions[i].State == session.Live {
			live++
		}
	}
	s := a.N("head.instances", len(a.v.Sessions))
	if len(a.v.Sessions) > 0 {
		s += " " + a.gl.Dot + " " + a.T("head.live", live)
	}
	return s
}

// message is the one line above the footer: what was just said, else the
// config's fault, else a question that was put off.
func (a *app) message(r cell.Area) {
	switch {
	case a.said != "" && (a.saidLevel != info || a.now.Sub(a.saidAt) < 15*time.Second):
		p := r.Pen(1, 0)
		if a.saidLevel != info {
			p.Put(a.levelStyle(a.saidLevel), a.gl.Alert).Skip(1)
		}
		p.Put(a.levelStyle(a.saidLevel), a.said)
	case a.opt.player != nil && a.opt.player.Playing().Err != "":
		r.Pen(1, 0).Put(a.th.Bad, a.gl.Alert).Skip(1).Put(a.th.Bad, a.opt.player.Playing().Err)
	case a.v.ConfigErr != "":
		r.Pen(1, 0).Put(a.th.Bad, a.gl.Alert).Skip(1).Put(a.th.Bad, a.T("config.err", a.v.ConfigErr))
	case a.waiting() > 0 && a.asking == 0:
		r.Pen(1, 0).Put(a.th.Warn, "?").Skip(1).Put(a.th.Warn, a.N("questions", a.waiting()))
	}
}

// footer shows the keys of the top dialog or screen, as many as fit, and help last.
func (a *app) footer(r cell.Area) {
	p := r.Pen(1, 0)
	if d := a.dialog(); d != nil {
		for _, h := range d.hints() {
			a.keyHint(p, h, a.th.Dim, 3)
		}
		return
	}
	var shown []action
	var help action
	for _, x := range a.actions() {
		switch {
		case !x.foot || len(a.keysOf(x)) == 0:
		case x.id == "help":
			help = x
		default:
			shown = append(shown, x)
		}
	}
	// Help is always there; of the others as many as fit, closer where not all do.
	shown, gap := a.fitHints(append([]action{help}, shown...), r.W-2)
	fitted := append(shown[1:], help)
	for _, x := range fitted {
		from := p.X()
		st := a.th.Dim
		if x.why != nil && x.why() != "" {
			st = a.th.Faint
		}
		a.keyHint(p, hint{a.keyName(a.keysOf(x)[0]), a.T("act." + x.id)}, st, gap)
		a.onClick(r.Sub(from, 0, p.X()-from, 1), func() tea.Cmd { return a.run(x) })
	}
}

// fitHints is as many of the actions as fit in w cells, and the gap between them.
func (a *app) fitHints(list []action, w int) ([]action, int) {
	for _, gap := range []int{3, 2} {
		used := -gap
		for i, x := range list {
			used += gap + cell.Width(a.keyName(a.keysOf(x)[0])) + 1 + cell.Width(a.T("act."+x.id))
			if used > w {
				if gap == 2 {
					return list[:i], gap
				}
				break
			}
		}
		if used <= w {
			return list, gap
		}
	}
	return list, 2
}

func (a *app) keyHint(p *cell.Pen, h hint, word themes.Style, gap int) {
	key := a.th.Key
	if word == a.th.Faint {
		key = a.th.Faint
	}
	p.Put(key, h.key).Skip(1).Put(word, h.word).Skip(gap)
}

// drawDialog draws a box in the middle, a little above it.
func (a *app) drawDialog(b cell.Area, d dialog, top bool) {
	w, h := d.size(b.W-8, b.H-2)
	w, h = min(w, b.W-6), min(h, b.H-2)
	box := b.Sub((b.W-w-6)/2, max((b.H-h-2)/3, 0), w+6, h+2).Clear()
	in := box.Box(a.th.Border, &a.gl)
	if t := d.title(); t != "" {
		box.Put(2, 0, a.th.Strong, " "+cell.Cut(t, max(w-2, 0))+" ")
	}
	if top {
		a.hits = slices.Clip(a.hits[:0]) // what lies below cannot be clicked
	}
	d.draw(in.Inset(2, 0))
}

// setCursor puts the terminal's cursor at a cell of an area: input methods open there.
func (a *app) setCursor(r cell.Area, x, y int) {
	ox, oy := r.Origin()
	a.cursor = tea.NewCursor(ox+min(x, max(r.W-1, 0)), oy+y)
	a.cursor.Shape = tea.CursorBar
}
