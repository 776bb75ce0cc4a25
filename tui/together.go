package tui

// Together: the releases of the marked instances beside each other. Each has its own
// list and its own name to type, on its own screen.

import (
	tea "charm.land/bubbletea/v2"

	"rentop/session/release"
	"rentop/themes"
	"rentop/tui/cell"
)

type togetherScreen struct {
	a     *app
	names []string
	at    int
	off   int
}

func newTogether(a *app, names []string) *togetherScreen { return &togetherScreen{a: a, names: names} }

func (s *togetherScreen) of() string    { return "" }
func (s *togetherScreen) title() string { return s.a.N("rel.together", len(s.names)) }
func (s *togetherScreen) close()        {}
func (s *togetherScreen) wheel(n int)   { s.move(n)() }

func (s *togetherScreen) move(n int) func() tea.Cmd {
	return func() tea.Cmd { s.at = min(max(s.at+n, 0), len(s.names)-1); return nil }
}

// one is the release screen of one of them: what it allows is allowed here.
func (s *togetherScreen) one(name string) *releaseScreen { return newRelease(s.a, name) }

func (s *togetherScreen) actions() []action {
	return []action{
		{id: "relone", keys: []string{"enter", "right"}, foot: true, do: func() tea.Cmd { s.a.open(s.one(s.names[s.at])); return nil }},
		{id: "relcheck", keys: []string{"c"}, foot: true, why: s.whyNotBegin(release.CheckOnly), do: s.begin(release.CheckOnly)},
		{id: "relstop", keys: []string{"s"}, foot: true, why: s.whyNotBegin(release.Stop), do: s.begin(release.Stop)},
		{id: "reldestroy", keys: []string{"d"}, foot: true, why: s.whyNotBegin(release.Destroy), do: s.begin(release.Destroy)},
		{id: "relcancel", keys: []string{"x"}, foot: true, why: s.whyNotCancel, do: s.cancel},
		{id: "down", keys: []string{"j", "down"}, do: s.move(1)},
		{id: "up", keys: []string{"k", "up"}, do: s.move(-1)},
		{id: "first", keys: []string{"g", "home"}, do: s.move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: s.move(1 << 20)},
	}
}

// mayBegin says why a release of one cannot begin; "" where it can.
func (s *togetherScreen) mayBegin(name string, g release.Goal) string {
	one := s.one(name)
	if !finished(one.now()) {
		return s.a.T("why.underway", name)
	}
	return one.whyNotBegin(g)()
}

// whyNotBegin is why none can begin.
func (s *togetherScreen) whyNotBegin(g release.Goal) func() string {
	return func() string {
		why := ""
		for _, name := range s.names {
			if why = s.mayBegin(name, g); why == "" {
				return ""
			}
		}
		return why
	}
}

// begin starts all that can, and says which cannot.
func (s *togetherScreen) begin(g release.Goal) func() tea.Cmd {
	return func() tea.Cmd {
		var all []tea.Cmd
		for _, name := range s.names {
			if why := s.mayBegin(name, g); why != "" {
				s.a.say(warn, name+": "+why)
				continue
			}
			all = append(all, s.one(name).begin(g)())
		}
		return tea.Batch(all...)
	}
}

// mayCancel says why there is nothing of one to cancel; "" where there is.
func (s *togetherScreen) mayCancel(name string) string {
	one := s.one(name)
	if finished(one.now()) {
		return s.a.T("why.nonebegun")
	}
	return one.whyNotCancel()
}

func (s *togetherScreen) whyNotCancel() string {
	why := ""
	for _, name := range s.names {
		if why = s.mayCancel(name); why == "" {
			return ""
		}
	}
	return why
}

// cancel calls off all that can be: a check that was looked at, before a stop.
func (s *togetherScreen) cancel() tea.Cmd {
	var all []tea.Cmd
	for _, name := range s.names {
		if s.mayCancel(name) == "" {
			all = append(all, s.one(name).decide(release.Decision{Kind: release.DecideCancel}))
		}
	}
	return tea.Batch(all...)
}

func (s *togetherScreen) draw(b cell.Area) {
	a := s.a
	b = b.Inset(2, 1)
	var p page
	p.text(b.W, 0, a.th.Text, a.T("rel.together.intro"))
	p.gap()
	nameW := 0
	for _, name := range s.names {
		nameW = max(nameW, min(cell.Width(name), 28))
	}
	from, to := 0, 0 // the selected one's rows
	for i, name := range s.names {
		first := len(p.rows)
		s.line(&p, b.W, nameW, i, name)
		if i == s.at {
			from, to = first, len(p.rows)-1
		}
	}
	s.off = scroll(scroll(s.off, to, len(p.rows), b.H-1), from, len(p.rows), b.H-1)
	s.off = p.drawMore(&a.look, b, s.off)
}

// line is one of them: where it stands, and what stands against it.
func (s *togetherScreen) line(p *page, w, nameW, i int, name string) {
	a := s.a
	r := s.one(name).now()
	sign, st, where, more := s.standing(name, r)
	p.add(func(row cell.Area) {
		if i == s.at {
			row = row.On(a.th.Selected)
			row.Put(0, 0, a.th.Accent, a.gl.Pointer)
		}
		row.Put(2, 0, st, sign)
		row.PutIn(4, 0, nameW, a.th.Strong, name)
		row.Pen(4+nameW+2, 0).Put(st, where).Skip(2).Put(a.th.Text, more)
	})
	in := 4 + nameW + 2
	switch {
	case r == nil:
	case r.Phase == release.Review:
		p.text(w, in, a.th.Good, a.S(r.Proof))
		if r.Cost != "" {
			p.text(w, in, a.th.Text, a.T("rel.cost", r.Cost))
		}
	case len(r.Why) > 0:
		p.text(w, in, a.th.Bad, a.gl.Alert+" "+a.S(r.Why))
	}
}

// standing is a sign and words for where a release stands.
func (s *togetherScreen) standing(name string, r *release.View) (sign string, st themes.Style, where, more string) {
	a := s.a
	if r == nil {
		if a.session(name) == nil {
			return a.gl.No, a.th.Dim, a.T("why.gone", name), ""
		}
		return a.gl.Dot, a.th.Dim, a.T("rel.notbegun"), ""
	}
	where = a.T("phase." + string(r.Phase))
	switch r.Phase {
	case release.Waiting:
		n := len(r.Fails())
		if n == 0 {
			return a.gl.Yes, a.th.Good, where, a.T("rel.allsafe")
		}
		more = a.N("rel.somefail", n, len(r.Checks))
		if r.LostSize > 0 {
			more += "  " + a.T("rel.wouldlose", size(float64(r.LostSize)))
		}
		return a.gl.No, a.th.Warn, where, more
	case release.Stuck:
		return a.gl.Alert, a.th.Bad, where, ""
	case release.Review:
		return a.gl.Yes, a.th.Good, where, ""
	case release.Cancelled:
		return "-", a.th.Dim, where, ""
	case release.Checking:
		done := 0
		for i := range r.Checks {
			if c := r.Checks[i].State; c != release.Pending && c != release.Active {
				done++
			}
		}
		more = a.T("rel.progress", done, len(r.Checks))
	}
	return a.gl.Busy, a.th.Accent, where, more
}
