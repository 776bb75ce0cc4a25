package tui

// Alarms beyond the screen: the terminal's bell, and a notification that the terminal
// hands to the desktop. Both go through the terminal, so over SSH too.

import (
	tea "charm.land/bubbletea/v2"

	"rentop/remote"
	"rentop/session"
	"rentop/tui/cell"
)

// Ring says which alarms are heard, and how.
type Ring struct {
	Bell    bool
	Desktop bool // OSC 9: iTerm2, kitty, WezTerm, Ghostty, foot, Windows Terminal
	Least   session.Level
}

// ring is what a new view's alarms do beyond the screen; nil where nothing is new.
func (a *app) ring() tea.Cmd {
	r := a.opt.Ring
	if !r.Bell && !r.Desktop || a.opt.player != nil {
		return nil
	}
	now := map[string]bool{}
	var fresh []alert
	for i := range a.v.Sessions {
		s := &a.v.Sessions[i]
		for _, al := range s.Alerts {
			key := s.Name + "\x00" + al.ID
			now[key] = true
			if !a.heard[key] && al.Level >= r.Least {
				fresh = append(fresh, alert{s, al})
			}
		}
	}
	a.heard = now
	if len(fresh) == 0 {
		return nil
	}
	out := ""
	if r.Desktop {
		out = notification(a.notice(fresh))
	}
	if r.Bell {
		out += "\a"
	}
	return tea.Raw(out)
}

// notice is one line for all that is new.
func (a *app) notice(fresh []alert) string {
	first := fresh[0]
	for _, al := range fresh {
		if al.Level > first.Level {
			first = al
		}
	}
	s := "rentop: " + first.of.Name + ": " + a.S(first.Text)
	if n := len(fresh) - 1; n > 0 {
		s += a.T("ring.more", n)
	}
	return s
}

// notification is OSC 9 with a text of an instance: clean, so that it cannot end the
// sequence, and short.
func notification(s string) string {
	return "\x1b]9;" + cell.Cut(remote.Clean(s), 200) + "\x1b\\"
}
