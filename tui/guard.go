package tui

// The guard on an instance: its line, its dialog, its end, and what it saw.

import (
	"context"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rentop/remote/gpu/guard"
	"rentop/session"
	"rentop/tui/cell"
	"rentop/tui/text"
)

// guardRows says where the guard stands; nothing where there never was one.
func (p *page) guardRows(l *look, s *session.View, w int) {
	g := s.Guard
	if g == nil || g.Phase == "" || g.Phase == string(guard.Off) || s.State == session.Stopped || s.State == session.Gone {
		return
	}
	word, st := l.T("guard.word.on"), l.th.Good
	switch {
	case !g.Armed && len(g.Problem) > 0:
		word, st = l.T("guard.word.off"), l.th.Bad
	case !g.Armed:
		word, st = l.T("guard.word.off"), l.th.Dim
	case len(g.Problem) > 0:
		st = l.th.Warn
	}
	line := word + " " + l.gl.Dot + " " + l.S(g.Text)
	if age := l.now.Sub(g.SeenAt); g.Armed && (age > 2*time.Minute || s.State != session.Live) {
		line += " " + l.gl.Dot + " " + l.T("guard.seen", since(g.SeenAt, l.now)) // it is not known any more
		st = l.th.Dim
	}
	p.text(w, 2, st, line)
}

func (a *app) whyNoGuard(name *string) func() string {
	return func() string {
		if why := a.whyNotAct(name)(); why != "" {
			return why
		}
		if g := a.session(*name).Guard; g == nil || g.Phase == "" || g.Phase == string(guard.Off) {
			return a.T("why.noguard", *name)
		}
		return ""
	}
}

// guard asks for rules and arms them.
func (a *app) guard(instance string) tea.Cmd {
	f := &form{a: a, verb: "form.arm", head: a.T("guard.title", instance), intro: a.T("guard.intro"), entries: []entry{
		{id: "guard.idle"}, {id: "guard.after"}, {id: "guard.at"}, {id: "guard.budget"}, {id: "guard.then"}, {id: "guard.save"},
	}}
	for i, ghost := range []string{"20m", "train", "23:30", "50", "", "sh backup.sh"} {
		f.entries[i].f.ghost = a.example(ghost)
	}
	f.entries[4].f.ghost = a.T("guard.then.ghost")
	f.done = func(v map[string]string) (string, tea.Cmd) {
		spec, at, fault := guardWish(v, a.now)
		if fault != "" {
			f.at = at
			return a.T(fault), nil
		}
		return "", a.work(func(ctx context.Context) then {
			g, err := a.fleet.Arm(ctx, instance, spec)
			return func() tea.Cmd {
				if f.ended(err); err == nil {
					a.say(info, a.T("guard.armed", instance)+": "+a.S(g.Text))
				}
				return nil
			}
		})
	}
	a.push(f)
	return nil
}

// guardWish reads the form. A fault is its catalogue id, and at is the line.
func guardWish(v map[string]string, now time.Time) (spec session.GuardSpec, at int, fault string) {
	word := func(id string) string { return strings.TrimSpace(v[id]) }
	spec = session.GuardSpec{After: word("guard.after"), Budget: word("guard.budget"), Then: word("guard.then"), Save: word("guard.save")}
	if s := word("guard.idle"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < time.Second {
			return spec, 0, "guard.badidle"
		}
		spec.Idle = d
	}
	if s := word("guard.at"); s != "" {
		t, ok := session.GuardTime(s, now)
		if !ok {
			return spec, 2, "guard.badat"
		}
		spec.At = t
	}
	if spec.Idle == 0 && spec.After == "" && spec.At.IsZero() && spec.Budget == "" {
		return spec, 0, "guard.need"
	}
	return spec, 0, ""
}

func (a *app) guardOff(instance string) tea.Cmd {
	return a.work(func(ctx context.Context) then {
		_, err := a.fleet.Disarm(ctx, instance)
		return func() tea.Cmd {
			if err != nil {
				a.say(bad, err.Error())
			} else {
				a.say(info, a.T("guard.isoff", instance))
			}
			return nil
		}
	})
}

// dayRows is the use of all GPUs in the hours before, also those that a guard watched
// alone; nothing before there are some.
func (p *page) dayRows(l *look, s *session.View, w int) {
	const shortest = 45 * time.Minute // the cards' own rows show what is shorter
	day := s.Day.Mean
	first := 0
	for first < len(day) && math.IsNaN(day[first]) {
		first++
	}
	span := time.Duration(len(day)-first) * s.Day.Step
	if span < shortest || w < 40 {
		return
	}
	label := l.T("gpu.day", text.Dur(span))
	p.add(func(r cell.Area) {
		x := 2 + r.Put(2, 0, l.th.Dim, label) + 1
		r.Spark(x, 0, r.W-x, l.th.Accent, &l.gl, squeeze(day[first:], r.W-x), 100)
	})
}

// squeeze makes at most n means of a row; a mean of nothing is a gap.
func squeeze(row []float64, n int) []float64 {
	if n <= 0 || len(row) <= n {
		return row
	}
	out := make([]float64, n)
	for i := range out {
		sum, heard := 0.0, 0
		for _, v := range row[i*len(row)/n : (i+1)*len(row)/n] {
			if !math.IsNaN(v) {
				sum, heard = sum+v, heard+1
			}
		}
		if out[i] = math.NaN(); heard > 0 {
			out[i] = sum / float64(heard)
		}
	}
	return out
}
