package ledger

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"sort"
	"time"
)

// live is how near At and Recorded lie where an event was written as it was seen.
const live = 2 * time.Minute

// fact is an event with its times made consistent.
type fact struct {
	*Event
	at       time.Time // when it became true, by the agreed clock
	recorded time.Time // when it was written, by the agreed clock
}

// settle puts events into the order of writing, drops duplicates and makes
// their times consistent where this computer's clock stepped.
//
// Time does not run backwards from one writing to the next, so Recorded must
// not either. Where it does, a clock was wrong for a while: the longest run of
// events (and now) that agree is believed, and each other event is taken to
// have been written just before the next believed one. Its At is moved along where
// it was read from the same clock (it lies near Recorded), and only bounded
// where a provider or a person told it. One reading of a wrong clock, ahead or
// behind, can therefore neither invent hours nor hide what came later.
//
// now comes back as the moment up to which the record is sure.
func settle(events []Event, now time.Time) ([]fact, time.Time) {
	facts := make([]fact, 0, len(events))
	if !slices.IsSortedFunc(events, byWriting) {
		events = slices.Clone(events)
		slices.SortStableFunc(events, byWriting)
	}
	for i := range events {
		e := &events[i]
		facts = append(facts, fact{Event: e, at: e.At.Round(0), recorded: e.Recorded.Round(0)})
	}
	facts = dropTold(facts)
	return facts, agree(facts, now.Round(0))
}

func byWriting(a, b Event) int {
	if c := cmp.Compare(a.Seq, b.Seq); c != 0 {
		return c
	}
	return cmp.Or(a.Recorded.Compare(b.Recorded), a.At.Compare(b.At),
		cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.Data, b.Data))
}

// dropTold keeps the first of those that say the same of the same moment. Where
// events were written in the order of At, as nearly all are, that is one pass.
func dropTold(facts []fact) []fact {
	if slices.IsSortedFunc(facts, byTime) {
		kept := facts[:0]
		for _, f := range facts {
			n := len(kept)
			for n > 0 && kept[n-1].at.Equal(f.at) && !same(kept[n-1], f) {
				n--
			}
			if n == 0 || !same(kept[n-1], f) {
				kept = append(kept, f)
			}
		}
		return kept
	}
	type content struct {
		at   int64
		hash uint64
	}
	seen := make(map[content]bool, len(facts))
	seed := maphash.MakeSeed()
	return slices.DeleteFunc(facts, func(f fact) bool {
		key := content{f.At.UnixNano(), maphash.Bytes(seed, f.Data) ^ maphash.String(seed, string(f.Kind))}
		told := seen[key]
		seen[key] = true
		return told
	})
}

func byTime(a, b fact) int { return a.at.Compare(b.at) }

func same(a, b fact) bool {
	return a.at.Equal(b.at) && a.Kind == b.Kind && bytes.Equal(a.Data, b.Data)
}

// agree moves the times of the facts that the others contradict.
func agree(facts []fact, now time.Time) time.Time {
	believed := longestOrdered(facts, now)
	limit := now
	if n := len(believed); n > 0 && believed[n-1] < len(facts) {
		// The majority says that now is wrong: nothing is known after the last record.
		limit = facts[believed[n-1]].recorded
	}
	now = limit
	next := len(believed) - 1
	for i := len(facts) - 1; i >= 0; i-- {
		for next >= 0 && believed[next] > i {
			next--
		}
		f := &facts[i]
		if f.Recorded.IsZero() {
			f.recorded = f.at
			if f.Kind != PlanSet {
				f.bound(limit)
			}
			continue
		}
		if next >= 0 && believed[next] == i {
			limit = f.recorded
		} else {
			f.recorded = limit
		}
		ago := f.Recorded.Sub(f.At)
		switch {
		case ago > -live && ago < live:
			f.at = f.recorded.Add(-ago)
			if f.Kind != PlanSet {
				f.bound(f.recorded)
			}
		case f.Kind != PlanSet: // a price may be told ahead
			f.bound(f.recorded)
		}
	}
	return now
}

func (f *fact) bound(limit time.Time) {
	if f.at.After(limit) {
		f.at = limit
	}
}

// longestOrdered gives the indexes of the longest run of facts, now at its end as
// the index len(facts), whose Recorded never falls. Of two equally long runs
// the one that ends earlier in time wins: what was written last.
func longestOrdered(facts []fact, now time.Time) []int {
	value := func(i int) time.Time {
		if i == len(facts) {
			return now
		}
		return facts[i].recorded
	}
	n := len(facts) + 1
	ordered, last := true, time.Time{}
	all := make([]int, 0, n)
	for i := range n {
		if i < len(facts) && facts[i].Recorded.IsZero() {
			continue
		}
		if v := value(i); v.Before(last) {
			ordered = false
		} else {
			last = v
		}
		all = append(all, i)
	}
	if ordered {
		return all
	}
	var tails []int // tails[k]: where a run of k+1 can end the lowest
	before := make([]int, n)
	for _, i := range all {
		v := value(i)
		k := sort.Search(len(tails), func(k int) bool { return value(tails[k]).After(v) })
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	run := make([]int, len(tails))
	for k, i := len(tails)-1, tails[len(tails)-1]; k >= 0; k, i = k-1, before[i] {
		run[k] = i
	}
	return run
}
