package main

// Characters that are drawn as shapes, not as text.

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// shape returns the SVG of a block, line or Braille character at a cell's top
// left corner, or "" for all others.
func shape(text string, x, y float64) string {
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 || n != len(text) {
		return ""
	}
	switch {
	case r >= '▁' && r <= '█': // lower eighths
		h := cellH * float64(r-'▁'+1) / 8
		return rect(x, y+cellH-h, cellW, h, 1)
	case r >= '▉' && r <= '▏': // left eighths, shrinking
		return rect(x, y, cellW*float64('▐'-r)/8, cellH, 1)
	case r == '▀':
		return rect(x, y, cellW, cellH/2, 1)
	case r == '▐':
		return rect(x+cellW/2, y, cellW/2, cellH, 1)
	case r >= '░' && r <= '▓':
		return rect(x, y, cellW, cellH, 0.25*float64(r-'░'+1))
	case r > '⠀' && r <= '⣿':
		return braille(r-'⠀', x, y)
	}
	if arms, is := lines[r]; is {
		return strokes(arms, x, y)
	}
	return ""
}

func rect(x, y, w, h, opacity float64) string {
	s := ""
	if opacity < 1 {
		s = fmt.Sprintf(` opacity="%s"`, num(opacity))
	}
	return fmt.Sprintf(`<rect x="%s" y="%s" width="%s" height="%s" shape-rendering="crispEdges"%s/>`, num(x), num(y), num(w), num(h), s)
}

// braille draws the dots of one pattern (Unicode chapter 21.1).
func braille(bits rune, x, y float64) string {
	at := [8][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}
	var b strings.Builder
	for i, p := range at {
		if bits&(1<<i) != 0 {
			fmt.Fprintf(&b, `<circle cx="%s" cy="%s" r="1.3"/>`, num(x+cellW*(0.27+0.46*p[0])), num(y+cellH*(0.14+0.24*p[1])))
		}
	}
	return b.String()
}

// lines maps a box character to its arms: left, right, up, down; capitals are heavy.
var lines = map[rune]string{
	'─': "lr", '│': "ud", '┌': "rd", '┐': "ld", '└': "ru", '┘': "lu", '├': "rud", '┤': "lud", '┬': "lrd", '┴': "lru",
	'┼': "lrud", '╭': "rd", '╮': "ld", '╰': "ru", '╯': "lu", '━': "LR", '┃': "UD", '╌': "lr", '┄': "lr", '╎': "ud", '┆': "ud",
	'╴': "l", '╶': "r", '╵': "u", '╷': "d",
}

func strokes(arms string, x, y float64) string {
	cx, cy := x+cellW/2, y+cellH/2
	end := map[rune][2]float64{'l': {x, cy}, 'r': {x + cellW, cy}, 'u': {cx, y}, 'd': {cx, y + cellH}}
	var b strings.Builder
	for _, a := range arms {
		width := "1.2"
		if a < 'a' {
			a, width = a+'a'-'A', "2.4"
		}
		fmt.Fprintf(&b, `<path d="M%s %sL%s %s" stroke-width="%s"/>`, num(cx), num(cy), num(end[a][0]), num(end[a][1]), width)
	}
	return b.String()
}
