package cell

import "rentop/themes"

// Area is a rectangle of a grid. Drawing outside it does nothing.
type Area struct {
	g    *Grid
	x, y int
	W, H int
	base Style
}

// Origin is the area's top left cell in the grid.
func (a Area) Origin() (x, y int) { return a.x, a.y }

// Sub is the part of a that begins at x, y; it is cut to fit.
func (a Area) Sub(x, y, w, h int) Area {
	x, y = max(x, 0), max(y, 0)
	a.x, a.y = a.x+min(x, a.W), a.y+min(y, a.H)
	a.W, a.H = max(min(w, a.W-x), 0), max(min(h, a.H-y), 0)
	return a
}

// Row is one line of a.
func (a Area) Row(y int) Area {
	if y < 0 || y >= a.H {
		return a.Sub(0, 0, 0, 0)
	}
	return a.Sub(0, y, a.W, 1)
}

// Inset is a without a margin of dx and dy cells.
func (a Area) Inset(dx, dy int) Area { return a.Sub(dx, dy, a.W-2*dx, a.H-2*dy) }

// On fills a with a base style and returns it: what is put there lies on that base.
func (a Area) On(base Style) Area {
	a.base = base.Over(a.base)
	return a.Blank()
}

// Clear blanks a, so that it can be drawn over.
func (a Area) Clear() Area {
	a.base = Style{}
	return a.Blank()
}

// Put writes s at x, y, cleaned and cut at the area's right edge, and returns
// the width it took.
func (a Area) Put(x, y int, st Style, s string) int { return a.PutIn(x, y, a.W-x, st, s) }

// PutIn is Put into w cells.
func (a Area) PutIn(x, y, w int, st Style, s string) int {
	w = min(w, a.W-x)
	if x < 0 || y < 0 || y >= a.H || w <= 0 || s == "" {
		return 0
	}
	st = st.Over(a.base)
	used, at := 0, a.x+x
	over := false
	each(s, func(cl string, cw int) bool {
		if used+cw > w {
			over = true
			return false
		}
		a.g.set(at+used, a.y+y, cl, cw, st)
		used += cw
		return true
	})
	if !over {
		return used
	}
	// The sign of a cut takes the last cell; a wide character there gives way.
	if used == w {
		used--
		if a.g.cells[(a.y+y)*a.g.w+at+used].cover {
			used--
		}
	}
	a.g.set(at+used, a.y+y, a.g.more, 1, st)
	return used + 1
}

// PutPath is PutIn for what is told apart by its end: it is cut at the front.
func (a Area) PutPath(x, y, w int, st Style, s string) int {
	w = min(w, a.W-x)
	if n := Width(s); n > w && w > 1 {
		s = a.g.more + tail(s, w-1)
	}
	return a.PutIn(x, y, w, st, s)
}

// sign writes one of our own glyphs, which need no measuring.
func (a Area) sign(x, y int, st Style, glyph string) {
	if x >= 0 && x < a.W && y >= 0 && y < a.H {
		a.g.set(a.x+x, a.y+y, glyph, 1, st.Over(a.base))
	}
}

// Right writes s so that it ends at cell x+w, cut on its right where it is longer.
func (a Area) Right(x, y, w int, st Style, s string) int {
	return a.PutIn(x+max(w-Width(s), 0), y, w, st, s)
}

// Rule draws a line of the glyph across row y.
func (a Area) Rule(y int, st Style, glyph string) {
	for x := range a.W {
		a.sign(x, y, st, glyph)
	}
}

// Box draws a frame around a and returns its inside.
func (a Area) Box(st Style, g *themes.Glyphs) Area {
	if a.W < 2 || a.H < 2 {
		return a
	}
	for x := 1; x < a.W-1; x++ {
		a.Put(x, 0, st, g.Rule)
		a.Put(x, a.H-1, st, g.Rule)
	}
	for y := 1; y < a.H-1; y++ {
		a.Put(0, y, st, g.Upright)
		a.Put(a.W-1, y, st, g.Upright)
	}
	a.Put(0, 0, st, g.Corner[0])
	a.Put(a.W-1, 0, st, g.Corner[1])
	a.Put(0, a.H-1, st, g.Corner[2])
	a.Put(a.W-1, a.H-1, st, g.Corner[3])
	return a.Inset(1, 1)
}

// Pen writes words one after the other on a row.
type Pen struct {
	a Area
	x int
	y int
}

// Pen starts at x, y.
func (a Area) Pen(x, y int) *Pen { return &Pen{a: a, x: x, y: y} }

// Put writes s and moves on.
func (p *Pen) Put(st Style, s string) *Pen {
	p.x += p.a.Put(p.x, p.y, st, s)
	return p
}

// Skip moves on by n cells.
func (p *Pen) Skip(n int) *Pen { p.x += n; return p }

// To moves to cell x, if it is not past it.
func (p *Pen) To(x int) *Pen { p.x = max(p.x, x); return p }

// X is where the next word goes.
func (p *Pen) X() int { return p.x }

// Left is how many cells are left on the row.
func (p *Pen) Left() int { return p.a.W - p.x }

// Blank clears a without changing its base style.
func (a Area) Blank() Area {
	for y := range a.H {
		for x := range a.W {
			i := (a.y+y)*a.g.w + a.x + x
			a.g.cut(i)
			a.g.cells[i] = cell{st: a.base}
		}
	}
	return a
}
