package tui

// Questions that only the person can answer while connecting.

import (
	tea "charm.land/bubbletea/v2"

	"rentop/remote"
	"rentop/session"
	"rentop/tui/cell"
)

// question is the dialog of one session.Question.
type question struct {
	a        *app
	q        session.Question
	f        field
	remember bool
}

// askNext shows the first question that was not put off, and takes away one that
// is not asked any more.
func (a *app) askNext() {
	open := map[int]bool{}
	for _, q := range a.v.Questions {
		open[q.ID] = true
	}
	if a.asking != 0 && !open[a.asking] {
		for i, d := range a.dialogs {
			if q, ok := d.(*question); ok && q.q.ID == a.asking {
				a.dialogs = append(a.dialogs[:i:i], a.dialogs[i+1:]...)
				break
			}
		}
		a.asking = 0
	}
	if a.asking != 0 {
		return
	}
	for _, q := range a.v.Questions {
		if !a.later[q.ID] && !a.answered[q.ID] {
			a.asking = q.ID
			d := &question{a: a, q: q}
			d.f.secret = q.Kind != remote.AskInteractive || !q.Echo
			a.push(d)
			return
		}
	}
}

// waiting is how many questions are not answered.
func (a *app) waiting() int {
	n := 0
	for _, q := range a.v.Questions {
		if !a.answered[q.ID] {
			n++
		}
	}
	return n
}

func (d *question) title() string {
	switch d.q.Kind {
	case remote.AskHostKey:
		return d.a.T("ask.hostkey", d.q.Instance)
	case remote.AskPassphrase:
		return d.a.T("ask.passphrase", d.q.Instance)
	case remote.AskInteractive:
		return d.a.T("ask.code", d.q.Instance)
	}
	return d.a.T("ask.password", d.q.Instance)
}

// words are the lines above the input.
func (d *question) words(w int) (lines []string, strong int) {
	a, strong := d.a, -1
	add := func(s string) { lines = append(lines, cell.Wrap(s, w)...) }
	if d.q.Retry {
		add(a.T("ask.retry"))
		lines = append(lines, "")
	}
	switch d.q.Kind {
	case remote.AskHostKey:
		add(a.T("ask.hostkey.what", d.q.Host))
		lines = append(lines, "")
		strong = len(lines)
		add(d.q.KeyType + "  " + d.q.Fingerprint)
		lines = append(lines, "")
		add(a.T("ask.hostkey.how"))
	case remote.AskPassphrase:
		add(a.T("ask.passphrase.what", d.q.KeyFile))
	case remote.AskInteractive:
		add(d.q.Host)
		add(d.q.Prompt)
	default:
		add(a.T("ask.password.what", d.q.Host))
	}
	return lines, strong
}

func (d *question) size(w, h int) (int, int) {
	w = min(w, 68)
	lines, _ := d.words(w)
	n := len(lines) + 2
	if d.q.Kind != remote.AskHostKey {
		n += 2
		if d.q.CanRemember {
			n++
		}
	}
	return w, min(n, h)
}

func (d *question) draw(b cell.Area) {
	lines, strong := d.words(b.W)
	y := 1
	for i, s := range lines {
		st := d.a.th.Text
		switch {
		case i == strong:
			st = d.a.th.Strong
		case i == 0 && d.q.Retry:
			st = d.a.th.Bad
		}
		b.Put(0, y, st, s)
		y++
	}
	if d.q.Kind == remote.AskHostKey {
		return
	}
	y++
	d.f.draw(d.a, b.Row(y), true)
	if d.q.CanRemember {
		box := "[ ] "
		if d.remember {
			box = "[" + d.a.gl.Yes + "] "
		}
		b.Put(0, y+1, d.a.th.Dim, box+d.a.T("ask.remember"))
	}
}

func (d *question) key(k tea.KeyPressMsg) tea.Cmd {
	s := k.String()
	if s == "esc" {
		// Put off, not declined: it is asked again with A.
		d.a.later[d.q.ID] = true
		d.a.asking = 0
		d.a.shut()
		d.a.askNext()
		return nil
	}
	if s == "ctrl+c" {
		d.answer(remote.Answer{})
		return nil
	}
	if d.q.Kind == remote.AskHostKey {
		switch s {
		case "y", "Y":
			d.answer(remote.Answer{OK: true})
		case "n", "N":
			d.answer(remote.Answer{})
		}
		return nil
	}
	switch {
	case s == "enter":
		d.answer(remote.Answer{OK: true, Text: d.f.String(), Remember: d.remember && d.q.CanRemember})
	case s == "tab" && d.q.CanRemember:
		d.remember = !d.remember
	default:
		d.f.key(k)
	}
	return nil
}

func (d *question) answer(x remote.Answer) {
	d.a.fleet.Answer(d.q.ID, x)
	d.a.answered[d.q.ID] = true
	d.a.asking = 0
	d.f = field{}
	d.a.shut()
	d.a.askNext()
}

func (d *question) paste(s string) {
	if d.q.Kind != remote.AskHostKey {
		d.f.insert(s)
	}
}

func (d *question) hints() []hint {
	a := d.a
	if d.q.Kind == remote.AskHostKey {
		return []hint{{"y", a.T("ask.trust")}, {"n", a.T("ask.distrust")}, {"Esc", a.T("ask.later")}}
	}
	out := []hint{{a.gl.Enter, a.T("ask.send")}}
	if d.q.CanRemember {
		out = append(out, hint{"Tab", a.T("ask.remember.key")})
	}
	return append(out, hint{"^C", a.T("ask.decline")}, hint{"Esc", a.T("ask.later")})
}
