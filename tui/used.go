package tui

import (
	"strconv"
	"strings"

	"rentop/session"
)

// used is a receipt on one line: what is not known is left out, what nobody watched
// is said.
func (l *look) used(r session.Receipt) string {
	var parts []string
	add := func(id string, args ...any) { parts = append(parts, l.T(id, args...)) }
	if r.GPUHours != nil {
		add("used.hours", short(*r.GPUHours))
	}
	if r.Mean != nil {
		add("used.util", percent(*r.Mean), percent(*r.Peak))
	}
	most := -1.0
	for _, m := range r.Mem {
		if m != nil {
			most = max(most, *m)
		}
	}
	if most >= 0 {
		add("used.mem", size(most))
	}
	if kwh := r.KWh(); kwh != nil {
		add("used.energy", short(*kwh))
	}
	switch {
	case r.Cost != nil:
		add("used.cost", money(r.Cost))
	case r.AtLeast != nil && r.AtLeast.Sign() > 0:
		add("used.cost", ">"+money(r.AtLeast))
	default:
		add("used.cost", "?")
	}
	switch {
	case r.Watched == 0:
		add("used.none")
	case r.Partial:
		add("used.partly", percent(100*r.Watched))
	}
	return strings.Join(parts, "  "+l.gl.Dot+"  ")
}

// short is a number with two figures behind the point where it is small, else fewer.
func short(v float64) string {
	places := 2
	if v >= 10 {
		places = 1
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}
