package sync

import (
	"path"
	"slices"
	stdsync "sync"
	"time"

	"rentop/sync/tree"
)

// This file finds files at the destination that may hold much of what is to be
// sent: it was moved, renamed or copied there.

const (
	basisLeast = 1 << 20 // bytes; below, looking costs more than sending
	basisMost  = 3       // for one file
	maxBases   = 1 << 17 // files that are remembered
	maxAlike   = 64      // of one name or size that are looked at
)

// bases are the large files at the destination. nil has none. Walk and
// comparison use it at once.
type bases struct {
	mu     stdsync.Mutex // protects what follows
	n      int
	byName map[string][]basis
	bySize map[int64][]basis
	want   bool // a file waits for the destination to be seen whole
}

type basis struct {
	path string
	size int64
	at   time.Time
}

// see remembers a file at the destination.
func (b *bases) see(e Entry) {
	if b == nil || e.Size < basisLeast || !e.Mode.IsRegular() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n++; b.n > maxBases {
		return
	}
	if b.byName == nil {
		b.byName, b.bySize = map[string][]basis{}, map[int64][]basis{}
	}
	x, name := basis{e.Path, e.Size, e.ModTime}, path.Base(e.Path)
	b.byName[name] = append(b.byName[name], x)
	b.bySize[e.Size] = append(b.bySize[e.Size], x)
}

// waits says whether a is better sent once the destination has been seen whole.
func (b *bases) waits(a Action) bool {
	if b == nil || a.Op != Send || a.Entry.Size < basisLeast || a.Why != "new" || a.Entry.Link != "" {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.want = true
	return true
}

// wanted says whether anything waits.
func (b *bases) wanted() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.want
}

// offer sets a's Basis: files of its size and time first, then those of its name,
// the nearest in size first.
func (b *bases) offer(a *Action) {
	if b == nil || a.Op != Send || a.Entry.Size < basisLeast {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := a.Entry
	take := func(list []basis, fits func(basis) bool) {
		for i, x := range list {
			if i == maxAlike || len(a.Basis) == basisMost {
				return
			}
			if x.path != e.Path && fits(x) && !slices.Contains(a.Basis, x.path) {
				a.Basis = append(a.Basis, x.path)
			}
		}
	}
	take(b.bySize[e.Size], func(x basis) bool { return tree.SameTime(x.at, e.ModTime) })
	if a.Why == "new" {
		named := slices.Clone(b.byName[path.Base(e.Path)])
		slices.SortStableFunc(named, func(x, y basis) int { return int(min(max(off(x.size, e.Size)-off(y.size, e.Size), -1), 1)) })
		take(named, func(basis) bool { return true })
	}
}

func off(a, b int64) int64 { return max(a-b, b-a) }
