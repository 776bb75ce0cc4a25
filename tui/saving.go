package tui

// Saving artifacts as they are finished, on the screen of transfers.

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/tui/cell"
)

func (s *syncScreen) saving() bool {
	v := s.a.session(s.name)
	return v != nil && v.Saving != nil && !v.Saving.Ended
}

func (s *syncScreen) whyNotSave() string {
	if s.saving() { // it can always be ended
		return s.whyReadonly()
	}
	if why := s.a.whyNotAct(&s.name)(); why != "" {
		return why
	}
	if v := s.a.session(s.name); v == nil || v.Artifacts == 0 {
		return s.a.T("why.noartifacts")
	}
	return ""
}

func (s *syncScreen) keepSaving() tea.Cmd {
	name, on := s.name, !s.saving()
	return s.a.act("", func(context.Context) error { return s.a.fleet.KeepSaving(name, on) })
}

// savingLines say what is saved as it is finished, where artifacts are configured.
func (a *app) savingLines(p *page, width int, v *session.View) {
	if v.Artifacts == 0 {
		return
	}
	p.gap()
	p.add(func(r cell.Area) { r.Put(3, 0, a.th.Heading, a.T("saving.head")) })
	g := v.Saving
	switch {
	case g == nil:
		p.text(width-4, 3, a.th.Dim, a.T("saving.off"))
		return
	case g.Ended:
		p.text(width-4, 3, a.th.Bad, a.T("saving.ended", g.Err))
		return
	case g.At.IsZero():
		p.text(width-4, 3, a.th.Text, a.T("saving.none", since(g.Since, a.now)))
	default:
		p.text(width-4, 3, a.th.Good, a.N("saving.on", g.Files, size(float64(g.Bytes)), since(g.At, a.now)))
		p.text(width-6, 5, a.th.Dim, g.Last)
	}
	if g.Err != "" {
		p.text(width-6, 5, a.th.Warn, g.Err)
	}
}
