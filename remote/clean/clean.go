// Package clean makes text from an instance safe to show. The standard library is
// all that it needs, so that the helper on the instance can link it.
package clean

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes text from an instance safe to show on one line: invalid UTF-8,
// control characters, escape sequences' introducers, bidirectional overrides
// and other invisible format characters become visible stand-ins; tabs and line
// ends become a space.
func Line(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		switch {
		case r == utf8.RuneError && n <= 1:
			b.WriteRune('\ufffd')
		case r == '\t' || r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte(' ')
		case r < 0x20:
			b.WriteRune('\u2400' + r) // ␀ … ␛: seen, not obeyed
		case r == 0x7f:
			b.WriteRune('\u2421')
		case r >= 0x80 && r < 0xa0, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Cs, r):
			b.WriteRune('\ufffd')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines is Line for text of several lines: line ends stay.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Line(strings.TrimSuffix(l, "\r"))
	}
	return strings.Join(lines, "\n")
}

// Short is Line, cut to at most n runes with an ellipsis.
func Short(s string, n int) string {
	s = Line(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
