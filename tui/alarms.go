package tui

// What alarms have said, of one instance or of all: what lasts first, then the newest.

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/themes"
	"rentop/tui/cell"
	"rentop/tui/text"
)

type alarms struct {
	a      *app
	only   string // an instance; "" is all
	filter string
	least  session.Level
	sel    string // the selected alarm
	at     int
	off    int
}

// saidAlarm is an alarm and whose it is.
type saidAlarm struct {
	of    string
	lasts bool
	session.PastAlert
}

func (s *saidAlarm) key() string { return s.of + "\x00" + s.ID + s.Since.String() }

func (a *app) openAlarms(instance string) tea.Cmd {
	a.open(&alarms{a: a, only: instance})
	return nil
}

func (s *alarms) of() string     { return s.only }
func (s *alarms) title() string  { return s.a.T("act.alarms") }
func (s *alarms) close()         {}
func (s *alarms) wheel(n int)    { s.move(n)() }
func (s *alarms) filtered() bool { return s.filter != "" }

func (s *alarms) clear() bool {
	had := s.filter != ""
	s.filter = ""
	return had
}

func (s *alarms) actions() []action {
	a := s.a
	return []action{
		{id: "open", keys: []string{"enter"}, foot: s.only == "", why: s.whyNone, do: func() tea.Cmd { a.open(newInstance(a, s.selected().of)); return nil }},
		{id: "silence", keys: []string{"K"}, foot: true, why: s.whyNotSilence, do: s.silence},
		{id: "level", keys: []string{"l", "tab"}, foot: true, do: func() tea.Cmd { s.least = (s.least + 1) % (session.Urgent + 1); return nil }},
		{id: "filter", keys: []string{"/"}, foot: true, do: func() tea.Cmd { a.push(newFilter(a, &s.filter)); return nil }},
		{id: "down", keys: []string{"j", "down"}, do: s.move(1)},
		{id: "up", keys: []string{"k", "up"}, do: s.move(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f", "space"}, do: s.move(10)},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: s.move(-10)},
		{id: "first", keys: []string{"g", "home"}, do: s.move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: s.move(1 << 20)},
	}
}

// list is what is shown; the selection is settled.
func (s *alarms) list() []saidAlarm {
	a := s.a
	var all []saidAlarm
	for i := range a.v.Sessions {
		v := &a.v.Sessions[i]
		if s.only != "" && v.Name != s.only {
			continue
		}
		all = append(all, alarmsSaid(v)...)
	}
	keep := matcher(s.filter)
	all = slices.DeleteFunc(all, func(x saidAlarm) bool { return x.Level < s.least || !keep(x.of+" "+x.ID+" "+a.S(x.Text)) })
	slices.SortStableFunc(all, func(x, y saidAlarm) int {
		if x.lasts != y.lasts {
			if x.lasts {
				return -1
			}
			return 1
		}
		return y.Since.Compare(x.Since)
	})
	at := slices.IndexFunc(all, func(x saidAlarm) bool { return x.key() == s.sel })
	if at < 0 {
		at = min(max(s.at, 0), max(len(all)-1, 0))
	}
	if s.at, s.sel = at, ""; at < len(all) {
		s.sel = all[at].key()
	}
	return all
}

// alarmsSaid are an instance's, also those that are shown and not remembered.
func alarmsSaid(v *session.View) []saidAlarm {
	var out []saidAlarm
	there := map[string]bool{}
	for _, p := range v.PastAlerts {
		lasts := p.Ended.IsZero() && !p.Unseen
		there[p.ID] = there[p.ID] || lasts
		out = append(out, saidAlarm{v.Name, lasts, p})
	}
	for _, al := range v.Alerts {
		if !there[al.ID] {
			out = append(out, saidAlarm{v.Name, true, session.PastAlert{Alert: al}})
		}
	}
	return out
}

func (s *alarms) selected() *saidAlarm {
	list := s.list()
	if len(list) == 0 {
		return nil
	}
	return &list[s.at]
}

func (s *alarms) move(n int) func() tea.Cmd {
	return func() tea.Cmd {
		if list := s.list(); len(list) > 0 {
			s.at = min(max(s.at+n, 0), len(list)-1)
			s.sel = list[s.at].key()
		}
		return nil
	}
}

func (s *alarms) whyNone() string {
	if s.selected() == nil {
		return s.a.T("alarms.none")
	}
	return ""
}

func (s *alarms) whyNotSilence() string {
	if why := s.whyNone(); why != "" {
		return why
	}
	if !s.selected().lasts {
		return s.a.T("alarms.over")
	}
	return ""
}

// silence keeps the selected alarm quiet for an hour, or lets it be said again.
func (s *alarms) silence() tea.Cmd {
	x := s.selected()
	if x.Silenced.After(s.a.now) {
		s.a.fleet.Keep(x.of, x.ID, 0)
		s.a.say(info, s.a.T("alarms.said", x.of))
		return nil
	}
	s.a.fleet.Keep(x.of, x.ID, time.Hour)
	s.a.say(info, s.a.N("kept", 1, x.of))
	return nil
}

func (s *alarms) draw(b cell.Area) {
	a := s.a
	b = b.Inset(0, 1)
	list := s.list()
	p := b.Pen(3, 0).Put(a.th.Dim, a.T("alarms.least")).Skip(1).Put(a.th.Strong, a.levelWord(s.least))
	if s.filter != "" {
		p.Skip(3).Put(a.th.Dim, "/").Put(a.th.Warn, cell.Cut(s.filter, 40))
	}
	if len(list) == 0 {
		b.Put(3, 2, a.th.Text, a.T("alarms.none"))
		return
	}
	t := fit(s.cols(list), b.W-4)
	t.heading(b.Sub(3, 2, b.W-4, 1), &a.look, "", false)
	const detail = 5
	room := max(b.H-3-detail, 1)
	s.off = scroll(s.off, s.at, len(list), room)
	for y := 0; y < room && s.off+y < len(list); y++ {
		x := &list[s.off+y]
		r := b.Row(3 + y)
		if s.off+y == s.at {
			r = r.On(a.th.Selected)
			r.Put(1, 0, a.th.Accent, a.gl.Pointer)
		}
		t.row(r.Sub(3, 0, r.W-4, 1), x)
		key := x.key()
		a.onClick(r, func() tea.Cmd { s.sel = key; return nil })
	}
	if more := len(list) - s.off - room; more > 0 {
		b.Right(0, 2, b.W-1, a.th.Dim, a.gl.Down+a.T("more", more))
	}
	s.drawDetail(b.Sub(3, 3+min(room, len(list)), b.W-6, b.H-3-min(room, len(list))), &list[s.at])
}

// drawDetail is the selected alarm with all of its evidence.
func (s *alarms) drawDetail(b cell.Area, x *saidAlarm) {
	a := s.a
	b.Rule(0, a.th.Faint, a.gl.Rule)
	y := 1
	for _, l := range cell.Wrap(x.of+": "+a.S(x.Text), b.W) {
		if y < b.H {
			b.Put(0, y, a.th.Text, l)
		}
		y++
	}
	if y < b.H {
		when := clock(x.Since, a.now) + " " + a.gl.Arrow + " " + a.until(x)
		b.Put(0, y, a.th.Dim, strings.Join([]string{x.ID, a.levelWord(x.Level), when}, " "+a.gl.Dot+" "))
	}
}

// until is how an alarm stands, or when it ended.
func (a *app) until(x *saidAlarm) string {
	switch {
	case x.lasts && x.Silenced.After(a.now):
		return a.T("alarms.silent", clock(x.Silenced, a.now))
	case x.lasts:
		return a.T("alarms.lasts")
	case x.Unseen:
		return a.T("alarms.unseen")
	}
	return clock(x.Ended, a.now)
}

func (l *look) levelWord(v session.Level) string {
	switch v {
	case session.Urgent:
		return l.T("level.urgent")
	case session.Warn:
		return l.T("level.warn")
	}
	return l.T("level.info")
}

func (s *alarms) cols(list []saidAlarm) []col[*saidAlarm] {
	a := s.a
	name := 8
	for i := range list {
		name = max(name, min(cell.Width(list[i].of), 20))
	}
	type r = *saidAlarm
	style := func(x r) themes.Style {
		if !x.lasts || x.Silenced.After(a.now) {
			return a.th.Dim
		}
		return a.levelStyle(levelOf(x.Level))
	}
	out := []col[r]{
		{id: "alarm.since", min: 11, want: 11, max: 11, text: func(x r) (string, themes.Style) { return clock(x.Since, a.now), a.th.Dim }},
		{id: "alarm.until", min: 11, want: 16, max: 20, text: func(x r) (string, themes.Style) { return a.until(x), style(x) }},
		{id: "alarm.took", min: 6, want: 6, max: 6, prio: 2, right: true, text: func(x r) (string, themes.Style) {
			switch {
			case x.lasts:
				return since(x.Since, a.now), a.th.Dim
			case x.Unseen:
				return "?", a.th.Dim
			}
			return text.Dur(x.Ended.Sub(x.Since)), a.th.Dim
		}},
		{id: "alarm.level", min: 7, want: 7, max: 8, prio: 1, text: func(x r) (string, themes.Style) { return a.levelWord(x.Level), style(x) }},
	}
	if s.only == "" {
		out = append(out, col[r]{id: "col.name", min: min(name, 12), want: name, max: name, text: func(x r) (string, themes.Style) { return x.of, a.th.Text }})
	}
	return append(out, col[r]{id: "alarm.what", min: 20, want: 70, max: 300, text: func(x r) (string, themes.Style) { return a.S(x.Text), style(x) }})
}
