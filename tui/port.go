package tui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
)

// port asks for a port of an instance and brings it to this machine; one that is here
// already is closed.
func (a *app) port(instance string) tea.Cmd {
	f := &form{a: a, verb: "port.open", head: a.T("port.title", instance), intro: a.T("port.intro"), entries: []entry{{id: "port.which", f: newSelected("")}}}
	f.entries[0].f.ghost = a.example("8888")
	f.done = func(v map[string]string) (string, tea.Cmd) {
		which := strings.TrimSpace(v["port.which"])
		return "", a.work(func(ctx context.Context) then {
			if a.fleet.ClosePort(instance, which) {
				return func() tea.Cmd {
					f.ended(nil)
					a.say(info, a.T("port.closed", which, instance))
					return nil
				}
			}
			p, err := a.fleet.OpenPort(ctx, instance, which)
			return func() tea.Cmd {
				if f.ended(err); err == nil {
					a.say(info, a.T("port.is", p.Here, p.There, instance))
				}
				return nil
			}
		})
	}
	a.push(f)
	return nil
}

// portRows are the ports of an instance that are here.
func (p *page) portRows(l *look, s *session.View, w int) {
	for _, port := range s.Ports {
		line, st := l.T("port.row", port.Here, port.There), l.th.Accent
		if len(port.Why) > 0 {
			line, st = line+" "+l.gl.Dot+" "+l.S(port.Why), l.th.Warn
		}
		p.text(w, 2, st, line)
	}
}
