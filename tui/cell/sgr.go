package cell

import (
	"strconv"

	"rentop/themes"
)

// sgr appends the sequence that makes st the current style, whatever was before.
func sgr(b []byte, st Style) []byte {
	b = append(b, "\x1b["...)
	if st == (Style{}) {
		return append(b, 'm')
	}
	b = append(b, '0')
	for _, a := range [...]struct {
		is themes.Attr
		n  string
	}{{themes.Bold, ";1"}, {themes.Faint, ";2"}, {themes.Italic, ";3"}, {themes.Underline, ";4"}, {themes.Reverse, ";7"}} {
		if st.Attr&a.is != 0 {
			b = append(b, a.n...)
		}
	}
	b = colour(b, st.FG, 30)
	b = colour(b, st.BG, 40)
	return append(b, 'm')
}

// colour appends the parameters of one colour; base is 30 for text, 40 for the
// background (ECMA-48 8.3.117, and xterm's 38/48 forms).
func colour(b []byte, c themes.Color, base int) []byte {
	if n, ok := c.Index(); ok {
		switch {
		case n < 8:
			return num(append(b, ';'), base+int(n))
		case n < 16:
			return num(append(b, ';'), base+60+int(n)-8)
		}
		return num(append(num(append(b, ';'), base+8), ";5;"...), int(n))
	}
	if r, g, bl, ok := c.Parts(); ok {
		b = append(num(append(b, ';'), base+8), ";2;"...)
		b = append(num(b, int(r)), ';')
		b = append(num(b, int(g)), ';')
		return num(b, int(bl))
	}
	return b
}

func num(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
