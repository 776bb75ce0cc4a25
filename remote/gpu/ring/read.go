package ring

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rentop/remote/gpu/sample"
)

// Point is one sample of the history. TakenAt is worked out anew: see Read.
type Point struct {
	sample.Sample
	Over time.Duration // what it stands for: one second, or the mean of ten
	Sure bool          // TakenAt is right; not where the wall clock of that boot contradicts a later one
}

// Read reads the history in dir, oldest first; the fine ring where it reaches, the
// coarse one before. A ring may be read while it is written. No history is no error.
//
// The wall clock may have been set while records were written, so within a boot
// they are placed by the time since boot, from the last record's wall clock, or
// from c's where the boot is the present one. A boot that would then reach into a
// later one had a wrong clock: its points are kept and marked as not sure.
func Read(dir string, c Clock) ([]Point, error) {
	fine, err := readFile(filepath.Join(dir, "fine.ring"), fineEvery)
	if err != nil {
		return nil, err
	}
	coarse, err := readFile(filepath.Join(dir, "coarse.ring"), coarseEvery)
	if err != nil {
		return nil, err
	}
	return joined(place(fine, coarse, c)), nil
}

// placed is a record with where it belongs.
type placed struct {
	record
	over time.Duration
	at   time.Time
	sure bool
	boot int // the boots' order
}

func readFile(path string, over time.Duration) ([]placed, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	defer f.Close()
	all, err := readAll(f, path)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.number, b.number) })
	out := make([]placed, 0, len(all))
	for _, x := range all {
		out = append(out, placed{record: x, over: over})
	}
	return out, nil
}

// place orders the boots and puts every record at its time.
func place(fine, coarse []placed, c Clock) (all []placed) {
	order := map[[16]byte]int{}
	for _, ring := range [][]placed{coarse, fine} { // the coarse one remembers more boots
		for _, x := range ring {
			if _, ok := order[x.record.boot]; !ok {
				order[x.record.boot] = len(order)
			}
		}
	}
	all = append(slices.Clone(coarse), fine...)
	type span struct {
		last        placed
		began, ends time.Time
	}
	spans := make([]span, len(order))
	for i := range all {
		x := &all[i]
		x.boot = order[x.record.boot]
		if s := &spans[x.boot]; s.last.body == nil || x.mono > s.last.mono {
			s.last = *x
		}
	}
	base := make([]time.Time, len(spans)) // the wall clock at each boot
	for i, s := range spans {
		base[i] = s.last.wall.Add(-s.last.mono)
		if s.last.record.boot == c.Boot {
			base[i] = c.Now().Add(-c.Mono())
		}
		spans[i].ends = base[i].Add(s.last.mono)
	}
	for i := range all {
		x := &all[i]
		x.at, x.sure = base[x.boot].Add(x.mono), true
		if s := &spans[x.boot]; s.began.IsZero() || x.at.Before(s.began) {
			s.began = x.at
		}
	}
	wrong := make([]bool, len(spans))
	horizon := c.Now().Add(time.Minute) // nothing is of the future
	for i := len(spans) - 1; i >= 0; i-- {
		if wrong[i] = spans[i].ends.After(horizon); !wrong[i] {
			horizon = spans[i].began
		}
	}
	for i := range all {
		all[i].sure = !wrong[all[i].boot]
	}
	return all
}

// joined takes the fine records where there are some, and decodes.
func joined(all []placed) []Point {
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.boot, b.boot), cmp.Compare(a.mono, b.mono), cmp.Compare(a.over, b.over))
	})
	firstFine := map[int]time.Duration{}
	for _, x := range all {
		if _, ok := firstFine[x.boot]; !ok && x.over == fineEvery {
			firstFine[x.boot] = x.mono
		}
	}
	var out []Point
	for _, x := range all {
		if from, ok := firstFine[x.boot]; ok && x.over == coarseEvery && x.mono >= from {
			continue
		}
		var d sample.Decoder
		s, err := d.Decode(x.body)
		if err != nil {
			continue // of a newer helper
		}
		s.TakenAt = x.at
		out = append(out, Point{Sample: s, Over: x.over, Sure: x.sure})
	}
	return out
}
