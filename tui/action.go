package tui

// Actions: what a person can do on a screen, with its keys. The footer, the help
// and the palette are made from the same list; so no key is hidden.

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// action is one thing to do. Its catalogue ids are "act."+id (a word for the
// footer) and "act."+id+".help" (a sentence).
type action struct {
	id   string
	keys []string // as Bubble Tea names them; the first is shown
	foot bool     // has a place in the footer
	why  func() string
	do   func() tea.Cmd
}

// keysOf are an action's keys: the person's own, where the options have some.
func (a *app) keysOf(x action) []string {
	if k, ok := a.opt.Keys[x.id]; ok {
		return k
	}
	return x.keys
}

// find is the action of a key among those of the top screen and the global ones.
// A key that the person gave to an action is that action's first of all.
func (a *app) find(key string) (action, bool) {
	var found action
	ok := false
	for _, x := range a.actions() {
		if !slices.Contains(a.keysOf(x), key) {
			continue
		}
		if _, own := a.opt.Keys[x.id]; own {
			return x, true
		}
		if !ok {
			found, ok = x, true
		}
	}
	return found, ok
}

// actions are the top screen's, then the global ones.
func (a *app) actions() []action { return a.replaying(append(a.top().actions(), a.global()...)) }

// run does an action, or says why it cannot be done now.
func (a *app) run(x action) tea.Cmd {
	if x.why != nil {
		if why := x.why(); why != "" {
			a.say(warn, a.T("cannot", a.T("act."+x.id), why))
			return nil
		}
	}
	return x.do()
}

// global are the actions that every screen has.
func (a *app) global() []action {
	return []action{
		{id: "palette", keys: []string{":", "ctrl+p"}, foot: true, do: func() tea.Cmd { a.push(newPalette(a)); return nil }},
		{id: "help", keys: []string{"?", "f1"}, foot: true, do: func() tea.Cmd { a.push(newHelp(a)); return nil }},
		{id: "back", keys: []string{"esc", "backspace", "left"}, why: a.whyNoBack, do: a.back},
		{id: "quit", keys: []string{"q", "ctrl+c"}, foot: len(a.screens) == 1, do: a.quit},
		{id: "answer", keys: []string{"A"}, why: a.whyNoQuestion, do: func() tea.Cmd { clear(a.later); a.askNext(); return nil }},
		{id: "mouse", keys: []string{"M"}, do: func() tea.Cmd { a.noMouse = !a.noMouse; return nil }},
		{id: "theme", keys: []string{"T"}, do: func() tea.Cmd { a.nextTheme(); return nil }},
		{id: "redraw", keys: []string{"ctrl+l"}, do: func() tea.Cmd { return tea.ClearScreen }},
		{id: "suspend", keys: []string{"ctrl+z"}, why: a.whyNoSuspend, do: func() tea.Cmd { return tea.Suspend }},
	}
}

func (a *app) whyNoBack() string {
	if s, ok := a.top().(narrowed); ok && s.filtered() {
		return ""
	}
	if len(a.screens) == 1 {
		return a.T("why.first")
	}
	return ""
}

func (a *app) whyNoQuestion() string {
	if a.waiting() == 0 {
		return a.T("why.noquestion")
	}
	return ""
}

func (a *app) whyNoSuspend() string {
	if !canSuspend {
		return a.T("why.nosuspend")
	}
	return ""
}

// keyName is how a key is shown: "↵", "^P", "PgDn".
func (l *look) keyName(k string) string {
	switch k {
	case "enter":
		return l.gl.Enter
	case "esc":
		return "Esc"
	case "space":
		return l.T("key.space")
	case "up":
		return l.gl.Up
	case "down":
		return l.gl.Down
	case "tab":
		return "Tab"
	case "shift+tab":
		return "S-Tab"
	case "pgup":
		return "PgUp"
	case "pgdown":
		return "PgDn"
	case "home":
		return "Home"
	case "end":
		return "End"
	case "backspace":
		return "Bksp"
	case "left":
		return "Left"
	case "right":
		return "Right"
	case "f1":
		return "F1"
	}
	if r, ok := strings.CutPrefix(k, "ctrl+"); ok {
		return "^" + strings.ToUpper(r)
	}
	return k
}
