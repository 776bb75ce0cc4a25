package tui

import (
	"time"

	"rentop/session"
	"rentop/session/phrase"
	"rentop/themes"
	"rentop/tui/text"
)

// look is what drawing needs besides what it draws.
type look struct {
	th  themes.Theme
	gl  themes.Glyphs
	tx  *text.Lang
	now time.Time // of this frame
}

// T is a text of the catalogue.
func (l *look) T(id string, args ...any) string { return l.tx.T(id, args...) }

// N is a text with a count.
func (l *look) N(id string, n int, more ...any) string { return l.tx.N(id, n, more...) }

// S is what session says.
func (l *look) S(t phrase.Text) string { return l.tx.S(t) }

// level of something that is said.
type level int

const (
	info level = iota
	warn
	bad
)

func levelOf(l session.Level) level {
	switch l {
	case session.Urgent:
		return bad
	case session.Warn:
		return warn
	}
	return info
}

func (l *look) levelStyle(v level) themes.Style {
	switch v {
	case bad:
		return l.th.Bad
	case warn:
		return l.th.Warn
	}
	return l.th.Accent
}

// sign of a state: a different glyph each, so that colour is not needed.
func (l *look) sign(s session.State) (string, themes.Style) {
	switch s {
	case session.Live:
		return l.gl.Live, l.th.Good
	case session.Connecting, session.Waiting:
		return l.gl.Busy, l.th.Warn
	case session.Asking:
		return "?", l.th.Warn
	case session.Stalled, session.Refused:
		return l.gl.Trouble, l.th.Bad
	case session.Stopped, session.Idle:
		return l.gl.Off, l.th.Dim
	case session.Gone:
		return l.gl.No, l.th.Faint
	}
	return "?", l.th.Dim
}

// heat is the style of a temperature or a fill level against two thresholds.
func (l *look) heat(v, warnAt, badAt float64, calm themes.Style) themes.Style {
	switch {
	case v >= badAt:
		return l.th.Bad
	case v >= warnAt:
		return l.th.Warn
	}
	return calm
}
