package tui

// A line of input.

import (
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"rentop/themes"
	"rentop/tui/cell"
)

// maxInput bounds what a paste may put into a field.
const maxInput = 16 << 10

// field is one editable line. The zero field is empty.
type field struct {
	text   []rune
	at     int // of the cursor
	secret bool
	ghost  string // shown while empty
	whole  bool   // all of it is selected: what is typed replaces it
}

func newField(s string) field {
	f := field{}
	f.insert(s)
	return f
}

// newSelected is a field with a value that is only a proposal.
func newSelected(s string) field {
	f := newField(s)
	f.whole = len(f.text) > 0
	return f
}

func (f *field) String() string { return string(f.text) }

// insert puts s at the cursor; line ends and control characters become spaces.
func (f *field) insert(s string) {
	if f.whole {
		f.text, f.at, f.whole = nil, 0, false
	}
	s = strings.TrimRight(s, "\r\n")
	var in []rune
	for _, r := range s {
		if len(f.text)+len(in) >= maxInput {
			break
		}
		switch {
		case r == utf8.RuneError, r == 0x7f:
		case unicode.IsControl(r):
			in = append(in, ' ')
		default:
			in = append(in, r)
		}
	}
	f.text = append(f.text[:f.at:f.at], append(in, f.text[f.at:]...)...)
	f.at += len(in)
}

// key edits and says whether the key was one for editing.
func (f *field) key(k tea.KeyPressMsg) bool {
	whole := f.whole
	f.whole = false
	switch k.String() {
	case "left", "ctrl+b":
		f.at = max(f.at-1, 0)
	case "right", "ctrl+f":
		f.at = min(f.at+1, len(f.text))
	case "home", "ctrl+a":
		f.at = 0
	case "end", "ctrl+e":
		f.at = len(f.text)
	case "backspace", "ctrl+h":
		if whole {
			f.at = 0
			f.drop(0, len(f.text))
		} else {
			f.drop(max(f.at-1, 0), f.at)
		}
	case "delete", "ctrl+d":
		if whole {
			f.at = 0
			f.drop(0, len(f.text))
		} else {
			f.drop(f.at, min(f.at+1, len(f.text)))
		}
	case "ctrl+u":
		f.drop(0, f.at)
	case "ctrl+k":
		f.drop(f.at, len(f.text))
	case "ctrl+w", "alt+backspace":
		from := f.at
		for from > 0 && f.text[from-1] == ' ' {
			from--
		}
		for from > 0 && f.text[from-1] != ' ' {
			from--
		}
		f.drop(from, f.at)
	default:
		f.whole = whole
		if k.Text == "" || k.Mod&^(tea.ModShift|tea.ModCapsLock) != 0 {
			return false
		}
		f.insert(k.Text)
	}
	return true
}

func (f *field) drop(from, to int) {
	f.text = append(f.text[:from:from], f.text[to:]...)
	f.at = from
}

// draw shows the part around the cursor; with focus it places the terminal's.
func (f *field) draw(a *app, r cell.Area, focus bool) {
	r = r.On(a.th.Input)
	if len(f.text) == 0 {
		r.Put(0, 0, a.th.Dim, f.ghost)
		if focus {
			a.setCursor(r, 0, 0)
		}
		return
	}
	shown := func(rs []rune) string {
		if f.secret {
			return strings.Repeat(a.gl.Mask, len(rs))
		}
		return string(rs)
	}
	from := 0
	for cell.Width(shown(f.text[from:f.at])) >= r.W && from < f.at {
		from++
	}
	st := a.th.Text
	if f.whole && focus {
		st = st.With(themes.Reverse)
	}
	r.Put(0, 0, st, shown(f.text[from:]))
	if focus {
		a.setCursor(r, cell.Width(shown(f.text[from:f.at])), 0)
	}
}
