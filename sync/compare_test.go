package sync

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/sync/tree"
)

// randomListing is a tree as a listing has it: folders are named.
func randomListing(rnd *rand.Rand) (out []Entry) {
	names := []string{"a", "a.b", "b", "B", "con", "x ", "\xff", "é"}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for _, n := range names {
			if dir != "" {
				n = dir + "/" + n
			}
			at := t0.Add([]time.Duration{0, time.Hour}[rnd.IntN(2)*rnd.IntN(2)])
			perm := []fs.FileMode{0o644, 0o755}[rnd.IntN(2)]
			switch rnd.IntN(6) {
			case 0, 1:
				out = append(out, Entry{Path: n, Size: int64(rnd.IntN(2)), Mode: perm, ModTime: at, SHA256: []string{"", "x", "y"}[rnd.IntN(3)]})
			case 2:
				out = append(out, Entry{Path: n, Mode: fs.ModeSymlink | 0o777, Target: []string{"a", "../../b", "/etc"}[rnd.IntN(3)]})
			case 3:
				out = append(out, Entry{Path: n, Mode: fs.ModeDir | perm})
				if depth < 3 {
					fill(n, depth+1)
				}
			}
		}
	}
	fill("", 0)
	rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func planText(p *Plan) string {
	var b strings.Builder
	for _, list := range [][]Action{p.Actions, p.Deletes} {
		for _, a := range list {
			fmt.Fprintf(&b, "%s %q %v %s\n", a.Op, a.Entry.Path, a.Entry.Mode, a.Why)
		}
		b.WriteString("--\n")
	}
	fmt.Fprintf(&b, "%d unchanged, %d bytes\n", p.Unchanged, p.Bytes)
	if p.Refused != nil {
		fmt.Fprintf(&b, "%v %d\n", p.Refused, p.Refused.Have)
	}
	return b.String()
}

// sameAsBefore plans both ways.
func sameAsBefore(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 5))
	src, dst := randomListing(rnd), randomListing(rnd)
	if rnd.IntN(3) == 0 { // much alike
		dst = slices.Clone(src)
		for i := range dst {
			if rnd.IntN(8) == 0 {
				dst[i].Size++
			}
		}
	}
	if rnd.IntN(8) == 0 {
		src = nil
	}
	flag := func() bool { return rnd.IntN(2) == 0 }
	o := Options{Delete: flag(), Force: flag(), Checksum: flag(), IgnoreModes: flag(), Windows: flag(), KeepIn: flag()}
	o.FoldCase = flag() && !o.Delete // deletes there are another matter: TestFoldedNamesStay
	if flag() {
		o.Protected = func(p string, _ bool) bool { return strings.Contains("/"+p+"/", "/b/") }
	}
	if rnd.IntN(4) == 0 {
		o.Incomplete = "x"
	}
	got, want := Compare(src, dst, o), oldCompare(src, dst, o)
	if o.IgnoreModes { // the mode to write is decided in the plan now
		for _, p := range []*Plan{got, want} {
			for i := range p.Actions {
				p.Actions[i].Entry.Mode = p.Actions[i].Entry.Mode.Type()
			}
		}
	}
	// which of two ignored names is shown was left to chance
	mask := func(p *Plan) string {
		for i, a := range p.Actions {
			if at := strings.Index(a.Why, " holds "); at > 0 {
				p.Actions[i].Why = a.Why[:at]
			}
		}
		return sortedReplace(p)
	}
	if g, w := mask(got), mask(want); g != w {
		t.Fatalf("seed %d, %+v\nsource %v\ndestination %v\ngot\n%s\nwant\n%s", seed, o, src, dst, g, w)
	}
}

// sortedReplace is planText with the removals before the rest by path: folders
// are cleared one after the other, and their order among each other is free.
func sortedReplace(p *Plan) string {
	n := 0
	for n < len(p.Actions) && p.Actions[n].Op == Delete {
		n++
	}
	slices.SortStableFunc(p.Actions[:n], func(a, b Action) int { return strings.Compare(b.Entry.Path, a.Entry.Path) })
	return planText(p)
}

func TestMergeAsBefore(t *testing.T) {
	for seed := range uint64(3000) {
		sameAsBefore(t, seed)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(sameAsBefore)
}

// TestFoldedNamesStay: a destination that folds names has the source's files under
// another spelling; --delete leaves them, and they are compared.
func TestFoldedNamesStay(t *testing.T) {
	src := []Entry{f("ReadMe", 1), f("caf\u00e9", 1), d("Sub"), f("Sub/x", 1), f("zz", 1)}
	dst := []Entry{f("README", 1), f("cafe\u0301", 1), d("SUB"), f("SUB/x", 1), f("old", 1), d("other"), f("other/y", 1), f("zz", 1)}
	byFold := map[string]Entry{}
	for _, e := range dst {
		byFold[tree.Fold(e.Path)] = e
	}
	o := Options{Delete: true, Force: true, FoldCase: true, Lookup: func(p string) (Entry, bool) {
		e, ok := byFold[tree.Fold(p)]
		return e, ok
	}}
	p := Compare(src, dst, o)
	var gone []string
	for _, a := range p.Deletes {
		gone = append(gone, a.Entry.Path)
	}
	if len(p.Actions) > 0 || p.Unchanged != 4 || !slices.Equal(gone, []string{"other/y", "other", "old"}) {
		t.Errorf("%v\ndeletes %q, %d unchanged", p.Actions, gone, p.Unchanged)
	}
	two := Compare([]Entry{f("caf\u00e9", 1), f("cafe\u0301", 1), f("\uac00", 1), f("\u1100\u1161", 1)}, nil, Options{FoldCase: true})
	if n := two.Counts(); n[Send] != 2 || n[Skip] != 2 {
		t.Error(two)
	}
}

// TestHardLinkToSkipped: what is not there is not linked to.
func TestHardLinkToSkipped(t *testing.T) {
	link := func(e Entry, to string) Entry { e.Link = to; return e }
	p := Compare([]Entry{f("aux", 1), link(f("b", 1), "aux"), f("c", 1), link(f("d", 1), "c")}, nil, Options{Windows: true})
	for _, a := range p.Actions {
		if want := map[string]string{"d": "c"}[a.Entry.Path]; a.Entry.Link != want {
			t.Errorf("%s links to %q", a.Entry.Path, a.Entry.Link)
		}
	}
}

func TestOutOfOrderIsRefused(t *testing.T) {
	ch := make(chan []Entry, 1)
	ch <- []Entry{f("b", 1), f("a", 1)}
	close(ch)
	c := newComparer(Options{}, func(Action) {})
	c.unchanged = func(Entry) {}
	if err := c.merge(&feed{ch: ch}, sorted(nil)); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Error(err)
	}
}

// TestMergeMemory: a million entries on each side pass through in a few megabytes.
func TestMergeMemory(t *testing.T) {
	needtest.Time(t, "compares a million entries")
	const files, perDir = 1_000_000, 1000
	walk := func(emit func(Entry) error) error {
		for i := range files / perDir {
			dir := fmt.Sprintf("some/where/d%05d", i)
			if i == 0 {
				emit(d("some"))
				emit(d("some/where"))
			}
			if err := emit(d(dir)); err != nil {
				return err
			}
			for j := range perDir {
				if err := emit(f(fmt.Sprintf("%s/a file %06d.bin", dir, j), int64(j))); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var base, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	peak, n := uint64(0), 0
	list := &pathList{}
	c := newComparer(Options{Delete: true}, func(a Action) { t.Error(a) })
	c.unchanged = func(e Entry) {
		list.add(e)
		if n++; n%50000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc-base.HeapAlloc)
		}
	}
	if err := c.merge(walkFeed(t, walk), walkFeed(t, walk)); err != nil || n != files {
		t.Fatal(err, n)
	}
	if peak > 40<<20 {
		t.Errorf("%d MiB", peak>>20)
	}
	t.Logf("peak %d MiB, of it %d MiB for the list of paths", peak>>20, len(list.text)>>20)
	i := 0
	for e := range list.all {
		if want := fmt.Sprintf("some/where/d%05d/a file %06d.bin", i/perDir, i%perDir); e.Path != want || e.Size != int64(i%perDir) {
			t.Fatalf("%d: %+v", i, e)
		}
		i++
	}
	if i != files {
		t.Error(i)
	}
}

func walkFeed(t *testing.T, walk func(emit func(Entry) error) error) *feed {
	return newFeed(t.Context(), func(_ context.Context, emit func(Entry) error) error { return walk(emit) })
}
