package tui

import (
	"rentop/themes"
	"rentop/tui/cell"
)

// col is one column of a table of T. It is text, or it draws itself.
type col[T any] struct {
	id             string // of its heading, "" where it has none
	min, want, max int    // cells
	prio           int    // 0 is always there; of the others the lowest come first
	right          bool
	text           func(T) (string, themes.Style)
	draw           func(cell.Area, T)
}

// table is columns laid out in a width.
type table[T any] struct {
	cols   []col[T]
	widths []int // 0 is left out
	gap    int
}

// fit lays columns out: those that must be there at their least width, those of
// the first rank where there is room, then each as wide as it wants; then more
// columns, and what is left goes to space between them and to the widest.
func fit[T any](cols []col[T], width int) table[T] {
	t := table[T]{cols: cols, widths: make([]int, len(cols)), gap: 1}
	n, used := 0, 0 // columns, and their cells without the gaps
	room := func() int { return width - used - max(n-1, 0)*t.gap }
	last := 0
	for _, c := range cols {
		last = max(last, c.prio)
	}
	each := func(from, to int, f func(i int, c col[T])) {
		for p := from; p <= to; p++ {
			for i, c := range cols {
				if c.prio == p {
					f(i, c)
				}
			}
		}
	}
	add := func(i int, c col[T]) {
		if t.widths[i] == 0 && (c.prio == 0 || room() >= c.min+t.gap) {
			t.widths[i] = c.min
			used += c.min
			n++
		}
	}
	grow := func(to func(col[T]) int) func(int, col[T]) {
		return func(i int, c col[T]) {
			if t.widths[i] > 0 {
				more := min(max(to(c)-t.widths[i], 0), max(room(), 0))
				t.widths[i] += more
				used += more
			}
		}
	}
	widen := func(gap int) {
		if old := t.gap; n > 1 {
			if t.gap = gap; room() < 0 {
				t.gap = old
			}
		}
	}
	want := grow(func(c col[T]) int { return c.want })
	each(0, 1, add)
	each(0, 1, want)
	widen(2)
	for p := 2; p <= last; p++ {
		each(p, p, add)
		each(p, p, want)
	}
	widen(3)
	each(0, last, grow(func(c col[T]) int { return c.max }))
	return t
}

// at calls f with each column that is shown and its cells.
func (t *table[T]) at(f func(i, x, w int)) {
	x := 0
	for i, w := range t.widths {
		if w > 0 {
			f(i, x, w)
			x += w + t.gap
		}
	}
}

// heading draws the titles; sorted is the id of the column that orders the rows.
func (t *table[T]) heading(a cell.Area, l *look, sorted string, reverse bool) {
	t.at(func(i, x, w int) {
		c := t.cols[i]
		if c.id == "" {
			return
		}
		s, st := l.T(c.id), l.th.Heading
		if c.id == sorted {
			st = l.th.Accent
			if reverse {
				s += l.gl.Up
			} else {
				s += l.gl.Down
			}
		}
		if c.right {
			a.Right(x, 0, w, st, s)
		} else {
			a.PutIn(x, 0, w, st, s)
		}
	})
}

// row draws one row.
func (t *table[T]) row(a cell.Area, r T) {
	t.at(func(i, x, w int) {
		c := t.cols[i]
		if c.draw != nil {
			c.draw(a.Sub(x, 0, w, 1), r)
			return
		}
		s, st := c.text(r)
		if c.right {
			a.Right(x, 0, w, st, s)
		} else {
			a.PutIn(x, 0, w, st, s)
		}
	})
}

// between is where the columns lie that are shown behind the one with id after
// and before the one with id before.
func (t *table[T]) between(after, before string) (x, w int) {
	from, to, in := 0, 0, false
	t.at(func(i, cx, cw int) {
		switch id := t.cols[i].id; {
		case id == before:
			in = false
		case id == after:
			in, from = true, cx+cw+t.gap
		case in:
			to = cx + cw
		}
	})
	return from, max(to-from, 0)
}
