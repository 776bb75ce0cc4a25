package tui

// The jobs of an instance: the list, and the log of one.

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/remote/tmux"
	"rentop/session"
	"rentop/tui/cell"
)

type jobs struct {
	a    *app
	name string // of the instance
	id   string // the selected job
	at   int
	off  int
}

func (a *app) openJobs(instance string) tea.Cmd {
	j := &jobs{a: a, name: instance}
	a.open(j)
	return nil
}

func (j *jobs) of() string    { return j.name }
func (j *jobs) title() string { return j.a.T("act.jobs") }
func (j *jobs) close()        {}
func (j *jobs) wheel(n int)   { j.move(n)() }

func (j *jobs) actions() []action {
	a := j.a
	return []action{
		{id: "log", keys: []string{"enter", "right", "l"}, foot: true, why: j.whyNone, do: func() tea.Cmd { return a.openLog(j.name, j.id) }},
		{id: "newjob", keys: []string{"n"}, foot: true, why: a.whyNotAct(&j.name), do: func() tea.Cmd { return a.newJob(j.name) }},
		{id: "kill", keys: []string{"x"}, foot: true, why: j.whyNotKill, do: func() tea.Cmd { return a.killJob(j.name, j.job()) }},
		{id: "restart", keys: []string{"R"}, foot: true, why: j.whyNotRestart, do: func() tea.Cmd {
			return a.restartJob(j.name, j.job(), func(job tmux.Job) tea.Cmd { j.id = job.ID; return nil })
		}},
		{id: "attach", keys: []string{"a"}, foot: true, why: j.whyNotAttach, do: func() tea.Cmd { return a.jobTerminal(j.name, j.job()) }},
		{id: "terminal", keys: []string{"t"}, why: a.whyNotAct(&j.name), do: func() tea.Cmd { return a.terminal(j.name) }},
		{id: "down", keys: []string{"j", "down"}, do: j.move(1)},
		{id: "up", keys: []string{"k", "up"}, do: j.move(-1)},
		{id: "pagedown", keys: []string{"pgdown", "ctrl+f", "space"}, do: j.move(10)},
		{id: "pageup", keys: []string{"pgup", "ctrl+b"}, do: j.move(-10)},
		{id: "first", keys: []string{"g", "home"}, do: j.move(-1 << 20)},
		{id: "last", keys: []string{"G", "end"}, do: j.move(1 << 20)},
	}
}

// list is the instance's jobs; the selection is settled.
func (j *jobs) list() []tmux.Job {
	s := j.a.session(j.name)
	if s == nil || len(s.Jobs) == 0 {
		j.id = ""
		return nil
	}
	for i := range s.Jobs {
		if s.Jobs[i].ID == j.id {
			j.at = i
			return s.Jobs
		}
	}
	j.at = min(max(j.at, 0), len(s.Jobs)-1)
	j.id = s.Jobs[j.at].ID
	return s.Jobs
}

// job is the selected one; nil where there is none.
func (j *jobs) job() *tmux.Job {
	list := j.list()
	if len(list) == 0 {
		return nil
	}
	return &list[j.at]
}

func (j *jobs) move(n int) func() tea.Cmd {
	return func() tea.Cmd {
		if list := j.list(); len(list) > 0 {
			j.at = min(max(j.at+n, 0), len(list)-1)
			j.id = list[j.at].ID
		}
		return nil
	}
}

func (j *jobs) whyNone() string {
	if why := j.a.whyGone(&j.name)(); why != "" {
		return why
	}
	if j.job() == nil {
		return j.a.T("why.nojob", j.name)
	}
	return ""
}

func (j *jobs) whyNotKill() string {
	if why := j.whyNone(); why != "" {
		return why
	}
	return j.a.whyNotKill(j.name, j.job())
}

func (j *jobs) whyNotRestart() string {
	if why := j.whyNone(); why != "" {
		return why
	}
	return j.a.whyNotRestart(j.name, j.job())
}

func (j *jobs) whyNotAttach() string {
	if why := j.whyNone(); why != "" {
		return why
	}
	return j.a.whyNotAttach(j.name, j.job())
}

func (j *jobs) draw(b cell.Area) {
	a := j.a
	s := a.session(j.name)
	if s == nil {
		b.Put(2, 1, a.th.Dim, a.T("why.gone", j.name))
		return
	}
	list := j.list()
	b = b.Inset(0, 1)
	y := 0
	if s.JobsErr != "" {
		b.Put(2, y, a.th.Warn, a.gl.Alert+" "+s.JobsErr)
		y += 2
	}
	if len(list) == 0 {
		b.Put(3, y, a.th.Text, a.T("jobs.none", j.name))
		b.Put(3, y+2, a.th.Dim, a.T("jobs.how"))
		return
	}
	detail := 8
	room := max(b.H-y-1-detail, 3)
	t := fit(a.jobCols(list), b.W-4)
	t.heading(b.Sub(3, y, b.W-4, 1), &a.look, "", false)
	j.off = scroll(j.off, j.at, len(list), room)
	for i := 0; i < room && j.off+i < len(list); i++ {
		x := &list[j.off+i]
		r := b.Row(y + 1 + i)
		if x.ID == j.id {
			r = r.On(a.th.Selected)
			r.Put(1, 0, a.th.Accent, a.gl.Pointer)
		}
		t.row(r.Sub(3, 0, r.W-4, 1), x)
		id := x.ID
		a.onClick(r, func() tea.Cmd {
			if j.id == id {
				return a.openLog(j.name, id)
			}
			j.id = id
			return nil
		})
	}
	top := y + 1 + min(room, len(list)) + 1
	j.drawDetail(b.Sub(3, top, b.W-6, b.H-top), &list[j.at])
}

// drawDetail is the selected job in full.
func (j *jobs) drawDetail(b cell.Area, x *tmux.Job) {
	a := j.a
	b.Rule(0, a.th.Faint, a.gl.Rule)
	y := 1
	line := func(id, v string) {
		if v == "" || y >= b.H {
			return
		}
		b.PutIn(0, y, 10, a.th.Dim, a.T(id))
		for i, s := range cell.Wrap(v, b.W-11) {
			if i == 3 || y >= b.H {
				break
			}
			b.Put(11, y, a.th.Text, s)
			y++
		}
	}
	line("job.command", x.Command)
	line("job.dir", x.Dir)
	when := clock(x.StartedAt, a.now)
	if !x.EndedAt.IsZero() {
		when += " " + a.gl.Arrow + " " + clock(x.EndedAt, a.now)
	}
	if x.PID > 0 {
		when += "   PID " + itoa(x.PID)
	}
	line("job.when", when)
	if s := a.session(j.name); s != nil {
		if r, ok := s.Receipts[x.ID]; ok {
			line("job.used", a.used(r))
		}
	}
	line("job.why", x.Why)
	line("job.lastline", x.LastLine)
}

func (a *app) whyNotKill(instance string, x *tmux.Job) string {
	if why := a.whyNotAct(&instance)(); why != "" {
		return why
	}
	if !running(x) {
		return a.T("why.jobended", x.Name)
	}
	return ""
}

func (a *app) whyNotRestart(instance string, x *tmux.Job) string {
	if why := a.whyNotAct(&instance)(); why != "" {
		return why
	}
	if running(x) {
		return a.T("why.jobruns", x.Name)
	}
	return ""
}

func (a *app) whyNotAttach(instance string, x *tmux.Job) string {
	if why := a.whyNotAct(&instance)(); why != "" {
		return why
	}
	switch {
	case !running(x):
		return a.T("why.jobended", x.Name)
	case !x.Tmux:
		return a.T("why.notmux", x.Name)
	}
	return ""
}

func (a *app) killJob(instance string, x *tmux.Job) tea.Cmd {
	id, name := x.ID, x.Name
	a.push(newConfirm(a, a.T("kill.title", name), a.T("kill.what", name), func() tea.Cmd {
		return a.act(a.T("killed", name), func(ctx context.Context) error {
			_, err := a.fleet.KillJob(ctx, instance, id)
			return err
		})
	}))
	return nil
}

// restartJob asks first; runs is told of the new job.
func (a *app) restartJob(instance string, x *tmux.Job, runs func(tmux.Job) tea.Cmd) tea.Cmd {
	id, name := x.ID, x.Name
	a.push(newConfirm(a, a.T("restart.title", name), a.T("restart.what", x.Command), func() tea.Cmd {
		return a.work(func(ctx context.Context) then {
			job, err := a.fleet.RestartJob(ctx, instance, id)
			return func() tea.Cmd {
				if err != nil {
					a.fail(err)
					return nil
				}
				a.v = a.fleet.View() // it has the new job
				a.say(info, a.T("restarted", name))
				return runs(job)
			}
		})
	}))
	return nil
}

// newJob asks for a command. The form closes when the job provably runs.
func (a *app) newJob(instance string) tea.Cmd {
	f := &form{a: a, verb: "form.start", head: a.T("newjob.title", instance), intro: a.T("newjob.intro"), entries: []entry{
		{id: "newjob.command"}, {id: "newjob.name"}, {id: "newjob.dir"},
	}}
	f.entries[0].f.ghost = a.example("python train.py")
	f.entries[1].f.ghost = a.T("newjob.name.ghost")
	f.entries[2].f.ghost = a.T("newjob.dir.ghost")
	if s := a.session(instance); s != nil && len(s.Syncs) > 0 {
		f.entries[2].f = newField(s.Syncs[0].Remote)
	}
	f.done = func(v map[string]string) (string, tea.Cmd) {
		spec := session.JobSpec{Name: strings.TrimSpace(v["newjob.name"]), Command: v["newjob.command"], Dir: strings.TrimSpace(v["newjob.dir"])}
		if strings.TrimSpace(spec.Command) == "" {
			f.at = 0
			return a.T("newjob.need"), nil
		}
		return "", a.work(func(ctx context.Context) then {
			job, err := a.fleet.StartJob(ctx, instance, spec)
			return func() tea.Cmd {
				if f.ended(err); err == nil {
					a.say(info, a.T("newjob.runs", job.Name, instance))
				}
				return nil
			}
		})
	}
	a.push(f)
	return a.hintEstimate(f, instance)
}

// hintEstimate shows below the command what past runs of it took and would cost here.
func (a *app) hintEstimate(f *form, instance string) tea.Cmd {
	var past *session.PastRuns
	f.hint = func() string {
		if past == nil {
			return ""
		}
		e, ok := past.For(f.entries[0].value())
		if !ok {
			return ""
		}
		return a.S(e.Text())
	}
	return a.work(func(ctx context.Context) then {
		got, err := a.fleet.PastRuns(ctx, instance)
		return func() tea.Cmd {
			if err == nil { // without them there is no hint, and nothing else is lost
				past = got
			}
			return nil
		}
	})
}
