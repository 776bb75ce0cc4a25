package tui

// What was spent: by instance, by job, by day; as bars and as a table.

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/session/billing"
	"rentop/themes"
	"rentop/tui/cell"
)

// The ways to group, and the times to look back.
var (
	groups = []string{"instance", "job", "day", "provider", "tag"}
	spans  = []string{"today", "week", "month", "all"}
)

type costsScreen struct {
	a     *app
	only  string // an instance; "" is all
	by    int
	span  int
	got   *Costs
	turn  int
	err   string
	at    int
	off   int
	right int // where the amounts of the last frame end
}

func (a *app) openCosts(instance string) tea.Cmd {
	s := &costsScreen{a: a, only: instance, span: 1}
	a.open(s)
	return s.read()
}

func (s *costsScreen) of() string    { return s.only }
func (s *costsScreen) title() string { return s.a.T("act.costs") }
func (s *costsScreen) close()        {}
func (s *costsScreen) wheel(n int)   { s.at += n }

func (s *costsScreen) actions() []action {
	by := func(n int) func() tea.Cmd { return func() tea.Cmd { s.by, s.at = n, 0; return nil } }
	move := func(n int) func() tea.Cmd { return func() tea.Cmd { s.at += n; return nil } }
	look := func(n int) func() tea.Cmd {
		return func() tea.Cmd { s.span = min(max(s.span+n, 0), len(spans)-1); return s.read() }
	}
	return []action{
		{id: "byinstance", keys: []string{"1"}, foot: true, do: by(0)},
		{id: "byjob", keys: []string{"2"}, foot: true, do: by(1)},
		{id: "byday", keys: []string{"3"}, foot: true, do: by(2)},
		{id: "byprovider", keys: []string{"4"}, foot: true, do: by(3)},
		{id: "bytag", keys: []string{"5"}, foot: true, do: by(4)},
		{id: "groupnext", keys: []string{"tab"}, do: func() tea.Cmd { return by((s.by + 1) % len(groups))() }},
		{id: "spanmore", keys: []string{"]", "right", "l"}, foot: true, do: look(1)},
		{id: "spanless", keys: []string{"[", "h"}, foot: true, do: look(-1)},
		{id: "reload", keys: []string{"R", "ctrl+r"}, do: s.read},
		{id: "down", keys: []string{"j", "down"}, do: move(1)},
		{id: "up", keys: []string{"k", "up"}, do: move(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f", "space"}, do: move(10)},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: move(-10)},
		{id: "first", keys: []string{"g", "home"}, do: move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: move(1 << 20)},
	}
}

// since is when the shown time begins, on the person's calendar.
func (s *costsScreen) since() time.Time {
	now := s.a.now.Local()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch spans[s.span] {
	case "today":
		return day
	case "week":
		return day.AddDate(0, 0, -6)
	case "month":
		return day.AddDate(0, 0, -29)
	}
	return time.Time{}
}

func (s *costsScreen) read() tea.Cmd {
	s.turn++
	turn, since, fleet := s.turn, s.since(), s.a.fleet
	return s.a.work(func(ctx context.Context) then {
		c, err := fleet.Costs(ctx, since)
		return func() tea.Cmd {
			if turn != s.turn {
				return nil
			}
			s.got, s.err = &c, ""
			if err != nil {
				s.got, s.err = nil, err.Error()
			}
			return nil
		}
	})
}

// group is a line of the table: sums in each currency.
type group struct {
	name    string
	amounts []billing.Amount
	unknown bool
}

func (g *group) add(l CostLine) {
	x := l.Amount
	if x == nil {
		g.unknown = true
		if x = l.AtLeast; x == nil || x.Sign() == 0 {
			return
		}
	}
	for i := range g.amounts {
		if g.amounts[i].Currency == x.Currency {
			if sum, err := g.amounts[i].Add(*x); err == nil {
				g.amounts[i] = sum
			}
			return
		}
	}
	g.amounts = append(g.amounts, *x)
}

// currency is that of the bar, "" where nothing is known.
func (g *group) currency() string {
	if len(g.amounts) == 0 {
		return ""
	}
	return g.amounts[0].Currency
}

func (g *group) text() string {
	s := session.Sums{Amounts: g.amounts}
	if g.unknown {
		s.Unknown = 1
	}
	return sums(s, "")
}

// grouped folds the lines; days in order, the others by currency, dearest first.
func (s *costsScreen) grouped() []group {
	var out []group
	index := map[string]int{}
	for _, l := range s.got.Lines {
		if s.only != "" && l.Instance != s.only || (groups[s.by] == "job") != (l.Job != "") {
			continue
		}
		names := []string{l.Instance}
		switch groups[s.by] {
		case "provider":
			names[0] = cmp.Or(l.Provider, s.a.T("group.ssh"))
		case "tag":
			if names = l.Tags; len(names) == 0 {
				names = []string{s.a.T("group.untagged")}
			}
		case "job":
			names[0] = l.Job
			if s.only == "" {
				names[0] = l.Instance + " " + s.a.gl.Dot + " " + l.Job
			}
		case "day":
			names[0] = l.Day.Local().Format("2006-01-02") + " " + s.a.T("day."+strings.ToLower(l.Day.Local().Format("Mon")))
		}
		for _, name := range names { // an instance with several tags counts in each
			i, ok := index[name]
			if !ok {
				i = len(out)
				index[name] = i
				out = append(out, group{name: name})
			}
			out[i].add(l)
		}
	}
	for i := range out {
		slices.SortFunc(out[i].amounts, func(a, b billing.Amount) int { return strings.Compare(a.Currency, b.Currency) })
	}
	slices.SortStableFunc(out, func(a, b group) int {
		if groups[s.by] == "day" {
			return strings.Compare(b.name, a.name)
		}
		if x, y := a.currency(), b.currency(); x != y {
			if x == "" || y == "" { // what is not known stands last
				return strings.Compare(y, x)
			}
			return strings.Compare(x, y)
		}
		switch x, y := biggest(a), biggest(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// biggest orders lines of one currency; no sum is made of it.
func biggest(g group) float64 {
	if len(g.amounts) == 0 {
		return 0
	}
	return float(&g.amounts[0])
}

func (s *costsScreen) draw(b cell.Area) {
	a := s.a
	b = b.Inset(2, 1)
	p := b.Pen(0, 0)
	for i, g := range groups {
		st, word := a.th.Dim, " "+a.T("group."+g)+" "
		if i == s.by {
			st, word = a.th.Accent.With(themes.Bold), "["+a.T("group."+g)+"]"
		}
		from := p.X()
		p.Put(st, word).Skip(1)
		a.onClick(b.Sub(from, 0, p.X()-from, 1), func() tea.Cmd { s.by, s.at = i, 0; return nil })
	}
	p.Skip(3)
	for i, x := range spans {
		st := a.th.Dim
		if i == s.span {
			st = a.th.Strong
		}
		p.Put(st, a.T("span."+x)).Skip(2)
	}
	switch {
	case s.err != "":
		for i, l := range cell.Wrap(s.err, b.W) {
			b.Put(0, 2+i, a.th.Bad, l)
		}
		return
	case s.got == nil:
		b.Put(0, 2, a.th.Dim, a.gl.Busy+" "+a.T("working"))
		return
	}
	list := s.grouped()
	said := s.said(b.W - 1)
	said.rows = said.rows[:min(len(said.rows), b.H/4)]
	room := b.H - 8 - len(said.rows)
	if len(list) == 0 {
		b.Put(0, 2, a.th.Dim, a.T("costs.none"))
	} else {
		s.table(b.Sub(0, 2, b.W, room), list)
	}
	if s.only == "" && groups[s.by] != "job" && len(list) > 0 {
		y := 2 + min(len(list), room) + 1
		b.Put(1, y, a.th.Dim, a.T("costs.total"))
		b.Right(0, y, s.right, a.th.Strong, sums(s.got.Total, ""))
		b.Put(1, y+1, a.th.Dim, s.parts())
		b.Put(1, y+2, a.th.Dim, s.month())
	}
	if n := len(said.rows); n > 0 {
		said.draw(b.Sub(1, b.H-2-n, b.W-1, n), 0)
	}
	b.Put(0, b.H-1, a.th.Dim, a.T("costs.export", groups[s.by]))
}

// said is how long balances and budgets last, what providers charged, and what was
// left behind. Balances are the live ones: they are asked for while the screen is open.
func (s *costsScreen) said(w int) (p page) {
	one := s.a.session(s.only)
	for _, x := range s.a.v.Balances {
		if s.only == "" || one != nil && one.Provider == x.Provider {
			p.text(w, 0, s.a.th.Dim, s.a.S(x.Said()))
		}
	}
	for _, x := range s.got.Said {
		if s.only == "" || x.Instance == s.only {
			p.text(w, 0, s.a.th.Dim, s.a.S(x.Text))
		}
	}
	return p
}

// parts says what the money went into, where computing was not all.
func (s *costsScreen) parts() string {
	p := s.got.Parts
	var out []string
	for _, x := range []struct {
		id  string
		sum session.Sums
	}{{"part.compute", p.Compute}, {"part.stopped", p.Stopped}, {"part.disk", p.Disk}, {"part.other", p.Other}, {"part.traffic", p.Traffic}, {"part.left", p.Left}} {
		if x.sum.Unknown > 0 || slices.ContainsFunc(x.sum.Amounts, func(a billing.Amount) bool { return a.Decimal(2) != "0.00" }) {
			out = append(out, s.a.T(x.id)+" "+sums(x.sum, ""))
		}
	}
	if len(out) < 2 {
		return ""
	}
	return strings.Join(out, "  "+s.a.gl.Dot+"  ")
}

// month says where this calendar month is going.
func (s *costsScreen) month() string {
	m := s.got.Month
	if m.To.IsZero() {
		return ""
	}
	return s.a.T("costs.month", sums(m.SoFar, ""), sums(m.ByEnd, ""))
}

// table draws the groups with a bar each, scaled within one currency.
func (s *costsScreen) table(b cell.Area, list []group) {
	a := s.a
	s.at = min(max(s.at, 0), len(list)-1)
	name, amount := 12, 8
	full := map[string]float64{}
	for i := range list {
		name = max(name, min(cell.Width(list[i].name), b.W/3))
		amount = max(amount, cell.Width(list[i].text()))
		for j := range list[i].amounts {
			x := &list[i].amounts[j]
			full[x.Currency] = math.Max(full[x.Currency], float(x))
		}
	}
	amount = min(amount, b.W/3)
	s.off = scroll(s.off, s.at, len(list), b.H)
	cur := 0 // bars of two currencies cannot be compared: each says which is its
	if len(full) > 1 {
		cur = 4
	}
	bar := min(b.W-name-amount-6-cur, 100)
	s.right = name + cur + bar + 5 + amount
	for y := 0; y < b.H && s.off+y < len(list); y++ {
		g := &list[s.off+y]
		r := b.Row(y)
		if s.off+y == s.at {
			r = r.On(a.th.Selected)
		}
		r.PutIn(1, 0, name, a.th.Text, g.name)
		if len(g.amounts) > 0 && bar > 4 {
			x := &g.amounts[0]
			f := 0.0
			if full[x.Currency] > 0 {
				f = float(x) / full[x.Currency]
			}
			if cur > 0 {
				r.PutIn(name+3, 0, cur-1, a.th.Dim, x.Currency)
			}
			r.Bar(name+3+cur, 0, bar, a.th.Accent, a.th.Faint, &a.gl, f)
		}
		st := a.th.Strong
		if g.unknown {
			st = a.th.Warn
		}
		r.Right(name+cur+bar+5, 0, amount, st, g.text())
		row := s.off + y
		a.onClick(r, func() tea.Cmd { s.at = row; return nil })
	}
}
