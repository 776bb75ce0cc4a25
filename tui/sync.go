package tui

// Moving folders: the configured pairs, a plan before anything moves, progress.

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/sync"
	"rentop/themes"
	"rentop/tui/cell"
	"rentop/tui/text"
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
		{id: "down", keys: []string{"j", "down"}, do: s.move(1)},
		{id: "up", keys: []string{"k", "up"}, do: s.move(-1)},
		{id: "first", keys: []string{"g", "home"}, do: s.move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: s.move(1 << 20)},
	}
}

// lines are the pairs, and the transfers newest first.
func (s *syncScreen) lines() (pairs []session.SyncPair, moves []*session.TransferView) {
	v := s.a.session(s.name)
	if v == nil {
		return nil, nil
	}
	for i := len(v.Transfer) - 1; i >= 0; i-- {
		moves = append(moves, &v.Transfer[i])
	}
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

// transfer is the one under the cursor, else the newest that runs.
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

func moving(t *session.TransferView) bool { return t.Result == nil && t.Err == "" && !t.Cancelled }

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

func (s *syncScreen) whyNotPull() string {
	if why := s.a.whyNotAct(&s.name)(); why != "" {
		return why
	}
	return ""
}

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
		head("sync.transfers")
	}
	for i, m := range moves {
		selectable(len(pairs)+i, func(r cell.Area) { a.transferLine(r, m) })
		if moving(m) || m.Err != "" {
			p.add(func(r cell.Area) { a.transferDetail(r.Sub(5, 0, r.W-6, 1), m) })
		}
		if m.Result != nil {
			for _, f := range head3(m.Result.Failed) {
				p.text(b.W-6, 5, a.th.Bad, f.Path+": "+errText(f.Err))
			}
		}
	}
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

// transferRows adds an instance's transfers to its page: those that move, and the last.
func (p *page) transferRows(l *look, s *session.View, w int) {
	shown := 0
	for i := len(s.Transfer) - 1; i >= 0 && shown < 4; i-- {
		t := &s.Transfer[i]
		if !moving(t) && shown > 0 {
			continue
		}
		shown++
		label := ""
		if shown == 1 {
			label = l.T("act.sync")
		}
		p.add(func(r cell.Area) {
			r.PutIn(0, 0, gutter-1, l.th.Heading, label)
			l.transferLine(r.Sub(gutter, 0, r.W-gutter, 1), t)
		})
		if moving(t) {
			p.add(func(r cell.Area) { l.transferDetail(r.Sub(gutter+2, 0, r.W-gutter-2, 1), t) })
		}
	}
}

// transferLine is one transfer: what, how far, how fast.
func (l *look) transferLine(r cell.Area, t *session.TransferView) {
	sign, from, to := l.gl.Up, t.Local, t.Remote
	if t.Direction == sync.Pull {
		sign, from, to = l.gl.Down, t.Remote, t.Local
	}
	state, st := l.transferState(t)
	r.Put(0, 0, l.th.Accent, sign)
	w := cell.Width(state)
	r.Right(0, 0, r.W, st, state)
	r.PutIn(2, 0, r.W-w-5, l.th.Text, from+" "+l.gl.Arrow+" "+to)
}

func (l *look) transferState(t *session.TransferView) (string, themes.Style) {
	switch {
	case t.Cancelled:
		return l.gl.No + " " + l.T("transfer.cancelled"), l.th.Dim
	case t.Err != "":
		return l.gl.No + " " + l.T("transfer.failed"), l.th.Bad
	case t.Result != nil && len(t.Result.Failed) > 0:
		return l.gl.No + " " + l.N("transfer.failures", len(t.Result.Failed)), l.th.Bad
	case t.Result != nil:
		s := l.gl.Yes + " " + l.N("transfer.done", len(t.Result.Sent), size(float64(t.Result.Bytes)), text.Dur(t.Result.Took))
		if t.Result.Verified {
			s += " " + l.gl.Dot + " " + l.T("transfer.verified")
		}
		return s, l.th.Good
	}
	return l.stage(t.Progress.Stage), l.th.Text
}

func (l *look) stage(s string) string {
	if l.tx.Has("stage." + s) {
		return l.T("stage." + s)
	}
	return s
}

// transferDetail is the bar with its numbers, or the error.
func (l *look) transferDetail(r cell.Area, t *session.TransferView) {
	if t.Err != "" {
		r.Put(0, 0, l.th.Bad, t.Err)
		return
	}
	p := &t.Progress
	words := fmt.Sprintf("%s/%s", size(float64(p.Bytes)), size(float64(p.BytesAll)))
	if p.Rate > 0 {
		words += "  " + speed(p.Rate)
	}
	if p.Left >= 0 && p.BytesAll > 0 {
		words += "  " + l.T("transfer.left", text.Dur(p.Left))
	}
	words += "  " + l.N("transfer.files", int(p.FilesAll), p.Files)
	if p.Transport != "" {
		words += "  " + p.Transport
	}
	n := min(max(r.W/4, 8), 40)
	done := 0.0
	if p.BytesAll > 0 {
		done = float64(p.Bytes) / float64(p.BytesAll)
	}
	r.Bar(0, 0, n, l.th.Accent, l.th.Faint, &l.gl, done)
	x := n + 2 + r.Put(n+2, 0, l.th.Dim, words)
	if p.FailedSoon > 0 {
		x += 2 + r.Put(x+2, 0, l.th.Bad, l.N("transfer.failures", p.FailedSoon))
	}
	if left := r.W - x - 3; left > 12 && p.Current != "" {
		r.PutIn(x+3, 0, left, l.th.Faint, p.Current)
	}
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
		return func() tea.Cmd {
			if turn != d.turn {
				return nil // a newer plan was asked for
			}
			if d.p = p; err != nil {
				d.err = err.Error()
			}
			return nil
		}
	})
}
