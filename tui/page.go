package tui

import (
	"rentop/tui/cell"
)

// page is a column of rows that may be longer than the window.
type page struct {
	rows []func(r cell.Area)
}

func (p *page) add(row func(r cell.Area)) { p.rows = append(p.rows, row) }

// gap adds an empty row, but not two.
func (p *page) gap() {
	if n := len(p.rows); n > 0 && p.rows[n-1] != nil {
		p.rows = append(p.rows, nil)
	}
}

// text adds s wrapped, behind an indent.
func (p *page) text(w, indent int, st cell.Style, s string) {
	for _, line := range cell.Wrap(s, max(w-indent, 8)) {
		p.add(func(r cell.Area) { r.Put(indent, 0, st, line) })
	}
}

// beside adds two pages side by side, with a gap of three cells.
func (p *page) beside(left, right page, leftW int) {
	for i := range max(len(left.rows), len(right.rows)) {
		p.add(func(r cell.Area) {
			if i < len(left.rows) && left.rows[i] != nil {
				left.rows[i](r.Sub(0, 0, leftW, 1))
			}
			if i < len(right.rows) && right.rows[i] != nil {
				right.rows[i](r.Sub(leftW+3, 0, r.W-leftW-3, 1))
			}
		})
	}
}

// drawMore is draw that says below how much is not shown.
func (p *page) drawMore(l *look, b cell.Area, off int) int {
	if len(p.rows) <= b.H {
		return p.draw(b, off)
	}
	off = p.draw(b.Sub(0, 0, b.W, b.H-1), off)
	if more := len(p.rows) - off - b.H + 1; more > 0 {
		b.Put(0, b.H-1, l.th.Dim, l.gl.Down+" "+l.T("more", more))
	}
	return off
}

// draw shows the rows from off on and returns the offset that it took.
func (p *page) draw(b cell.Area, off int) int {
	off = min(max(off, 0), max(len(p.rows)-b.H, 0))
	for y := 0; y < b.H && off+y < len(p.rows); y++ {
		if row := p.rows[off+y]; row != nil {
			row(b.Row(y))
		}
	}
	return off
}

// fact is a label and a value that stay together.
type fact struct {
	label, value string
	st           cell.Style
	extra        func(r cell.Area) // drawn behind the value
	extraW       int
}

// gutter is the width of the labels at the left of a page.
const gutter = 10

// facts adds a labelled line of facts, flowing onto more lines where needed.
func (p *page) facts(l *look, w int, label string, list []fact) {
	first := true
	for len(list) > 0 {
		n, used := 0, 0
		for n < len(list) {
			f := list[n]
			need := cell.Width(f.label) + cell.Width(f.value) + f.extraW + 3
			if f.label != "" {
				need++
			}
			if f.extraW > 0 {
				need++
			}
			if n > 0 && used+need-3 > w-gutter {
				break
			}
			used += need
			n++
		}
		line, name := list[:n], ""
		if first {
			name = label
		}
		p.add(func(r cell.Area) {
			r.PutIn(0, 0, gutter-1, l.th.Heading, name)
			pen := r.Pen(gutter, 0)
			for _, f := range line {
				if f.label != "" {
					pen.Put(l.th.Dim, f.label).Skip(1)
				}
				pen.Put(f.st, f.value)
				if f.extraW > 0 {
					f.extra(r.Sub(pen.X()+1, 0, f.extraW, 1))
					pen.Skip(1 + f.extraW)
				}
				pen.Skip(3)
			}
		})
		list, first = list[n:], false
	}
}
