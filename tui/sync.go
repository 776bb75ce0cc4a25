package tui

// Moving folders: the configured pairs, a plan before anything moves, progress.

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/sync"
	"rentop/tui/cell"
)

type syncScreen struct {
	a    *app
	name string
	at   int // of pairs, then of transfers
	off  int
}

func newSync(a *app, instance string) *syncScreen { return &syncScreen{a: a, name: instance} }

func (s *syncScreen) of() string    { return s.name }
func (s *syncScreen) title() string { return s.a.T("act.sync") }
func (s *syncScreen) close()        {}
func (s *syncScreen) wheel(n int)   { s.move(n)() }

func (s *syncScreen) actions() []action {
	return []action{
		{id: "push", keys: []string{"p", "enter"}, foot: true, why: s.whyNotMove, do: func() tea.Cmd { return s.plan(sync.Push) }},
		{id: "pull", keys: []string{"P", "l"}, foot: true, why: s.whyNotPull, do: func() tea.Cmd { return s.plan(sync.Pull) }},
		{id: "other", keys: []string{"n"}, foot: true, why: s.whyNotPull, do: s.other},
		{id: "canceltransfer", keys: []string{"x"}, foot: true, why: s.whyNotCancel, do: s.cancel},
		{id: "pausetransfer", keys: []string{"space"}, foot: true, why: s.whyNotChange, do: s.pause},
		{id: "limittransfers", keys: []string{"b"}, foot: true, why: s.whyReadonly, do: s.limit},
		{id: "keepsaving", keys: []string{"w"}, foot: true, why: s.whyNotSave, do: s.keepSaving},
		{id: "sooner", keys: []string{"K", "shift+up"}, why: s.whyNotChange, do: s.reorder(true)},
		{id: "later", keys: []string{"J", "shift+down"}, why: s.whyNotChange, do: s.reorder(false)},
		{id: "down", keys: []string{"j", "down"}, do: s.move(1)},
		{id: "up", keys: []string{"k", "up"}, do: s.move(-1)},
		{id: "first", keys: []string{"g", "home"}, do: s.move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: s.move(1 << 20)},
	}
}

// lines are the pairs, and the transfers in the order of inOrder.
func (s *syncScreen) lines() (pairs []session.SyncPair, moves []*session.TransferView) {
	v := s.a.session(s.name)
	if v == nil {
		return nil, nil
	}
	moves = inOrder(v.Transfer)
	s.at = min(max(s.at, 0), max(len(v.Syncs)+len(moves)-1, 0))
	return v.Syncs, moves
}

// selected is the pair, or that of the transfer, under the cursor.
func (s *syncScreen) selected() (session.SyncPair, bool) {
	pairs, moves := s.lines()
	switch {
	case s.at < len(pairs):
		return pairs[s.at], true
	case s.at-len(pairs) < len(moves):
		m := moves[s.at-len(pairs)]
		return session.SyncPair{Local: m.Local, Remote: m.Remote}, true
	}
	return session.SyncPair{}, false
}

// transfer is the one under the cursor, else the first that has not ended.
func (s *syncScreen) transfer() *session.TransferView {
	pairs, moves := s.lines()
	if i := s.at - len(pairs); i >= 0 && i < len(moves) && moving(moves[i]) {
		return moves[i]
	}
	for _, m := range moves {
		if moving(m) {
			return m
		}
	}
	return nil
}

func (s *syncScreen) move(n int) func() tea.Cmd {
	return func() tea.Cmd { s.at += n; s.lines(); return nil }
}

func (s *syncScreen) whyNotMove() string {
	if why := s.a.whyNotAct(&s.name)(); why != "" {
		return why
	}
	if _, ok := s.selected(); !ok {
		return s.a.T("why.nopair")
	}
	return ""
}

func (s *syncScreen) whyNotPull() string { return s.a.whyNotAct(&s.name)() }

func (s *syncScreen) whyNotCancel() string {
	if s.transfer() == nil {
		return s.a.T("why.notransfer")
	}
	return ""
}

func (s *syncScreen) cancel() tea.Cmd {
	t := s.transfer()
	id, name := t.ID, s.name
	s.a.push(newConfirm(s.a, s.a.T("canceltransfer.title"), s.a.T("canceltransfer.what"), func() tea.Cmd {
		return s.a.act("", func(context.Context) error { s.a.fleet.CancelTransfer(name, id); return nil })
	}))
	return nil
}

func (s *syncScreen) whyReadonly() string {
	if s.a.opt.Readonly {
		return s.a.T("why.readonly")
	}
	return ""
}

func (s *syncScreen) whyNotChange() string {
	if why := s.whyReadonly(); why != "" {
		return why
	}
	return s.whyNotCancel()
}

// pause stops a transfer for now, or lets it go on.
func (s *syncScreen) pause() tea.Cmd {
	t := s.transfer()
	id, name, on := t.ID, s.name, !t.Paused
	return s.a.act("", func(context.Context) error { s.a.fleet.PauseTransfer(name, id, on); return nil })
}

// reorder moves a waiting transfer, and the cursor with it.
func (s *syncScreen) reorder(forward bool) func() tea.Cmd {
	return func() tea.Cmd {
		t := s.transfer()
		if !s.a.fleet.MoveTransfer(s.name, t.ID, forward) {
			s.a.say(warn, s.a.T("sync.nomove"))
			return nil
		}
		if pairs, _ := s.lines(); s.at >= len(pairs) {
			if s.at++; forward {
				s.at -= 2
			}
		}
		return nil
	}
}

// limit asks for the rate of this instance's transfers.
func (s *syncScreen) limit() tea.Cmd {
	a, name := s.a, s.name
	now := ""
	if v := a.session(name); v != nil && v.Limit > 0 {
		now = fmt.Sprintf("%dK", v.Limit>>10)
	}
	f := &form{a: a, verb: "limit.set", head: a.T("limit.title", name), intro: a.T("limit.intro"), entries: []entry{{id: "limit.rate", f: newSelected(now)}}}
	f.entries[0].f.ghost = a.example("20M")
	f.done = func(v map[string]string) (string, tea.Cmd) {
		n, err := sync.ParseLimit(v["limit.rate"])
		if err != nil {
			return err.Error(), nil
		}
		a.shut()
		return "", a.act("", func(context.Context) error { a.fleet.LimitTransfers(name, n); return nil })
	}
	a.push(f)
	return nil
}

// plan asks what would move; nothing moves before the person has seen it.
func (s *syncScreen) plan(dir sync.Direction) tea.Cmd {
	p, ok := s.selected()
	if !ok {
		return s.other()
	}
	return s.a.plan(s.name, session.TransferSpec{Direction: dir, Local: p.Local, Remote: p.Remote})
}

// other asks for two folders that are not configured.
func (s *syncScreen) other() tea.Cmd {
	a, name := s.a, s.name
	f := &form{a: a, verb: "form.plan", head: a.T("other.title", name), intro: a.T("other.intro"), entries: []entry{
		{id: "other.dir", choice: []string{"push", "pull"}}, {id: "other.local"}, {id: "other.remote"},
	}}
	p, ok := s.selected()
	if !ok {
		p.Local = "."
	}
	f.entries[1].f, f.entries[2].f = newSelected(p.Local), newSelected(p.Remote)
	f.entries[1].f.ghost, f.entries[2].f.ghost = a.example("./data"), a.example("~/project")
	f.at = 1
	f.done = func(v map[string]string) (string, tea.Cmd) {
		spec := session.TransferSpec{Direction: sync.Direction(v["other.dir"]), Local: strings.TrimSpace(v["other.local"]), Remote: strings.TrimSpace(v["other.remote"])}
		if spec.Local == "" || spec.Remote == "" {
			return a.T("other.need"), nil
		}
		a.shut()
		return "", a.plan(name, spec)
	}
	a.push(f)
	return nil
}

func (s *syncScreen) draw(b cell.Area) {
	a := s.a
	v := a.session(s.name)
	if v == nil {
		b.Put(2, 1, a.th.Dim, a.T("why.gone", s.name))
		return
	}
	pairs, moves := s.lines()
	var p page
	rowOf := 0
	head := func(id string) {
		p.add(func(r cell.Area) { r.Put(3, 0, a.th.Heading, a.T(id)) })
	}
	selectable := func(i int, draw func(r cell.Area)) {
		if i == s.at {
			rowOf = len(p.rows)
		}
		p.add(func(r cell.Area) {
			if i == s.at {
				r = r.On(a.th.Selected)
				r.Put(1, 0, a.th.Accent, a.gl.Pointer)
			}
			draw(r.Sub(3, 0, r.W-4, 1))
			a.onClick(r, func() tea.Cmd { s.at = i; return nil })
		})
	}
	head("sync.pairs")
	if len(pairs) == 0 {
		p.text(b.W-4, 3, a.th.Text, a.T("sync.nopairs"))
		p.text(b.W-4, 3, a.th.Dim, `sync = [{ local = ".", remote = "~/project" }]`)
	}
	half := (b.W - 10) / 2
	for i, pr := range pairs {
		selectable(i, func(r cell.Area) {
			n := min(half, max(cell.Width(pr.Local), 12))
			r.PutIn(0, 0, n, a.th.Strong, pr.Local)
			r.Put(n+2, 0, a.th.Faint, a.gl.Arrow)
			r.Put(n+5, 0, a.th.Text, pr.Remote)
		})
	}
	if len(moves) > 0 {
		p.gap()
		p.add(func(r cell.Area) {
			pen := r.Pen(3, 0).Put(a.th.Heading, a.T("sync.transfers"))
			if v.Limit > 0 {
				pen.Put(a.th.Warn, "   "+a.T("sync.limit", speed(float64(v.Limit))))
			}
		})
	}
	for i, m := range moves {
		selectable(len(pairs)+i, func(r cell.Area) { a.transferLine(r, m) })
		if begun(m) || m.Err != "" {
			p.add(func(r cell.Area) { a.transferDetail(r.Sub(5, 0, r.W-6, 1), m) })
		}
		for _, words := range a.transferWire(m) {
			p.text(b.W-6, 5, a.th.Dim, words)
		}
		if m.Result != nil {
			for _, f := range head3(m.Result.Failed) {
				p.text(b.W-6, 5, a.th.Bad, f.Path+": "+errText(f.Err))
			}
		}
	}
	a.savingLines(&p, b.W, v)
	b = b.Sub(0, 1, b.W, b.H-1)
	s.off = scroll(s.off, rowOf, len(p.rows), b.H-1)
	s.off = p.draw(b, s.off)
}

func head3(f []sync.Failure) []sync.Failure { return f[:min(len(f), 3)] }

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// plan makes one in the background and shows it.
func (a *app) plan(name string, spec session.TransferSpec) tea.Cmd {
	d := &planDialog{a: a, name: name, spec: spec}
	a.push(d)
	return d.make()
}

func (d *planDialog) make() tea.Cmd {
	a, name, spec := d.a, d.name, d.spec
	d.p, d.err, d.off = nil, "", 0
	d.turn++
	turn := d.turn
	return a.work(func(ctx context.Context) then {
		p, err := a.fleet.PlanTransfer(ctx, name, spec)
		var o session.Outline
		if err == nil {
			o = a.fleet.Outline(name, spec.Direction, p)
		}
		return func() tea.Cmd {
			if turn != d.turn {
				return nil // a newer plan was asked for
			}
			if d.p, d.outline = p, o; err != nil {
				d.err = err.Error()
			}
			return nil
		}
	})
}
