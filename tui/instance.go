package tui

// One instance: its cards, processes, host, meter, jobs, transfers and alerts.

import (
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/phrase"
	"rentop/themes"
	"rentop/tui/cell"
	"rentop/tui/text"
)

type instance struct {
	a    *app
	name string
	off  int
	page int // rows of the last frame, to move by
}

func newInstance(a *app, name string) *instance { return &instance{a: a, name: name} }

func (i *instance) of() string    { return i.name }
func (i *instance) title() string { return "" }
func (i *instance) close()        {}
func (i *instance) wheel(n int)   { i.off += n }

func (i *instance) actions() []action {
	a, name := i.a, &i.name
	gone := a.whyGone(name)
	move := func(n int) func() tea.Cmd { return func() tea.Cmd { i.off += n; return nil } }
	return []action{
		{id: "jobs", keys: []string{"enter", "J"}, foot: true, why: gone, do: func() tea.Cmd { return a.openJobs(i.name) }},
		{id: "terminal", keys: []string{"t"}, foot: true, why: a.whyNotAct(name), do: func() tea.Cmd { return a.terminal(i.name) }},
		{id: "newjob", keys: []string{"n"}, foot: true, why: a.whyNotAct(name), do: func() tea.Cmd { return a.newJob(i.name) }},
		{id: "sync", keys: []string{"s"}, foot: true, why: gone, do: func() tea.Cmd { a.open(newSync(a, i.name)); return nil }},
		{id: "release", keys: []string{"r"}, foot: true, why: gone, do: func() tea.Cmd { a.open(newRelease(a, i.name)); return nil }},
		{id: "guard", keys: []string{"w"}, foot: a.w >= 100, why: a.whyNotAct(name), do: func() tea.Cmd { return a.guard(i.name) }},
		{id: "guardoff", keys: []string{"W"}, why: a.whyNoGuard(name), do: func() tea.Cmd { return a.guardOff(i.name) }},
		{id: "snapshot", keys: []string{"P"}, why: a.whyNotAct(name), do: func() tea.Cmd { return a.snapshot(i.name) }},
		{id: "port", keys: []string{"f"}, why: a.whyNotAct(name), do: func() tea.Cmd { return a.port(i.name) }},
		{id: "costs", keys: []string{"$"}, foot: true, do: func() tea.Cmd { return a.openCosts(i.name) }},
		{id: "edit", keys: []string{"e"}, why: a.whyNotConfigured(name), do: func() tea.Cmd { return a.edit(i.name) }},
		{id: "remove", keys: []string{"D"}, why: a.whyNotConfigured(name), do: func() tea.Cmd { return a.remove(i.name) }},
		{id: "start", keys: []string{"S"}, why: a.whyNoStart(name), do: func() tea.Cmd { return a.start(i.name) }},
		{id: "connect", keys: []string{"c"}, why: gone, do: func() tea.Cmd { a.fleet.Nudge(i.name); return nil }},
		{id: "keep", keys: []string{"K"}, why: i.whyNoAlert, do: func() tea.Cmd { return a.keep(i.name) }},
		{id: "alarms", keys: []string{"!"}, why: gone, do: func() tea.Cmd { return a.openAlarms(i.name) }},
		{id: "doctor", keys: []string{"i"}, why: gone, do: func() tea.Cmd { return a.doctor(i.name) }},
		{id: "copy", keys: []string{"y"}, why: gone, do: func() tea.Cmd { return a.copyAddress(i.name) }},
		{id: "down", keys: []string{"j", "down"}, do: move(1)},
		{id: "up", keys: []string{"k", "up"}, do: move(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f", "space"}, do: func() tea.Cmd { i.off += i.page; return nil }},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: func() tea.Cmd { i.off -= i.page; return nil }},
		{id: "first", keys: []string{"g", "home"}, do: move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: move(1 << 20)},
	}
}

func (i *instance) whyNoAlert() string {
	if s := i.a.session(i.name); s == nil || len(s.Alerts) == 0 {
		return i.a.T("why.noalert", i.name)
	}
	return ""
}

func (i *instance) draw(b cell.Area) {
	s := i.a.session(i.name)
	if s == nil {
		b.Put(2, 1, i.a.th.Dim, i.a.T("why.gone", i.name))
		return
	}
	b = b.Inset(2, 1)
	i.page = max(b.H-2, 1)
	p := instancePage(&i.a.look, s, b.W, true)
	i.off = p.drawMore(&i.a.look, b, i.off)
}

// instancePage is everything about an instance in a width; from 150 cells on the
// lower part has two columns. The overview lists alerts itself.
func instancePage(l *look, s *session.View, w int, alerts bool) page {
	var p page
	p.stateRows(l, s, w)
	p.guardRows(l, s, w)
	p.portRows(l, s, w)
	first := 0
	if alerts {
		first = min(len(s.Alerts), topAlerts)
		p.alertRows(l, s.Alerts[:first], w)
		if more := len(s.Alerts) - first; more > 0 {
			p.text(w, 2, l.th.Dim, l.N("alerts.below", more))
		}
	}
	p.gap()
	p.machineRows(l, s, w)
	if alerts {
		p.moreRows(l, s, w)
	}
	if alerts && first < len(s.Alerts) {
		p.gap()
		p.alertRows(l, s.Alerts[first:], w)
	}
	return p
}

// machineRows is the machine and what it does.
func (p *page) machineRows(l *look, s *session.View, w int) {
	p.gpuRows(l, s, w)
	p.dayRows(l, s, w)
	if w < 150 || len(s.Jobs) == 0 {
		p.gap()
		p.meterRows(l, s, w)
		p.hostRows(l, s, w)
		p.gap()
		p.jobRows(l, s, w, 4)
		p.gap()
		p.transferRows(l, s, w)
		p.gap()
		p.processRows(l, s, w, 8)
		return
	}
	p.gap()
	lw := (w - 3) * 3 / 5
	rw := w - lw - 3
	var left, right page
	left.jobRows(l, s, lw, 12)
	right.meterRows(l, s, rw)
	right.gap()
	right.hostRows(l, s, rw)
	right.gap()
	right.transferRows(l, s, rw)
	p.beside(left, right, lw)
	p.gap()
	p.processRows(l, s, w, 16) // commands are long
}

// oldSample is when a live instance's sample is said to be old: nothing comes.
const oldSample = 5 * time.Second

// topAlerts is how many alerts of one instance stand above what they are about.
const topAlerts = 3

func (p *page) alertRows(l *look, alerts []session.Alert, w int) {
	for _, al := range alerts {
		p.text(w, 0, l.levelStyle(levelOf(al.Level)), l.gl.Alert+" "+l.S(al.Text))
	}
}

// stateRows: how the session is, and what the machine is.
func (p *page) stateRows(l *look, s *session.View, w int) {
	g, st := l.sign(s.State)
	var facts []string
	add := func(f string) {
		if f != "" {
			facts = append(facts, f)
		}
	}
	add(s.Address)
	if s.Provider != "" {
		add(s.Provider)
	}
	if s.RTT > 0 && s.State == session.Live {
		add(ms(s.RTT))
	}
	if f := s.Facts; f != nil {
		add(f.OS)
		add(f.Container)
	}
	if s.Sample != nil && s.Sample.Driver != "" {
		add(l.T("driver", s.Sample.Driver))
	}
	if s.Sample != nil && s.State == session.Live {
		add(l.S(session.Source(s.Sample)))
	}
	if s.Sample != nil && (s.State != session.Live || l.now.Sub(s.Sample.TakenAt) >= oldSample) {
		add(l.T("sample.old", since(s.Sample.TakenAt, l.now)))
	}
	p.add(func(r cell.Area) {
		pen := r.Pen(0, 0).Put(st, g).Skip(1).Put(st, l.T("state."+string(s.State)))
		if s.State == session.Waiting && s.RetryAt.After(l.now) {
			pen.Skip(1).Put(l.th.Dim, l.T("retry", text.Dur(s.RetryAt.Sub(l.now))))
		}
		for _, f := range facts {
			if pen.Left() < cell.Width(f)+3 {
				continue
			}
			pen.Put(l.th.Faint, " "+l.gl.Dot+" ").Put(l.th.Dim, f)
		}
	})
	if why := reasonOf(l, s); s.State != session.Live && why != "" {
		p.text(w, 2, l.th.Text, why)
	}
}

// meterRows: what it has cost, costs, and will.
func (p *page) meterRows(l *look, s *session.View, w int) {
	m := &s.Meter
	facts := []fact{
		{"", cost(m), l.th.Strong, nil, 0},
		{l.T("meter.rate"), perHour(m.PerHour), l.th.Strong, nil, 0},
		{l.T("meter.today"), money(m.Today), l.th.Text, nil, 0},
		{l.T("meter.midnight"), money(m.ByMidnight), l.th.Text, nil, 0},
	}
	if m.Budget != nil {
		f := fact{label: l.T("meter.budget"), value: l.T("meter.left", money(m.BudgetLeft), money(m.Budget)), st: l.th.Text}
		if spent := budgetPart(m); !math.IsNaN(spent) {
			st := l.heat(spent, 0.8, 0.95, l.th.Accent)
			f.extraW, f.extra = 10, func(r cell.Area) { r.Bar(0, 0, r.W, st, l.th.Faint, &l.gl, spent) }
		}
		facts = append(facts, f)
	}
	p.facts(l, w, l.T("sec.meter"), facts)
	for _, miss := range m.Missing {
		s := l.T("meter.missing", l.missing(miss))
		if strings.Contains(miss, "price") {
			s += " " + l.T("meter.fill")
		}
		p.text(w, gutter, l.th.Warn, s)
	}
	if len(m.Note) > 0 {
		p.text(w, gutter, l.th.Dim, l.S(m.Note))
	}
}

// missing is the name of something that the meter does not know.
func (l *look) missing(what string) string { return l.S(phrase.Word("missing.", what)) }

// budgetPart is the part of a budget that is spent.
func budgetPart(m *session.Meter) float64 {
	if m.Budget == nil || m.BudgetLeft == nil || m.Budget.Currency != m.BudgetLeft.Currency {
		return math.NaN()
	}
	all, left := float(m.Budget), float(m.BudgetLeft)
	if all <= 0 {
		return math.NaN()
	}
	return 1 - left/all
}

// float is for the length of a bar only; no sum is made of it.
func float(a *billing.Amount) float64 {
	if a == nil || a.Value == nil {
		return 0
	}
	f, _ := a.Value.Float64()
	return f
}

// hostRows: the machine around the cards.
func (p *page) hostRows(l *look, s *session.View, w int) {
	if s.Sample == nil {
		return
	}
	h := &s.Sample.Host
	var facts []fact
	cpu := fact{label: "CPU", value: cellOf(h.CPU, "%.0f%%"), st: l.th.Text}
	if h.CPUs > 0 {
		cpu.value += " " + l.T("host.of", h.CPUs)
	}
	if hist := s.History.CPU; len(hist) > 0 {
		cpu.extraW, cpu.extra = 10, func(r cell.Area) { r.Spark(0, 0, r.W, l.th.Accent, &l.gl, hist, 100) }
	}
	facts = append(facts, cpu)
	if v, ok := h.Load1.Get(); ok {
		facts = append(facts, fact{label: l.T("host.load"), value: cellOf(gpu.Of(v), "%.1f"), st: l.th.Text})
	}
	bar := func(f fact, part float64) fact {
		if !math.IsNaN(part) {
			st := l.heat(part, 0.9, 0.97, l.th.Accent)
			f.extraW, f.extra = 8, func(r cell.Area) { r.Bar(0, 0, r.W, st, l.th.Faint, &l.gl, part) }
		}
		return f
	}
	facts = append(facts, bar(fact{label: l.T("host.ram"), value: pair(h.MemUsed, h.MemTotal, size), st: l.th.Text}, part(h.MemUsed, h.MemTotal)))
	for i := range h.Disks {
		d := &h.Disks[i]
		f := part(d.Used, d.Total)
		facts = append(facts, bar(fact{label: d.Mount, value: pair(d.Used, d.Total, size), st: l.heat(f, 0.9, 0.97, l.th.Text)}, f))
		if v, ok := d.InodesUsed.Get(); ok && v >= 90 {
			facts = append(facts, fact{label: l.T("host.inodes"), value: percent(v), st: l.th.Warn})
		}
	}
	rx, rok := h.NetRx.Get()
	tx, tok := h.NetTx.Get()
	if rok && tok {
		facts = append(facts, fact{label: l.T("host.net"), value: l.gl.Down + speed(rx) + " " + l.gl.Up + speed(tx), st: l.th.Text})
	}
	if v, ok := h.UptimeSec.Get(); ok {
		facts = append(facts, fact{label: l.T("host.up"), value: text.Dur(time.Duration(v) * time.Second), st: l.th.Dim})
	}
	p.facts(l, w, l.T("sec.host"), facts)
}

// jobRows: the newest jobs with their last line, at most n.
func (p *page) jobRows(l *look, s *session.View, w, n int) {
	if s.JobsErr != "" {
		p.text(w, 0, l.th.Warn, l.gl.Alert+" "+s.JobsErr)
	}
	if len(s.Jobs) == 0 {
		return
	}
	t := fit(l.jobCols(s.Jobs), w)
	p.add(func(r cell.Area) { t.heading(r, l, "", false) })
	for i := range s.Jobs {
		if i == n && len(s.Jobs) > n+1 {
			p.add(func(r cell.Area) { r.Put(2, 0, l.th.Dim, l.T("more", len(s.Jobs)-n)) })
			break
		}
		p.add(func(r cell.Area) { t.row(r, &s.Jobs[i]) })
	}
}

func running(j *tmux.Job) bool { return j.State == tmux.Running || j.State == tmux.Starting }

// jobWord is a job's state in a word or two.
func (l *look) jobWord(j *tmux.Job) (string, themes.Style) {
	switch {
	case j.State == tmux.Running:
		return l.gl.Run + " " + since(j.StartedAt, l.now), l.th.Good
	case j.State == tmux.Starting:
		return l.gl.Busy + " " + l.T("job.starting"), l.th.Warn
	case j.State == tmux.Done && j.ExitCode == nil:
		return "? " + l.T("job.ended"), l.th.Warn
	case j.State == tmux.Done && *j.ExitCode == 0:
		return l.gl.Yes + " " + l.T("job.done"), l.th.Text
	case j.State == tmux.Done:
		return l.gl.No + " " + l.T("job.failed", *j.ExitCode), l.th.Bad
	case j.State == tmux.Killed:
		return l.gl.No + " " + l.T("job.killed"), l.th.Dim
	case j.State == tmux.Lost:
		return l.gl.No + " " + l.T("job.lost"), l.th.Bad
	}
	return "? " + string(j.State), l.th.Dim
}

func (l *look) jobCols(jobs []tmux.Job) []col[*tmux.Job] {
	name := 8
	for i := range jobs {
		name = max(name, min(cell.Width(jobs[i].Name), 24))
	}
	type j = *tmux.Job
	return []col[j]{
		{id: "job.name", min: min(name, 14), want: name, max: name, text: func(x j) (string, themes.Style) { return x.Name, l.th.Strong }},
		{id: "job.state", min: 10, want: 10, max: 12, text: l.jobWord},
		{id: "job.started", min: 11, want: 11, max: 11, prio: 2, text: func(x j) (string, themes.Style) { return clock(x.StartedAt, l.now), l.th.Dim }},
		{id: "job.took", min: 6, want: 6, max: 6, prio: 3, right: true, text: func(x j) (string, themes.Style) {
			if x.EndedAt.IsZero() || x.StartedAt.IsZero() {
				return "", l.th.Dim
			}
			return text.Dur(x.EndedAt.Sub(x.StartedAt)), l.th.Dim
		}},
		{id: "job.log", min: 5, want: 5, max: 5, prio: 3, right: true, text: func(x j) (string, themes.Style) { return size(float64(x.LogSize)), l.th.Dim }},
		{id: "job.last", min: 14, want: 60, max: 400, text: func(x j) (string, themes.Style) {
			if x.State == tmux.Lost && x.Why != "" {
				return x.Why, l.th.Bad
			}
			return x.LastLine, l.th.Dim
		}},
	}
}
