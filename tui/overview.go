package tui

// The overview: one line an instance, what needs you first.

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/themes"
	"rentop/tui/cell"
)

type overview struct {
	a       *app
	name    string // the selected instance: stays selected when rows move
	at      int    // its row, to select its neighbour when it goes
	off     int    // first row shown
	sort    int    // index into orders
	reverse bool
	filter  string
	marked  map[string]bool // what a release takes together

	// What follows is made from a view, and anew where that or the order changed.
	made  madeRows
	list  []*session.View
	nameW int
	gpuW  int
}

// madeRows says what the rows were made from.
type madeRows struct {
	v       *session.FleetView
	filter  string
	sort    int
	reverse bool
}

func newOverview(a *app) *overview { return &overview{a: a, marked: map[string]bool{}} }

func (o *overview) of() string    { return "" }
func (o *overview) title() string { return "" }
func (o *overview) close()        {}

// clear takes the marks away, then the filter; that is what going back means first.
func (o *overview) clear() bool {
	had := o.filtered()
	if len(o.marked) > 0 {
		clear(o.marked)
	} else {
		o.filter = ""
	}
	return had
}

func (o *overview) filtered() bool { return o.filter != "" || len(o.marked) > 0 }

// mark marks the selected instance, or takes its mark away, and goes to the next.
func (o *overview) mark() tea.Cmd {
	if o.marked[o.name] {
		delete(o.marked, o.name)
	} else {
		o.marked[o.name] = true
	}
	if n := len(o.chosen()); n > 0 {
		o.a.say(info, o.a.N("marked", n, o.a.keyHelp("release"), o.a.keyHelp("back")))
	}
	return o.move(1)()
}

// chosen are the marked instances that are still there, whether the filter shows them
// or not.
func (o *overview) chosen() []string {
	var out []string
	for i := range o.a.v.Sessions {
		if name := o.a.v.Sessions[i].Name; o.marked[name] {
			out = append(out, name)
		}
	}
	return out
}

// release is of the marked instances, else of the selected one.
func (o *overview) release() tea.Cmd {
	switch names := o.chosen(); len(names) {
	case 0:
		o.a.open(newRelease(o.a, o.name))
	case 1:
		o.a.open(newRelease(o.a, names[0]))
	default:
		o.a.open(newTogether(o.a, names))
	}
	return nil
}

func (o *overview) actions() []action {
	o.rows() // settles the selection, which the reasons ask about
	one := o.whyNone
	add := action{id: "add", keys: []string{"a"}, foot: len(o.a.v.Sessions) == 0, why: o.a.whyNotConfig, do: func() tea.Cmd { o.a.push(newAdd(o.a, "")); return nil }}
	list := []action{
		{id: "open", keys: []string{"enter", "right"}, foot: true, why: one, do: func() tea.Cmd {
			o.a.open(newInstance(o.a, o.name))
			o.a.fleet.Nudge(o.name)
			return nil
		}},
		{id: "terminal", keys: []string{"t"}, foot: true, why: o.a.whyNotAct(&o.name), do: func() tea.Cmd { return o.a.terminal(o.name) }},
		{id: "newjob", keys: []string{"n"}, foot: true, why: o.a.whyNotAct(&o.name), do: func() tea.Cmd { return o.a.newJob(o.name) }},
		{id: "sync", keys: []string{"s"}, foot: true, why: one, do: func() tea.Cmd { o.a.open(newSync(o.a, o.name)); return nil }},
		{id: "release", keys: []string{"r"}, foot: true, why: one, do: o.release},
		{id: "costs", keys: []string{"$"}, foot: true, do: func() tea.Cmd { return o.a.openCosts("") }},
		{id: "filter", keys: []string{"/"}, foot: true, do: func() tea.Cmd { o.a.push(newFilter(o.a, &o.filter)); return nil }},
		{id: "mark", keys: []string{"space"}, why: one, do: o.mark},
		{id: "jobs", keys: []string{"J"}, why: one, do: func() tea.Cmd { return o.a.openJobs(o.name) }},
		{id: "edit", keys: []string{"e"}, why: o.a.whyNotConfigured(&o.name), do: func() tea.Cmd { return o.a.edit(o.name) }},
		{id: "remove", keys: []string{"D"}, why: o.a.whyNotConfigured(&o.name), do: func() tea.Cmd { return o.a.remove(o.name) }},
		{id: "start", keys: []string{"S"}, why: o.a.whyNoStart(&o.name), do: func() tea.Cmd { return o.a.start(o.name) }},
		{id: "keep", keys: []string{"K"}, why: o.whyNoAlert, do: func() tea.Cmd { return o.a.keep(o.name) }},
		{id: "alarms", keys: []string{"!"}, do: func() tea.Cmd { return o.a.openAlarms("") }},
		{id: "connect", keys: []string{"c"}, why: one, do: func() tea.Cmd { o.a.fleet.Nudge(o.name); return nil }},
		{id: "doctor", keys: []string{"i"}, why: one, do: func() tea.Cmd { return o.a.doctor(o.name) }},
		{id: "copy", keys: []string{"y"}, why: one, do: func() tea.Cmd { return o.a.copyAddress(o.name) }},
		{id: "order", keys: []string{"o"}, do: func() tea.Cmd { o.sort, o.reverse = (o.sort+1)%len(orders), false; return nil }},
		{id: "reverse", keys: []string{"O"}, do: func() tea.Cmd { o.reverse = !o.reverse; return nil }},
		{id: "down", keys: []string{"j", "down"}, do: o.move(1)},
		{id: "up", keys: []string{"k", "up"}, do: o.move(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f"}, do: o.move(10)},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: o.move(-10)},
		{id: "first", keys: []string{"g", "home"}, do: o.move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: o.move(1 << 20)},
	}
	if len(o.a.v.Sessions) == 0 {
		return append([]action{add}, list...)
	}
	return append(list, add)
}

func (o *overview) whyNone() string {
	if len(o.a.v.Sessions) == 0 {
		return o.a.T("why.noinstance")
	}
	if o.name == "" {
		return o.a.T("why.nomatch")
	}
	return ""
}

func (o *overview) move(n int) func() tea.Cmd {
	return func() tea.Cmd {
		if rows := o.rows(); len(rows) > 0 {
			o.at = min(max(o.at+n, 0), len(rows)-1)
			o.name = rows[o.at].Name
		}
		return nil
	}
}

func (o *overview) wheel(n int) { o.move(n)() }

// rows are the sessions that pass the filter, in order; the selection is settled.
func (o *overview) rows() []*session.View {
	if now := (madeRows{o.a.v, o.filter, o.sort, o.reverse}); now != o.made {
		o.made = now
		o.make()
	}
	rows := o.list
	found := slices.IndexFunc(rows, func(s *session.View) bool { return s.Name == o.name })
	switch {
	case found >= 0:
		o.at = found
	case len(rows) > 0:
		o.at = min(max(o.at, 0), len(rows)-1)
		o.name = rows[o.at].Name
	default:
		o.at, o.name = 0, ""
	}
	return rows
}

// make filters and orders the sessions, and measures what all rows share.
func (o *overview) make() {
	o.list = make([]*session.View, 0, len(o.a.v.Sessions))
	keep := matcher(o.filter)
	o.nameW, o.gpuW = 0, 0
	for i := range o.a.v.Sessions {
		s := &o.a.v.Sessions[i]
		if o.filter != "" && !keep(searchText(s)) {
			continue
		}
		o.list = append(o.list, s)
		o.nameW = max(o.nameW, cell.Width(s.Name))
		o.gpuW = max(o.gpuW, cell.Width(gpuText(s, o.a.gl.Times)))
	}
	if less := orders[o.sort].less; less != nil {
		slices.SortStableFunc(o.list, less)
	}
	if o.reverse {
		slices.Reverse(o.list)
	}
}

func searchText(s *session.View) string {
	gpus := ""
	if s.Sample != nil {
		for i := range s.Sample.GPUs {
			gpus += " " + s.Sample.GPUs[i].Name
		}
	}
	return s.Name + " " + string(s.State) + " " + s.Provider + " " + s.Address + gpus
}

func (o *overview) draw(b cell.Area) {
	a := o.a
	if len(a.v.Sessions) == 0 {
		o.drawEmpty(b)
		return
	}
	rows := o.rows()
	alerts := o.alertPage(o.alerts(rows), b.W)
	foot := 0
	if n := len(alerts.rows); n > 0 {
		foot = min(n, max(b.H/5, 2)) + 1
	}
	list := b.Sub(0, 1, b.W, b.H-1-foot)
	room := list.H - 1
	preview := room-len(rows)-1 >= 9 && b.W >= 70
	if preview {
		room = max(len(rows), 3)
	}
	t := fit(overviewCols(&a.look, o.nameW, o.gpuW), list.W-lead-1)
	head := list.Row(0)
	t.heading(head.Sub(lead, 0, t.width(), 1), &a.look, orders[o.sort].id, o.reverse)
	o.clickHeadings(head, &t)
	o.off = scroll(o.off, o.at, len(rows), room)
	for y := 0; y < room && o.off+y < len(rows); y++ {
		s := rows[o.off+y]
		r := list.Row(1 + y)
		if s.Name == o.name {
			r = r.On(a.th.Selected)
			r.Put(0, 0, a.th.Accent, a.gl.Pointer)
		}
		if o.marked[s.Name] {
			r.Put(1, 0, a.th.Accent, a.gl.Yes)
		}
		overviewRow(r, &a.look, &t, s)
		a.onClick(r, func() tea.Cmd {
			if o.name == s.Name {
				return a.run(o.actions()[0])
			}
			o.name = s.Name
			return nil
		})
	}
	if len(rows) == 0 {
		list.Put(lead, 1, a.th.Dim, a.T("filter.none", o.filter))
	} else if more := len(rows) - o.off - room; more > 0 {
		list.Right(0, 0, list.W-1, a.th.Dim, a.gl.Down+a.T("more", more))
	}
	if preview && o.name != "" {
		top := 1 + room + 1
		o.drawPreview(list.Sub(0, top, list.W, list.H-top), a.session(o.name))
	}
	if foot > 0 {
		alerts.draw(b.Sub(0, b.H-foot+1, b.W, foot-1), 0)
		if more := len(alerts.rows) - foot + 1; more > 0 {
			b.Right(0, b.H-foot, b.W-1, a.th.Dim, a.gl.Down+a.T("more", more))
		}
	}
}

// drawPreview shows the selected instance below a list that leaves room.
func (o *overview) drawPreview(b cell.Area, s *session.View) {
	a := o.a
	b.Sub(1, 0, b.W-2, 1).Rule(0, a.th.Faint, a.gl.Rule)
	b.Put(3, 0, a.th.Dim, " "+cell.Cut(s.Name, 40)+" ")
	page := instancePage(&a.look, s, b.W-4, false)
	page.draw(b.Sub(2, 1, b.W-4, b.H-1), 0)
}

func (o *overview) drawEmpty(b cell.Area) {
	a := o.a
	y := max(b.H/3-2, 1)
	x := max((b.W-64)/2, 3)
	b.Put(x, y, a.th.Strong, a.T("empty.title"))
	for i, s := range cell.Wrap(a.T("empty.how"), min(64, b.W-x-2)) {
		b.Put(x, y+2+i, a.th.Text, s)
	}
	b.Put(x, y+6, a.th.Dim, "ssh -p 41237 root@connect.example")
	b.Put(x, y+8, a.th.Dim, a.T("empty.demo"))
}

// alert is an alert with whose it is.
type alert struct {
	of *session.View
	session.Alert
}

// alerts are the selected instance's first, then the others', worst first.
func (o *overview) alerts(rows []*session.View) []alert {
	var out []alert
	for _, s := range rows {
		for _, al := range s.Alerts {
			out = append(out, alert{s, al})
		}
	}
	slices.SortStableFunc(out, func(x, y alert) int {
		if xs, ys := x.of.Name == o.name, y.of.Name == o.name; xs != ys {
			if xs {
				return -1
			}
			return 1
		}
		return int(y.Level) - int(x.Level)
	})
	return out
}

// alertPage is the alerts as lines: one of each instance, and of the selected one
// a few, with the keys that help behind the last.
func (o *overview) alertPage(alerts []alert, w int) page {
	a := o.a
	var p page
	keys := a.keyHelp("keep")
	of := map[string]int{}
	for _, al := range alerts {
		of[al.of.Name]++
		if al.of.Name == o.name && al.ID == "idle" { // a machine that works is not to be released
			keys = a.keyHelp("release") + "   " + a.keyHelp("keep")
		}
	}
	told := map[string]int{}
	for _, al := range alerts {
		name := al.of.Name
		if told[name]++; told[name] > 1 && (name != o.name || told[name] > topAlerts) {
			continue
		}
		st := a.levelStyle(levelOf(al.Level))
		text := a.S(al.Text)
		if !strings.Contains(text, al.of.Name) {
			text = al.of.Name + ": " + text
		}
		selected := name == o.name
		lines, behind := []string{text}, ""
		switch more := of[name] - told[name]; {
		case !selected && more > 0:
			behind = a.T("alerts.more", more)
		case selected && told[name] == 1 && more == 0:
			lines, behind = cell.Wrap(text, w-4), keys
			if cell.Width(lines[len(lines)-1])+cell.Width(keys)+7 > w {
				lines = append(lines, "")
			}
		case selected && told[name] == 1: // a line each: the next are seen too
			behind = keys
		case selected && told[name] == topAlerts && more > 0:
			behind = a.T("alerts.enter", more, a.keyHelp("open"))
		}
		for i, line := range lines {
			p.add(func(r cell.Area) {
				if i == 0 {
					r.Put(1, 0, st, a.gl.Alert)
				}
				room := r.W - 4
				if behind != "" && i == len(lines)-1 {
					room -= 3 + r.Right(0, 0, r.W-1, a.th.Dim, behind)
				}
				r.PutIn(3, 0, room, themes.Style{FG: st.FG}, line)
			})
		}
	}
	return p
}

// keyHelp is "r release" for an action that there is now.
func (a *app) keyHelp(id string) string {
	for _, x := range a.actions() {
		if k := a.keysOf(x); x.id == id && len(k) > 0 {
			return a.keyName(k[0]) + " " + a.T("act."+id)
		}
	}
	return ""
}

func (o *overview) whyNoAlert() string {
	if why := o.whyNone(); why != "" {
		return why
	}
	if s := o.a.session(o.name); s == nil || len(s.Alerts) == 0 {
		return o.a.T("why.noalert", o.name)
	}
	return ""
}

// keep silences an instance's present alerts for an hour.
func (a *app) keep(name string) tea.Cmd {
	s := a.session(name)
	for _, al := range s.Alerts {
		a.fleet.Keep(name, al.ID, time.Hour)
	}
	a.say(info, a.N("kept", len(s.Alerts), name))
	return nil
}

// scroll is the first row to show so that row at of n is among room.
func scroll(off, at, n, room int) int {
	room = max(room, 1)
	if at < off {
		off = at
	}
	if at >= off+room {
		off = at - room + 1
	}
	return min(max(off, 0), max(n-room, 0))
}
