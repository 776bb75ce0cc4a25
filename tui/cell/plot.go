package cell

import (
	"math"

	"rentop/themes"
)

// Spark draws the last values of a series (0 to full) as columns, newest at the
// right, in w cells. NaN is a gap.
func (a Area) Spark(x, y, w int, st Style, g *themes.Glyphs, values []float64, full float64) {
	if len(values) > w {
		values = values[len(values)-w:]
	}
	x += w - len(values)
	for i, v := range values {
		if math.IsNaN(v) || full <= 0 {
			continue
		}
		level := int(math.Min(math.Max(v/full, 0), 1)*7 + 0.5)
		a.sign(x+i, y, st, g.Spark[level])
	}
}

// Bar fills w cells by part (0 to 1) with eighths; the rest is the track. NaN
// leaves it all empty.
func (a Area) Bar(x, y, w int, st, track Style, g *themes.Glyphs, part float64) {
	if math.IsNaN(part) {
		part = 0
	}
	n := int(math.Min(math.Max(part, 0), 1)*float64(w)*8 + 0.5)
	for i := range w {
		switch {
		case n >= (i+1)*8:
			a.sign(x+i, y, st, g.Full)
		case n > i*8 && g.Part[n-i*8] != "":
			a.sign(x+i, y, st, g.Part[n-i*8])
		default:
			a.sign(x+i, y, track, g.Track)
		}
	}
}
