package main

// Captured text with SGR sequences to a grid of cells.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// look is how a cell is drawn. Colours are "#rrggbb"; "" is the terminal's own.
type look struct {
	fg, bg                                 string
	bold, faint, italic, underline, strike bool
	reverse                                bool
}

// cell is one cell: text is "" for the right half of a wide character.
type cell struct {
	text  string
	width int
	look  look
}

// parse lays text out on cols×rows cells; what does not fit is dropped.
func parse(text string, cols, rows int) [][]cell {
	grid := make([][]cell, rows)
	for y := range grid {
		grid[y] = make([]cell, cols)
		for x := range grid[y] {
			grid[y][x] = cell{text: " ", width: 1}
		}
	}
	var now look
	var state byte
	x, y := 0, 0
	p := ansi.NewParser()
	for len(text) > 0 && y < rows {
		seq, width, n, next := ansi.DecodeSequence(text, state, p)
		state, text = next, text[n:]
		switch {
		case seq == "\n":
			x, y = 0, y+1
		case width > 0:
			if x+width <= cols {
				grid[y][x] = cell{text: seq, width: width, look: now}
				if width == 2 {
					grid[y][x+1] = cell{look: now}
				}
			}
			x += width
		case strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m"):
			now = now.sgr(seq[2 : len(seq)-1])
		}
	}
	return grid
}

// sgr applies the parameters of one SGR sequence (ECMA-48 8.3.117).
func (l look) sgr(params string) look {
	words := strings.Split(params, ";")
	for i := 0; i < len(words); i++ {
		n, _ := strconv.Atoi(strings.SplitN(words[i], ":", 2)[0]) // "" is 0
		switch {
		case n == 0:
			l = look{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.faint = true
		case n == 3:
			l.italic = true
		case n == 4:
			l.underline = words[i] != "4:0"
		case n == 7:
			l.reverse = true
		case n == 9:
			l.strike = true
		case n == 22:
			l.bold, l.faint = false, false
		case n == 23:
			l.italic = false
		case n == 24:
			l.underline = false
		case n == 27:
			l.reverse = false
		case n == 29:
			l.strike = false
		case n >= 30 && n <= 37:
			l.fg = palette(n - 30)
		case n >= 90 && n <= 97:
			l.fg = palette(n - 90 + 8)
		case n >= 40 && n <= 47:
			l.bg = palette(n - 40)
		case n >= 100 && n <= 107:
			l.bg = palette(n - 100 + 8)
		case n == 39:
			l.fg = ""
		case n == 49:
			l.bg = ""
		case n == 38 || n == 48:
			colour, used := extended(words[i+1:])
			i += used
			if n == 38 {
				l.fg = colour
			} else {
				l.bg = colour
			}
		}
	}
	return l
}

// extended reads "5;n" or "2;r;g;b" and tells how many words it took.
func extended(words []string) (colour string, used int) {
	v := make([]int, 0, 4)
	for _, w := range words {
		n, _ := strconv.Atoi(w)
		v = append(v, n)
	}
	switch {
	case len(v) >= 2 && v[0] == 5:
		return palette(v[1]), 2
	case len(v) >= 4 && v[0] == 2:
		return fmt.Sprintf("#%02x%02x%02x", v[1]&255, v[2]&255, v[3]&255), 4
	}
	return "", len(v)
}

// palette is xterm's 256 colours, with softer first sixteen.
func palette(n int) string {
	sixteen := [16]string{
		"#1c1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
		"#5c6370", "#ef7a85", "#a9d488", "#f0cf8a", "#74bdf5", "#d48ae8", "#6cc7d2", "#ffffff",
	}
	switch {
	case n < 0 || n > 255:
		return ""
	case n < 16:
		return sixteen[n]
	case n >= 232:
		g := 8 + 10*(n-232)
		return fmt.Sprintf("#%02x%02x%02x", g, g, g)
	}
	step := [6]int{0, 95, 135, 175, 215, 255}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", step[n/36], step[n/6%6], step[n%6])
}
