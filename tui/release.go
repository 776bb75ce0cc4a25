package tui

// Release: the checklist with its evidence, then a typed name, then the proof.

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/session/release"
	"rentop/themes"
	"rentop/tui/cell"
)

type releaseScreen struct {
	a    *app
	name string
	off  int
	room int
	all  bool // every line's evidence
}

func newRelease(a *app, instance string) *releaseScreen { return &releaseScreen{a: a, name: instance} }

func (s *releaseScreen) of() string    { return s.name }
func (s *releaseScreen) title() string { return s.a.T("act.release") }
func (s *releaseScreen) close()        {}
func (s *releaseScreen) wheel(n int)   { s.off += n }

// now is the release under way, nil where there is none.
func (s *releaseScreen) now() *release.View {
	if v := s.a.session(s.name); v != nil {
		return v.Release
	}
	return nil
}

// finished says that nothing of the release goes on.
func finished(r *release.View) bool {
	return r == nil || r.Phase == release.Review || r.Phase == release.Cancelled
}

func (s *releaseScreen) actions() []action {
	move := func(n int) func() tea.Cmd { return func() tea.Cmd { s.off += n; return nil } }
	list := []action{
		{id: "down", keys: []string{"j", "down"}, do: move(1)},
		{id: "up", keys: []string{"k", "up"}, do: move(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f", "space"}, do: func() tea.Cmd { s.off += s.room; return nil }},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: func() tea.Cmd { s.off -= s.room; return nil }},
		{id: "first", keys: []string{"g", "home"}, do: move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: move(1 << 20)},
		{id: "evidence", keys: []string{"e"}, do: func() tea.Cmd { s.all = !s.all; return nil }},
	}
	if finished(s.now()) {
		return append([]action{
			{id: "relcheck", keys: []string{"c"}, foot: true, why: s.whyNotBegin(release.CheckOnly), do: s.begin(release.CheckOnly)},
			{id: "relstop", keys: []string{"s"}, foot: true, why: s.whyNotBegin(release.Stop), do: s.begin(release.Stop)},
			{id: "reldestroy", keys: []string{"d"}, foot: true, why: s.whyNotBegin(release.Destroy), do: s.begin(release.Destroy)},
		}, list...)
	}
	decide := func(d release.Decision) func() tea.Cmd { return func() tea.Cmd { return s.decide(d) } }
	return append([]action{
		{id: "relgo", keys: []string{"enter"}, foot: true, why: s.whyNotGo, do: s.typeName},
		{id: "relpull", keys: []string{"p"}, foot: true, why: s.whyNotPull, do: decide(release.Decision{Kind: release.DecidePull})},
		{id: "relsnap", keys: []string{"w"}, foot: true, why: s.whyNotSnap, do: s.snapshot},
		{id: "relagain", keys: []string{"a"}, foot: true, why: s.whyNotHeard, do: decide(release.Decision{Kind: release.DecideAgain})},
		{id: "relcancel", keys: []string{"x"}, foot: true, why: s.whyNotCancel, do: decide(release.Decision{Kind: release.DecideCancel})},
	}, list...)
}

func (s *releaseScreen) whyNotBegin(g release.Goal) func() string {
	return func() string {
		a := s.a
		if g != release.CheckOnly {
			if why := a.whyReadonly(); why != "" {
				return why
			}
		}
		v := a.session(s.name)
		switch {
		case v == nil:
			return a.T("why.gone", s.name)
		case v.State == session.Gone:
			return a.T("why.isgone", s.name)
		case g == release.Stop && v.Provider != "" && !v.CanStop:
			return a.T("why.nostop", v.Provider)
		case g == release.Destroy && v.Provider != "" && !v.CanDestroy:
			return a.T("why.nodestroy", v.Provider)
		}
		return ""
	}
}

func (s *releaseScreen) begin(g release.Goal) func() tea.Cmd {
	return func() tea.Cmd {
		s.off = 0
		name := s.name
		return s.a.act("", func(context.Context) error { return s.a.fleet.StartRelease(name, g) })
	}
}

func (s *releaseScreen) decide(d release.Decision) tea.Cmd {
	name := s.name
	return s.a.act("", func(context.Context) error { return s.a.fleet.Decide(name, d) })
}

// whyNotHeard: most words are heard only while the checklist waits.
func (s *releaseScreen) whyNotHeard() string {
	if why := s.a.whyReadonly(); why != "" {
		return why
	}
	if r := s.now(); r == nil || r.Phase != release.Waiting && r.Phase != release.Stuck {
		return s.a.T("why.notwaiting")
	}
	return ""
}

func (s *releaseScreen) whyNotGo() string {
	if why := s.whyNotHeard(); why != "" {
		return why
	}
	switch r := s.now(); {
	case r.Goal == release.CheckOnly:
		return s.a.T("why.checkonly")
	case r.Phase != release.Waiting:
		return s.a.T("why.notwaiting")
	}
	return ""
}

func (s *releaseScreen) whyNotPull() string {
	if why := s.whyNotHeard(); why != "" {
		return why
	}
	switch files, others := s.now().Losses(); {
	case files > 0 || s.now().Commits > 0:
		return ""
	case others > 0:
		return s.a.T("why.nofiles")
	}
	return s.a.T("why.nothinglost")
}

func (s *releaseScreen) whyNotSnap() string {
	if why := s.whyNotHeard(); why != "" {
		return why
	}
	if len(s.now().Snapshots) == 0 {
		return s.a.T("why.nosnapshot")
	}
	return ""
}

func (s *releaseScreen) whyNotCancel() string {
	if r := s.now(); r != nil && (r.Phase == release.Tearing || r.Phase == release.Proving) {
		return s.a.T("why.tearing")
	}
	return s.a.whyReadonly()
}

// snapshot asks which kind to take; none is an answer too.
func (s *releaseScreen) snapshot() tea.Cmd {
	a := s.a
	var kinds []string
	for _, k := range s.now().Snapshots {
		kinds = append(kinds, string(k))
	}
	kinds = append(kinds, string(release.NoSnapshot))
	f := &form{a: a, head: a.T("snap.title"), verb: "form.choose", intro: a.T("snap.intro"), entries: []entry{{id: "snap.kind", choice: kinds}}}
	f.done = func(v map[string]string) (string, tea.Cmd) {
		a.shut()
		return "", s.decide(release.Decision{Kind: release.DecideSnapshot, Snapshot: release.SnapshotKind(v["snap.kind"])})
	}
	a.push(f)
	return nil
}

// typeName asks for the instance's name: with it the failing lines, exactly as
// they are shown now, are waived.
func (s *releaseScreen) typeName() tea.Cmd {
	a, r := s.a, s.now()
	shown, fails := r.Shown, r.Fails()
	intro := a.T("confirm.safe", s.name)
	if n := len(fails); n > 0 { // by name: the dialog hides the list
		var names []string
		for i := range fails {
			names = append(names, a.T("check."+string(fails[i].ID)))
		}
		intro = a.N("confirm.fails", n, s.name, strings.Join(names, ", "))
		if r.LostSize > 0 {
			intro += a.T("confirm.lost."+string(r.Goal), size(float64(r.LostSize)))
		}
	}
	intro += a.T("confirm.name." + string(r.Goal))
	f := &form{a: a, head: a.T("confirm.title." + string(r.Goal)), intro: intro, verb: "form.do." + string(r.Goal), entries: []entry{{id: "typename"}}}
	f.done = func(v map[string]string) (string, tea.Cmd) {
		if v["typename"] != s.name {
			return a.T("typename.not", s.name), nil
		}
		a.shut()
		return "", s.decide(release.Decision{Kind: release.DecideName, Name: v["typename"], Shown: shown})
	}
	a.push(f)
	return nil
}

func (s *releaseScreen) draw(b cell.Area) {
	a := s.a
	v := a.session(s.name)
	if v == nil {
		b.Put(2, 1, a.th.Dim, a.T("why.gone", s.name))
		return
	}
	b = b.Inset(2, 1)
	s.room = max(b.H-1, 1)
	var p page
	r := v.Release
	if r == nil {
		s.choice(&p, v, b.W)
	} else {
		s.phase(&p, r, b.W)
		p.gap()
		for i := range r.Checks {
			s.check(&p, r, &r.Checks[i], b.W)
		}
		s.after(&p, r, b.W)
	}
	s.off = p.drawMore(&a.look, b, s.off)
}

// choice says what can be done, before a release begins.
func (s *releaseScreen) choice(p *page, v *session.View, w int) {
	a := s.a
	p.text(w, 0, a.th.Text, a.T("rel.intro", s.name))
	p.gap()
	for _, x := range s.actions()[:3] {
		st := a.th.Strong
		why := x.why()
		if why != "" {
			st = a.th.Faint
		}
		p.add(func(r cell.Area) {
			r.Put(0, 0, a.th.Key, a.keyName(a.keysOf(x)[0]))
			r.Put(3, 0, st, a.T("act."+x.id))
		})
		p.text(w, 3, a.th.Dim, a.T("act."+x.id+".help"))
		if why != "" {
			p.text(w, 3, a.th.Warn, why)
		}
		p.gap()
	}
	switch {
	case v.Provider == "":
		p.text(w, 0, a.th.Warn, a.T("rel.noprovider"))
	case v.Saved.Known && v.Saved.Files > 0:
		p.text(w, 0, a.th.Warn, a.gl.Alert+" "+a.N("rel.unsaved", v.Saved.Files, size(float64(v.Saved.Bytes))))
	}
}

// phase is the head: where it stands, and what it waits for.
func (s *releaseScreen) phase(p *page, r *release.View, w int) {
	a := s.a
	st := a.th.Strong
	switch r.Phase {
	case release.Stuck:
		st = a.th.Bad
	case release.Review:
		st = a.th.Good
	}
	p.add(func(row cell.Area) {
		pen := row.Pen(0, 0).Put(st, a.T("phase."+string(r.Phase))).Skip(2)
		if !finished(r) {
			pen.Put(a.th.Dim, a.T("goal."+string(r.Goal))).Skip(2).Put(a.th.Dim, a.T("rel.since", since(r.StartedAt, a.now)))
		}
	})
	if r.Resumed {
		p.text(w, 0, a.th.Warn, a.T("rel.resumed"))
	}
	if len(r.Why) > 0 {
		p.text(w, 0, a.th.Bad, a.gl.Alert+" "+a.S(r.Why))
	}
	if r.Phase == release.Waiting && r.Goal != release.CheckOnly {
		if n := len(r.Fails()); n > 0 {
			p.text(w, 0, a.th.Warn, a.N("rel.fails", n))
			if traffic := r.PullTraffic; traffic != "" && r.LostSize > 0 {
				if traffic != "?" {
					traffic = a.T("plan.atmost", traffic)
				}
				p.text(w, 0, a.th.Dim, a.T("rel.bringing", size(float64(r.LostSize)), traffic))
			}
		} else {
			p.text(w, 0, a.th.Good, a.T("rel.ready"))
		}
	}
}

// check is a line of the list, with its evidence where it fails.
func (s *releaseScreen) check(p *page, r *release.View, c *release.Check, w int) {
	a := s.a
	sign, st := a.checkSign(c.State)
	const label = 14
	summary := a.S(c.Summary)
	if finished(r) && c.State == release.Offered { // it can be taken no more
		sign, st, summary = "-", a.th.Dim, a.T("rel.nosnapshot")
	}
	if c.State == release.Waived {
		summary += " (" + a.T("rel.waived") + ")"
	}
	lines := cell.Wrap(summary, max(w-label-3, 10))
	for i, line := range lines {
		p.add(func(row cell.Area) {
			if i == 0 {
				row.Put(0, 0, st, sign)
				row.PutIn(2, 0, label, a.th.Strong, a.T("check."+string(c.ID)))
			}
			row.Put(label+3, 0, a.th.Text, line)
		})
	}
	failing := c.State == release.Failed || c.State == release.Unknown
	show := 0
	if failing {
		show = 6
	}
	if s.all {
		show = len(c.Evidence)
	}
	for i := range c.Evidence {
		if i == show {
			if n := len(c.Evidence) - show; failing {
				p.add(func(row cell.Area) {
					row.Put(label+3, 0, a.th.Dim, a.T("rel.more", n, a.keyHelp("evidence")))
				})
			}
			break
		}
		e := &c.Evidence[i]
		p.add(func(row cell.Area) {
			row = row.Sub(label+3, 0, row.W-label-3, 1)
			st := a.th.Dim
			if e.Lost {
				st = a.th.Text
			}
			x := 0
			if e.Size >= 0 {
				row.Right(0, 0, 6, st, size(float64(e.Size)))
				x = 8
			}
			room := row.W - x
			detail := a.S(e.Detail)
			if detail != "" {
				room = max(room-2-cell.Width(detail), room/2)
			}
			n := row.PutPath(x, 0, room, themes.Style{FG: st.FG}, e.What)
			if detail != "" {
				row.Put(x+n+2, 0, a.th.Dim, detail)
			}
		})
	}
	if failing && len(c.Cure) > 0 {
		p.text(w, label+3, a.th.Accent, a.gl.Arrow+" "+a.S(c.Cure))
	}
}

func (l *look) checkSign(s release.CheckState) (string, themes.Style) {
	switch s {
	case release.Passed:
		return l.gl.Yes, l.th.Good
	case release.Failed:
		return l.gl.No, l.th.Bad
	case release.Unknown:
		return "?", l.th.Bad
	case release.Waived:
		return "-", l.th.Warn
	case release.Offered:
		return l.gl.Pointer, l.th.Accent
	case release.Active:
		return l.gl.Busy, l.th.Accent
	}
	return l.gl.Dot, l.th.Faint
}

// after is what goes on costing money, and at the end the proof and the bill.
func (s *releaseScreen) after(p *page, r *release.View, w int) {
	a := s.a
	p.gap()
	for i, g := range r.GoesOn {
		label := ""
		if i == 0 {
			label = a.T("rel.goeson")
		}
		p.add(func(row cell.Area) {
			row.PutIn(2, 0, 14, a.th.Heading, label)
			n := row.PutIn(17, 0, row.W-17-20, a.th.Text, a.S(g.What))
			row.Put(17+n+2, 0, a.th.Warn, a.T("rel.permonth", g.PerMonth))
		})
	}
	if r.StopNote != "" && r.Goal == release.Stop {
		p.text(w, 17, a.th.Dim, r.StopNote)
	}
	if r.Pulled > 0 {
		p.gap()
		p.text(w, 2, a.th.Good, a.gl.Down+" "+a.N("rel.pulled", r.Pulled, r.PulledTo))
	}
	if finished(r) {
		p.gap()
		if len(r.Proof) > 0 {
			p.text(w, 2, a.th.Good, a.gl.Yes+" "+a.S(r.Proof))
		}
		if r.Cost != "" {
			p.text(w, 2, a.th.Strong, a.T("rel.cost", r.Cost))
		}
		for _, l := range r.Review {
			p.text(w, 4, a.th.Text, a.S(l))
		}
	}
}
