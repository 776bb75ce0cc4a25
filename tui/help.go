package tui

// Help and the palette: both are made from the actions, so that they are complete.

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"

	"rentop/themes"
	"rentop/tui/cell"
)

// picker is a line of input over a list of actions.
type picker struct {
	a     *app
	head  string
	fuzzy bool // else every word must occur
	f     field
	items []pick
	shown []int
	at    int
	off   int
}

// pick is an action, or something to open by name.
type pick struct {
	id, keys, word, help, why string
	do                        func() tea.Cmd
}

// newHelp lists the top screen's actions and the global ones; Enter does one.
func newHelp(a *app) *picker {
	p := &picker{a: a, head: a.T("help.title"), items: a.picks()}
	p.narrow()
	return p
}

// newPalette finds an action, an instance or a command by name.
func newPalette(a *app) *picker {
	p := &picker{a: a, head: a.T("act.palette"), items: a.picks(), fuzzy: true}
	for i := range a.v.Sessions {
		name := a.v.Sessions[i].Name
		p.items = append(p.items, pick{word: a.T("go", name), help: a.v.Sessions[i].Address, do: func() tea.Cmd {
			for len(a.screens) > 1 {
				a.back()
			}
			a.open(newInstance(a, name))
			return nil
		}})
	}
	p.narrow()
	return p
}

func (a *app) picks() []pick {
	var out []pick
	seen := map[string]bool{}
	for _, x := range a.actions() {
		if seen[x.id] {
			continue
		}
		seen[x.id] = true
		var keys []string
		for _, k := range a.keysOf(x) {
			keys = append(keys, a.keyName(k))
		}
		why := ""
		if x.why != nil {
			why = x.why()
		}
		out = append(out, pick{x.id, strings.Join(keys, " "), a.T("act." + x.id), a.T("act." + x.id + ".help"), why, func() tea.Cmd { return a.run(x) }})
	}
	return out
}

// narrow keeps the items that the input means, the best names first where it is
// fuzzy, then those whose help has the words.
func (p *picker) narrow() {
	p.shown, p.at, p.off = p.shown[:0], 0, 0
	q := strings.TrimSpace(p.f.String())
	if q == "" {
		for i := range p.items {
			p.shown = append(p.shown, i)
		}
		return
	}
	if p.fuzzy {
		named := map[int]bool{}
		for _, m := range fuzzy.FindFrom(q, words(p.items)) {
			p.shown, named[m.Index] = append(p.shown, m.Index), true
		}
		keep := matcher(q)
		for i := range p.items {
			if !named[i] && keep(p.items[i].help) {
				p.shown = append(p.shown, i)
			}
		}
		return
	}
	keep := matcher(q)
	for i := range p.items {
		if keep(p.items[i].id + " " + p.items[i].keys + " " + p.items[i].word + " " + p.items[i].help) {
			p.shown = append(p.shown, i)
		}
	}
}

// words is what the palette is searched in: the names in the person's language
// and the actions' own.
type words []pick

func (w words) String(i int) string { return w[i].word + " " + w[i].id }
func (w words) Len() int            { return len(w) }

func (p *picker) title() string { return p.head }
func (p *picker) paste(s string) {
	p.f.insert(s)
	p.narrow()
}
func (p *picker) size(w, h int) (int, int) { return min(w, 84), min(len(p.items)+2, h) }

func (p *picker) draw(b cell.Area) {
	a := p.a
	p.f.ghost = a.T("pick.ghost")
	p.f.draw(a, b.Row(0), true)
	list := b.Sub(0, 2, b.W, b.H-2)
	keys, word := 0, 0
	for i := range p.items {
		keys = max(keys, min(cell.Width(p.items[i].keys), 16))
		word = max(word, min(cell.Width(p.items[i].word), 26))
	}
	if len(p.shown) == 0 {
		list.Put(0, 0, a.th.Dim, a.T("filter.none", p.f.String()))
		return
	}
	p.at = min(max(p.at, 0), len(p.shown)-1)
	p.off = scroll(p.off, p.at, len(p.shown), list.H)
	for y := 0; y < list.H && p.off+y < len(p.shown); y++ {
		it := &p.items[p.shown[p.off+y]]
		r := list.Row(y)
		if p.off+y == p.at {
			r = r.On(a.th.Selected)
			r.Put(0, 0, a.th.Accent, a.gl.Pointer)
		}
		st, help, hs := a.th.Strong, it.help, a.th.Dim
		if it.why != "" {
			st, help, hs = a.th.Faint, it.why, themes.Style{FG: a.th.Warn.FG}
		}
		r.PutIn(2, 0, keys, a.th.Key, it.keys)
		r.PutIn(2+keys+2, 0, word, st, it.word)
		r.Put(2+keys+2+word+2, 0, hs, help)
		row := p.off + y
		a.onClick(r, func() tea.Cmd { p.at = row; return p.choose() })
	}
}

func (p *picker) choose() tea.Cmd {
	if len(p.shown) == 0 {
		return nil
	}
	p.a.shut()
	return p.items[p.shown[p.at]].do()
}

func (p *picker) key(k tea.KeyPressMsg) tea.Cmd {
	page := max(len(p.shown)/3, 5)
	switch k.String() {
	case "esc":
		p.a.shut()
	case "enter":
		return p.choose()
	case "down", "ctrl+n", "tab":
		p.at++
	case "up", "ctrl+p", "shift+tab":
		p.at = max(p.at-1, 0)
	case "pgdown":
		p.at += page
	case "pgup":
		p.at = max(p.at-page, 0)
	default:
		if p.f.key(k) {
			p.narrow()
		}
	}
	return nil
}

func (p *picker) hints() []hint {
	a := p.a
	return []hint{{a.gl.Enter, a.T("pick.do")}, {a.gl.Up + a.gl.Down, a.T("pick.move")}, {"Esc", a.T("close")}}
}
