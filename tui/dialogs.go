package tui

// Small dialogs: a message, a yes or no, the filter's line.

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"rentop/tui/cell"
)

// message shows a text that is too long for a line.
type message struct {
	a           *app
	head, words string
	off, room   int
}

func newMessage(a *app, head, words string) *message { return &message{a: a, head: head, words: words} }

func (m *message) lines(w int) []string {
	var out []string
	for _, l := range strings.Split(strings.TrimSpace(m.words), "\n") {
		out = append(out, cell.Wrap(l, w)...)
	}
	return out
}

func (m *message) title() string            { return m.head }
func (m *message) paste(string)             {}
func (m *message) size(w, h int) (int, int) { w = min(w, 90); return w, min(len(m.lines(w))+2, h) }

func (m *message) draw(b cell.Area) {
	lines := m.lines(b.W)
	m.room = max(b.H-2, 1)
	m.off = min(max(m.off, 0), max(len(lines)-m.room, 0))
	for y := 0; y < m.room && m.off+y < len(lines); y++ {
		b.Put(0, 1+y, m.a.th.Text, lines[m.off+y])
	}
}

func (m *message) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "j", "down":
		m.off++
	case "k", "up":
		m.off--
	case "pgdown", "space":
		m.off += m.room
	case "pgup":
		m.off -= m.room
	default:
		m.a.shut()
	}
	return nil
}

func (m *message) hints() []hint { return []hint{{"Esc", m.a.T("close")}, {"j k", m.a.T("scroll")}} }

// confirm asks yes or no; no is what Enter and Esc mean.
type confirm struct {
	a           *app
	head, words string
	yes         func() tea.Cmd
}

func newConfirm(a *app, head, words string, yes func() tea.Cmd) *confirm {
	return &confirm{a, head, words, yes}
}

func (c *confirm) title() string { return c.head }
func (c *confirm) paste(string)  {}

func (c *confirm) size(w, h int) (int, int) {
	w = min(w, 64)
	return w, min(len(cell.Wrap(c.words, w))+2, h)
}

func (c *confirm) draw(b cell.Area) {
	for i, s := range cell.Wrap(c.words, b.W) {
		b.Put(0, 1+i, c.a.th.Text, s)
	}
}

func (c *confirm) key(k tea.KeyPressMsg) tea.Cmd {
	c.a.shut()
	if k.String() == "y" || k.String() == "Y" {
		return c.yes()
	}
	return nil
}

func (c *confirm) hints() []hint { return []hint{{"y", c.a.T("yes")}, {"Esc", c.a.T("no")}} }

// filterLine edits a filter; the screen below follows each key.
type filterLine struct {
	a   *app
	to  *string
	old string
	f   field
}

func newFilter(a *app, to *string) *filterLine {
	return &filterLine{a: a, to: to, old: *to, f: newField(*to)}
}

func (l *filterLine) title() string            { return l.a.T("act.filter") }
func (l *filterLine) size(w, h int) (int, int) { return min(w, 52), 3 }
func (l *filterLine) paste(s string)           { l.f.insert(s); *l.to = l.f.String() }

func (l *filterLine) draw(b cell.Area) {
	l.f.ghost = l.a.T("filter.ghost")
	l.f.draw(l.a, b.Row(0), true)
	for i, s := range cell.Wrap(l.a.T("filter.how"), b.W) {
		b.Put(0, 1+i, l.a.th.Dim, s)
	}
}

func (l *filterLine) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		l.a.shut()
	case "esc":
		*l.to = ""
		l.a.shut()
	default:
		l.f.key(k)
		*l.to = l.f.String()
	}
	return nil
}

func (l *filterLine) hints() []hint {
	return []hint{{l.a.gl.Enter, l.a.T("keepit")}, {"Esc", l.a.T("clear")}}
}
