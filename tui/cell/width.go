package cell

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"rentop/remote"
)

// Width is how many cells Put needs for s.
func Width(s string) int {
	n := 0
	each(s, func(_ string, w int) bool { n += w; return true })
	return n
}

// Cut is s shortened to at most w cells, without a sign; for text that is put
// together before it is drawn.
func Cut(s string, w int) string {
	out, n := make([]byte, 0, len(s)), 0
	each(s, func(cl string, cw int) bool {
		if n+cw > w {
			return false
		}
		out, n = append(out, cl...), n+cw
		return true
	})
	return string(out)
}

// tail is the end of s that takes at most w cells.
func tail(s string, w int) string {
	drop, from := Width(s)-w, 0
	var out []byte
	each(s, func(cl string, cw int) bool {
		if from >= drop {
			out = append(out, cl...)
		}
		from += cw
		return true
	})
	return string(out)
}

// Wrap breaks s into lines of at most w cells, at spaces where it can and
// between wide characters, which have none.
func Wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	var lines []string
	var line []byte
	n, space, spaceN := 0, -1, 0 // space: where the line may break, and the width up to there
	each(s, func(cl string, cw int) bool {
		if n+cw > w {
			switch {
			case cl == " ":
				lines = append(lines, string(line))
				line, n, space = nil, 0, -1
				return true
			case space >= 0:
				lines = append(lines, string(trimRight(line[:space])))
				line, n = append([]byte(nil), line[space:]...), n-spaceN
			default:
				lines = append(lines, string(line))
				line, n = nil, 0
			}
			space = -1
		}
		if cl == " " && n == 0 && len(lines) > 0 {
			return true
		}
		line, n = append(line, cl...), n+cw
		if cl == " " || cw == 2 {
			space, spaceN = len(line), n
		}
		return true
	})
	if len(line) > 0 || len(lines) == 0 {
		lines = append(lines, string(line))
	}
	return lines
}

func trimRight(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// each calls f with the clusters of s, cleaned, and their widths (1 or 2), until
// f returns false.
func each(s string, f func(cluster string, width int) bool) {
	if !harmless(s) {
		s = remote.Clean(s)
	}
	for i := 0; i < len(s); {
		// ASCII followed by ASCII is a cluster of its own: the common case.
		if s[i] < utf8.RuneSelf && (i+1 == len(s) || s[i+1] < utf8.RuneSelf) {
			if !f(s[i:i+1], 1) {
				return
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if w := simple(r); w > 0 && alone(s[i+n:]) {
			if !f(s[i:i+n], w) {
				return
			}
			i += n
			continue
		}
		cl, w := ansi.FirstGraphemeCluster(s[i:], ansi.GraphemeWidth)
		i += len(cl)
		if cl, w = agreed(cl, w); w > 0 && !f(cl, w) {
			return
		}
	}
}

// harmless says that Clean would leave s as it is, without asking it: printable
// ASCII, our own signs, and the common Chinese characters.
func harmless(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if simple(r) == 0 {
			return false
		}
		i += n
	}
	return true
}

// simple is the width of a character that all terminals agree on and that begins
// no longer cluster by itself; 0 for all others.
func simple(r rune) int {
	switch {
	case r >= 0x4e00 && r < 0xa000, // CJK unified ideographs
		r >= 0x3001 && r <= 0x3002, r >= 0xff01 && r <= 0xff5e: // ，。（：
		return 2
	case r == 0x231a || r == 0x231b || r == 0x2329 || r == 0x232a || r >= 0x23e9 && r <= 0x23f3 || r == 0x25fd || r == 0x25fe: // wide emoji among the signs
		return 0
	case r >= 0x2190 && r < 0x2600, // arrows, box drawing, blocks, shapes
		r == 0x2713 || r == 0x2717,                                                             // ✓ ✗
		r == 0xa5 || r == 0xb0 || r == 0xb7 || r == 0xd7,                                       // ¥ ° · ×
		r == 0x2013 || r == 0x2014 || r == 0x2022 || r == 0x2026 || r == 0x201c || r == 0x201d: // – — • … “ ”
		return 1
	}
	return 0
}

// alone says that what follows does not join the character before it.
func alone(rest string) bool {
	if rest == "" || rest[0] < utf8.RuneSelf {
		return true
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return simple(r) > 0
}

// agreed makes a cluster one about whose width terminals agree. Without mode
// 2027 a terminal adds up code points (an emoji with a skin tone is 4 cells),
// with it the cluster counts (2): only its first character is kept then.
// https://github.com/charmbracelet/bubbletea/issues/1777
func agreed(cl string, w int) (string, int) {
	if w >= 0 && w <= 2 && ansi.StringWidthWc(cl) == w {
		return cl, w
	}
	_, n := utf8.DecodeRuneInString(cl)
	cl = cl[:n]
	if w = ansi.StringWidth(cl); w <= 2 && ansi.StringWidthWc(cl) == w {
		return cl, w
	}
	return "\ufffd", 1
}
