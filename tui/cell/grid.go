package cell

import (
	"rentop/themes"
)

// Style is how a cell looks.
type Style = themes.Style

// cell is one terminal cell. A double-width character lies in its left cell;
// the right one is covered.
type cell struct {
	s     string // one grapheme cluster; "" is a blank
	wide  bool
	cover bool // the right half of the cell before
	st    Style
}

// Grid is a frame being drawn. It is reused from frame to frame.
type Grid struct {
	w, h  int
	more  string // ends what was cut
	cells []cell
	out   []byte
}

// NewGrid returns an empty grid; more is the one-cell sign that ends cut text.
func NewGrid(more string) *Grid { return &Grid{more: more} }

// Reset clears the grid and gives it a size in cells.
func (g *Grid) Reset(w, h int) Area {
	w, h = max(w, 0), max(h, 0)
	g.w, g.h = w, h
	if n := w * h; cap(g.cells) < n {
		g.cells = make([]cell, n)
	} else {
		g.cells = g.cells[:n]
		clear(g.cells)
	}
	return Area{g: g, W: w, H: h}
}

// set writes one cluster, and blanks what it half covers.
func (g *Grid) set(x, y int, s string, width int, st Style) {
	i := y*g.w + x
	g.cut(i)
	if width == 2 {
		g.cut(i + 1)
		g.cells[i] = cell{s: s, wide: true, st: st}
		g.cells[i+1] = cell{cover: true, st: st}
		return
	}
	g.cells[i] = cell{s: s, st: st}
}

// cut blanks the other half of a double-width character of which cell i is a half.
func (g *Grid) cut(i int) {
	switch c := &g.cells[i]; {
	case c.cover:
		g.cells[i-1].s, g.cells[i-1].wide = "", false
		c.cover = false
	case c.wide:
		g.cells[i+1].cover = false
		c.s, c.wide = "", false
	}
}

// String is the frame: lines joined by \n, with SGR sequences, each line ending
// in plain style; trailing plain blanks are left out.
func (g *Grid) String() string {
	b := g.out[:0]
	for y := range g.h {
		if y > 0 {
			b = append(b, '\n')
		}
		row := g.cells[y*g.w : (y+1)*g.w]
		end := len(row)
		for end > 0 && row[end-1].s == "" && !row[end-1].cover && !shows(row[end-1].st) {
			end--
		}
		var st Style
		for _, c := range row[:end] {
			if c.cover {
				continue
			}
			if c.s == "" && c.st != st && !shows(c.st) && !shows(st) {
				b = append(b, ' ') // a blank's text colour does not show
				continue
			}
			if c.st != st {
				b = sgr(b, c.st)
				st = c.st
			}
			if c.s == "" {
				b = append(b, ' ')
			} else {
				b = append(b, c.s...)
			}
		}
		if st != (Style{}) {
			b = append(b, "\x1b[m"...)
		}
	}
	g.out = b
	return string(b)
}

// Lines is the frame as plain text, a string a line, without styles.
func (g *Grid) Lines() []string {
	out := make([]string, g.h)
	for y := range g.h {
		var b []byte
		for _, c := range g.cells[y*g.w : (y+1)*g.w] {
			switch {
			case c.cover:
			case c.s == "":
				b = append(b, ' ')
			default:
				b = append(b, c.s...)
			}
		}
		for len(b) > 0 && b[len(b)-1] == ' ' {
			b = b[:len(b)-1]
		}
		out[y] = string(b)
	}
	return out
}

// shows says whether a blank cell in st differs from a plain one.
func shows(st Style) bool {
	return st.BG != 0 || st.Attr&(themes.Underline|themes.Reverse) != 0
}
