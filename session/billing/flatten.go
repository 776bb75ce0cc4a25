package billing

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// flatten orders intervals and cuts them so that each moment is in one of them
// at most: the one that began last wins, whatever the order they came in.
func flatten(intervals []Interval) []Interval {
	list := make([]Interval, 0, len(intervals))
	overlap, sorted := false, true
	for _, i := range intervals {
		i.From, i.To = i.From.Round(0), i.To.Round(0)
		if !i.To.IsZero() && !i.From.Before(i.To) {
			continue
		}
		if n := len(list); n > 0 && order(list[n-1], i) > 0 {
			sorted = false
		}
		list = append(list, i)
	}
	if !sorted {
		slices.SortStableFunc(list, order)
	}
	for n := 1; n < len(list); n++ {
		if last := list[n-1].To; last.IsZero() || last.After(list[n].From) {
			overlap = true
		}
	}
	if !overlap {
		return list
	}
	return cutOverlaps(list)
}

// order is by beginning; the rest only makes equal beginnings come out the same
// whatever their order was.
func order(a, b Interval) int {
	if c := a.From.Compare(b.From); c != 0 {
		return c
	}
	if c := cmp.Compare(endKey(a), endKey(b)); c != 0 {
		return -c // the shorter wins where it is, the longer goes on after it
	}
	if c := cmp.Compare(a.State, b.State); c != 0 {
		return c
	}
	if a.NewStart != b.NewStart {
		if b.NewStart {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Plan.key(), b.Plan.key())
}

func endKey(i Interval) int64 {
	if i.To.IsZero() {
		return 1<<63 - 1
	}
	return i.To.Unix()
}

// cutOverlaps walks the beginnings and ends in order, with the intervals that
// are open at each as a stack: the last of the order is the one that counts.
func cutOverlaps(list []Interval) []Interval {
	var out, open []Interval
	emit := func(i Interval, from, to time.Time) {
		if to.IsZero() || from.Before(to) {
			i.NewStart = i.NewStart && i.From.Equal(from)
			i.From, i.To = from, to
			out = append(out, i)
		}
	}
	var pos time.Time
	// closeUntil emits what is open up to limit (zero: to the very end).
	closeUntil := func(limit time.Time) {
		for len(open) > 0 && (limit.IsZero() || pos.Before(limit)) {
			top := open[len(open)-1]
			if !top.To.IsZero() && !top.To.After(pos) {
				open = open[:len(open)-1]
				continue
			}
			end := top.To
			if end.IsZero() || !limit.IsZero() && end.After(limit) {
				end = limit
			}
			emit(top, pos, end)
			if end.IsZero() {
				return
			}
			pos = end
		}
	}
	for _, i := range list {
		closeUntil(i.From)
		pos = i.From
		open = append(open, i)
	}
	closeUntil(time.Time{})
	return out
}

// part is a piece of an interval, inside or outside of its prepaid period.
type part struct {
	Interval
	covered bool
}

// splitPrepaid cuts an interval (with an end) at its prepaid period's edges.
func splitPrepaid(i Interval) []part {
	p := i.Plan.Prepaid
	if p == nil {
		return []part{{i, false}}
	}
	var parts []part
	cut := func(from, to time.Time, covered bool) {
		if from.Before(i.From) {
			from = i.From
		}
		if to.After(i.To) {
			to = i.To
		}
		if from.Before(to) {
			piece := i
			piece.From, piece.To = from, to
			parts = append(parts, part{piece, covered})
		}
	}
	cut(i.From, p.From, false)
	cut(p.From, p.To, true)
	cut(later(p.From, p.To), i.To, false)
	return parts
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
