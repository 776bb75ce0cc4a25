package usage

import (
	"slices"
	"time"
)

// Receipt is what a job, or an instance over a time, has used. Nil is not known.
type Receipt struct {
	From, To time.Time
	Watched  float64 // the watched part of it, 0 to 1
	Partial  bool    // not all of it was watched: Mean, Peak, Mem and Energy are of the watched part

	GPUs     int      // 0: not known
	Names    []string // of the GPUs, where told
	GPUHours *float64 // GPUs times the whole time
	Busy     *float64 // GPU-hours at work: utilisation times time, of the watched part
	Mean     *float64 // utilisation, percent
	Peak     *float64
	Mem      []*float64 // most bytes in use by GPU
	MemTotal []float64  // 0: not known
	Energy   *float64   // joules, of the watched part
	Idle     *float64   // seconds with every GPU idle, of the watched part
}

// whole is how much of a time must have been watched for a receipt that is not
// partial: a job is seen a moment after it began, and ends between two looks.
const (
	whole      = 0.95
	wholeSlack = 30 * time.Second
)

// Merge makes a receipt for the time from … to of segments that may overlap: where
// two tell the same time, the one that watched longer counts.
func Merge(segments []Segment, from, to time.Time) Receipt {
	r := Receipt{From: from, To: to}
	var sum Segment
	busyFor, powerFor := 0.0, 0.0
	for _, s := range chosen(segments) {
		sum.Watched += s.Watched
		sum.Known += s.Known
		sum.Idle += s.Idle
		for len(sum.GPUs) < len(s.GPUs) {
			sum.GPUs = append(sum.GPUs, GPU{})
		}
		for i, g := range s.GPUs {
			sum.GPUs[i].merge(g)
			busyFor += g.BusyFor
			powerFor += g.PowerFor
		}
	}
	span := to.Sub(from).Seconds()
	if span > 0 {
		r.Watched = min(1, sum.Watched/span)
	}
	r.Partial = r.Watched < whole && span-sum.Watched > wholeSlack.Seconds() || sum.Watched == 0
	if r.GPUs = len(sum.GPUs); r.GPUs == 0 {
		return r
	}
	hours := float64(r.GPUs) * max(span, 0) / 3600
	r.GPUHours = &hours
	busy, peak, joules := 0.0, 0.0, 0.0
	for _, g := range sum.GPUs {
		busy, peak, joules = busy+g.Busy, max(peak, g.Peak), joules+g.Joules
		var mem *float64
		if g.MemKnown {
			mem = &g.Mem
		}
		r.Mem, r.MemTotal, r.Names = append(r.Mem, mem), append(r.MemTotal, g.MemTotal), append(r.Names, g.Name)
	}
	if busyFor > 0 {
		mean, busyHours := 100*busy/busyFor, busy/3600
		r.Mean, r.Peak, r.Busy = &mean, &peak, &busyHours
	}
	if powerFor > 0 {
		r.Energy = &joules
	}
	if sum.Known > 0 {
		r.Idle = &sum.Idle
	}
	return r
}

func (g *GPU) merge(o GPU) {
	if o.Name != "" {
		g.Name = o.Name
	}
	g.Busy, g.BusyFor, g.Peak = g.Busy+o.Busy, g.BusyFor+o.BusyFor, max(g.Peak, o.Peak)
	g.Mem, g.MemKnown, g.MemTotal = max(g.Mem, o.Mem), g.MemKnown || o.MemKnown, max(g.MemTotal, o.MemTotal)
	g.Joules, g.PowerFor = g.Joules+o.Joules, g.PowerFor+o.PowerFor
}

// touch is how far two segments may reach into each other and still be neighbours.
const touch = time.Second

// chosen are segments of which no two tell the same time, longest watched first.
func chosen(segments []Segment) []Segment {
	list := slices.DeleteFunc(slices.Clone(segments), func(s Segment) bool { return !s.sane() })
	slices.SortStableFunc(list, func(a, b Segment) int {
		switch {
		case a.Watched > b.Watched:
			return -1
		case a.Watched < b.Watched:
			return 1
		}
		return a.From.Compare(b.From)
	})
	var out []Segment
	for _, s := range list {
		if !slices.ContainsFunc(out, func(o Segment) bool { return s.From.Add(touch).Before(o.To) && o.From.Add(touch).Before(s.To) }) {
			out = append(out, s)
		}
	}
	return out
}

const maxGPUs = 1024

// sane refuses what no meter wrote: a sum must not be made infinite by one line.
func (s Segment) sane() bool {
	span := s.To.Sub(s.From).Seconds()
	fine := func(v, most float64) bool { return v >= 0 && v <= most }
	if !(span > 0) || !fine(s.Watched, span+1) || !fine(s.Known, s.Watched+1) || !fine(s.Idle, s.Known+1) || len(s.GPUs) > maxGPUs {
		return false
	}
	for _, g := range s.GPUs {
		if !fine(g.BusyFor, s.Watched+1) || !fine(g.Busy, g.BusyFor+1) || !fine(g.Peak, 100) || !fine(g.Mem, 1<<50) || !fine(g.MemTotal, 1<<50) ||
			!fine(g.PowerFor, s.Watched+1) || !fine(g.Joules, 1e5*(g.PowerFor+1)) {
			return false
		}
	}
	return true
}

// Gaps are the stretches of [from, to) of at least shortest that no segment tells of:
// what a guard's ring may fill.
func Gaps(segments []Segment, from, to time.Time, shortest time.Duration) (gaps [][2]time.Time) {
	list := chosen(segments)
	slices.SortFunc(list, func(a, b Segment) int { return a.From.Compare(b.From) })
	at := from
	take := func(until time.Time) {
		if until.After(to) {
			until = to
		}
		if until.Sub(at) >= shortest {
			gaps = append(gaps, [2]time.Time{at, until})
		}
	}
	for _, s := range list {
		take(s.From)
		if s.To.After(at) {
			at = s.To
		}
	}
	take(to)
	return gaps
}
