package tui

// A form: labelled fields, one below the other.

import (
	tea "charm.land/bubbletea/v2"

	"rentop/tui/cell"
)

// entry is one line of a form: text, or a choice of words.
type entry struct {
	id     string // catalogue id of its label
	f      field
	choice []string // not nil: one of these; ids of "choice."+
	pick   int
	fixed  bool // shown, not changed
}

func (e *entry) value() string {
	if e.choice != nil {
		return e.choice[e.pick]
	}
	return e.f.String()
}

// form asks for several values at once.
type form struct {
	a       *app
	head    string
	intro   string // above the fields
	entries []entry
	at      int
	err     string
	busy    bool
	verb    string        // catalogue id of what Enter does; "" is to save
	hint    func() string // nil, or what is known of what was typed, below the fields
	// done is given the values by id; it returns a fault to show, or work to do,
	// after which the form is closed.
	done func(v map[string]string) (fault string, cmd tea.Cmd)
}

// hintLines is the room that is kept for a hint: a form does not jump while one types.
const hintLines = 2

// example is what an empty field shows; it is no value, also where nothing can be dim.
func (l *look) example(s string) string {
	if s == "" {
		return ""
	}
	return l.T("form.example", s)
}

func (f *form) title() string { return f.head }

func (f *form) size(w, h int) (int, int) {
	w = min(w, 76)
	n := len(f.entries) + 2
	if f.intro != "" {
		n += len(cell.Wrap(f.intro, w)) + 1
	}
	if f.err != "" {
		n += len(cell.Wrap(f.err, w)) + 1
	}
	if f.hint != nil {
		n += hintLines + 1
	}
	return w, min(n, h)
}

func (f *form) draw(b cell.Area) {
	a := f.a
	label := 0
	for i := range f.entries {
		label = max(label, cell.Width(a.T(f.entries[i].id)))
	}
	y := 1
	if f.intro != "" {
		for _, s := range cell.Wrap(f.intro, b.W) {
			b.Put(0, y, a.th.Dim, s)
			y++
		}
		y++
	}
	// Where the form is taller than the window, it begins so that the focus is seen.
	skip := 0
	if room := b.H - y - 1; f.at >= room && room > 0 {
		skip = f.at - room + 1
	}
	for i := skip; i < len(f.entries); i++ {
		e := &f.entries[i]
		st := a.th.Dim
		if i == f.at {
			st = a.th.Accent
			b.Put(0, y, st, a.gl.Pointer)
		}
		b.Put(2, y, st, a.T(e.id))
		r := b.Sub(2+label+2, y, b.W-label-4, 1)
		switch {
		case e.choice != nil:
			p := r.Pen(0, 0)
			for j, c := range e.choice {
				st, word := a.th.Dim, " "+a.T("choice."+c)+" "
				if j == e.pick {
					st, word = a.th.Strong, "["+a.T("choice."+c)+"]"
				}
				p.Put(st, word).Skip(1)
			}
		case e.fixed:
			r.Put(0, 0, a.th.Text, e.f.String())
		default:
			e.f.draw(a, r, i == f.at)
		}
		at := i
		a.onClick(b.Row(y), func() tea.Cmd { f.at = at; return nil })
		y++
	}
	if f.hint != nil && f.err == "" {
		for i, s := range cell.Wrap(f.hint(), b.W) {
			if i < hintLines {
				b.Put(0, y+1+i, a.th.Dim, s)
			}
		}
	}
	if f.err != "" {
		y++
		for _, s := range cell.Wrap(f.err, b.W) {
			b.Put(0, y, a.th.Bad, s)
			y++
		}
	}
}

func (f *form) key(k tea.KeyPressMsg) tea.Cmd {
	e := &f.entries[f.at]
	switch s := k.String(); s {
	case "esc":
		f.a.shut()
	case "tab", "down":
		f.step(1)
	case "shift+tab", "up":
		f.step(-1)
	case "enter":
		if f.at < len(f.entries)-1 && f.entries[f.at].value() == "" && e.f.ghost == "" {
			f.step(1)
			return nil
		}
		return f.submit()
	case "ctrl+s":
		return f.submit()
	default:
		switch {
		case e.choice != nil && (s == "left"):
			e.pick = (e.pick + len(e.choice) - 1) % len(e.choice)
		case e.choice != nil && (s == "right" || s == "space"):
			e.pick = (e.pick + 1) % len(e.choice)
		case e.choice == nil && !e.fixed:
			e.f.key(k)
		}
	}
	return nil
}

// step moves the focus to the next line that can be changed.
func (f *form) step(n int) {
	for range f.entries {
		f.at = (f.at + n + len(f.entries)) % len(f.entries)
		if !f.entries[f.at].fixed {
			return
		}
	}
}

func (f *form) submit() tea.Cmd {
	if f.busy {
		return nil
	}
	v := map[string]string{}
	for i := range f.entries {
		v[f.entries[i].id] = f.entries[i].value()
	}
	fault, cmd := f.done(v)
	f.err = fault
	f.busy = fault == "" && cmd != nil
	return cmd
}

// ended is called in Update when the work behind a form is over.
func (f *form) ended(err error) {
	f.busy = false
	if err != nil {
		f.err = err.Error()
		return
	}
	for i, d := range f.a.dialogs {
		if d == dialog(f) {
			f.a.dialogs = append(f.a.dialogs[:i:i], f.a.dialogs[i+1:]...)
			return
		}
	}
}

func (f *form) paste(s string) {
	if e := &f.entries[f.at]; e.choice == nil && !e.fixed {
		e.f.insert(s)
	}
}

func (f *form) hints() []hint {
	if f.busy {
		return []hint{{f.a.gl.Busy, f.a.T("working")}}
	}
	verb := f.verb
	if verb == "" {
		verb = "form.save"
	}
	return []hint{{f.a.gl.Enter, f.a.T(verb)}, {"Tab", f.a.T("form.next")}, {"Esc", f.a.T("cancel")}}
}
