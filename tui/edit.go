package tui

// Adding, changing, starting and forgetting instances.

import (
	"context"
	"reflect"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/remote"
	"rentop/session/billing"
	"rentop/session/config"
)

// newAdd is the dialog for a new instance; line may be what was pasted.
func newAdd(a *app, line string) *form {
	return instanceForm(a, a.T("add.title"), a.T("add.intro"), config.Instance{SSH: line},
		func(in config.Instance) error { return a.fleet.Add(in) })
}

// edit opens the dialog over an instance as configured.
func (a *app) edit(name string) tea.Cmd {
	return a.work(func(context.Context) then {
		in, err := a.fleet.Instance(name)
		return func() tea.Cmd {
			if err != nil {
				a.fail(err)
				return nil
			}
			a.push(instanceForm(a, a.T("edit.title", name), "", in,
				func(changed config.Instance) error { return a.fleet.Edit(name, changed) }))
			return nil
		}
	})
}

func instanceForm(a *app, head, intro string, in config.Instance, save func(config.Instance) error) *form {
	rate, budget := config.Rate{}, in.Budget
	if in.Rate != nil {
		rate = *in.Rate
	}
	line := in.SSH
	if line == "" {
		line = in.Host
	}
	name := in.Name
	if name == "" {
		name = suggestName(a, line)
	}
	f := &form{a: a, head: head, intro: intro, entries: []entry{
		{id: "add.ssh", f: newField(line)},
		{id: "add.name", f: newField(name)},
		{id: "add.price", f: newField(rate.PerHour)},
		{id: "add.currency", f: newField(rate.Currency)},
		{id: "add.stopped", f: newField(rate.WhileStopped)},
		{id: "add.budget", f: newField(budget)},
		{id: "add.provider", f: newField(in.Provider)},
		{id: "add.id", f: newField(in.ID)},
	}}
	ghosts := map[string]string{"add.ssh": "ssh -p 41237 root@connect.example", "add.price": "8.00", "add.currency": "CNY",
		"add.stopped": "0.02", "add.budget": "50", "add.provider": "command", "add.name": "a100"}
	for i := range f.entries {
		f.entries[i].f.ghost = a.example(ghosts[f.entries[i].id])
	}
	if line != "" {
		f.at = 1
	}
	f.done = func(v map[string]string) (string, tea.Cmd) {
		out := in
		get := func(id string) string { return strings.TrimSpace(v[id]) }
		if get("add.ssh") == "" {
			f.at = 0
			return a.T("add.needssh"), nil
		}
		out.Name, out.SSH, out.Host = get("add.name"), get("add.ssh"), ""
		if in.Host != "" && get("add.ssh") == in.Host {
			out.SSH, out.Host = "", in.Host
		}
		if out.Name == "" {
			out.Name = suggestName(a, out.SSH)
		}
		r := rate
		r.PerHour, r.Currency, r.WhileStopped = get("add.price"), strings.ToUpper(get("add.currency")), get("add.stopped")
		out.Rate = nil
		if !reflect.DeepEqual(r, config.Rate{}) {
			out.Rate = &r
		}
		out.Budget, out.Provider, out.ID = get("add.budget"), get("add.provider"), get("add.id")
		return "", a.work(func(context.Context) then {
			err := save(out)
			return func() tea.Cmd {
				if f.ended(err); err == nil {
					a.say(info, a.T("saved.instance", out.Name))
					a.fleet.Nudge(out.Name)
				}
				return nil
			}
		})
	}
	return f
}

// suggestName makes a name of the host that a line names, and a number where it is taken.
func suggestName(a *app, line string) string {
	if line == "" {
		return ""
	}
	host := ""
	if t, err := remote.ParseTarget(line); err == nil {
		host = t.Host
	}
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.SplitN(host, ".", 2)[0]))
	base = strings.Trim(base, "-")
	if base == "" || strings.Trim(base, "0123456789-") == "" {
		base = "gpu"
	}
	name := base
	for n := 2; a.session(name) != nil; n++ {
		name = base + "-" + itoa(n)
	}
	return name
}

// remove forgets an instance after its name was typed: the machine goes on costing.
func (a *app) remove(name string) tea.Cmd {
	f := &form{a: a, head: a.T("remove.title", name), intro: a.T("remove.intro"), verb: "act.remove", entries: []entry{{id: "typename"}}}
	f.done = func(v map[string]string) (string, tea.Cmd) {
		if v["typename"] != name {
			return a.T("typename.not", name), nil
		}
		return "", a.work(func(context.Context) then {
			err := a.fleet.Remove(name)
			return func() tea.Cmd {
				if f.ended(err); err == nil {
					a.say(info, a.T("removed", name))
				}
				return nil
			}
		})
	}
	a.push(f)
	return nil
}

// start asks the provider to start a stopped instance; it costs from then on.
func (a *app) start(name string) tea.Cmd {
	var running *billing.Amount
	if s := a.session(name); s != nil {
		running = s.Meter.Running
	}
	a.push(newConfirm(a, a.T("start.title", name), a.T("start.what", perHour(running)), func() tea.Cmd {
		a.say(info, a.T("start.asked", name))
		return a.act("", func(ctx context.Context) error { return a.fleet.Start(ctx, name) })
	}))
	return nil
}

// doctor shows what an instance has and lacks. It asks in the background: an
// instance that is not connected is tried first.
func (a *app) doctor(name string) tea.Cmd {
	m := newMessage(a, a.T("doctor.title", name), a.T("working"))
	a.push(m)
	return a.work(func(ctx context.Context) then {
		found, err := a.fleet.Doctor(ctx, name)
		var lines []string
		for _, f := range found {
			line := a.gl.Yes + " " + a.S(f.What)
			if !f.OK {
				line = a.gl.No + " " + a.S(f.What) + a.T("doctor.so") + a.S(f.So)
			}
			lines = append(lines, line)
		}
		return func() tea.Cmd {
			if m.words = strings.Join(lines, "\n"); err != nil {
				m.words = err.Error()
			}
			return nil
		}
	})
}

func (a *app) copyAddress(name string) tea.Cmd {
	s := a.session(name)
	if s == nil {
		return nil
	}
	a.say(info, a.T("copied", s.Address))
	return tea.SetClipboard(remote.Clean(s.Address))
}
