package sync

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"time"

	"rentop/sync/far"
	"rentop/sync/tree"
)

// This file walks both ends and compares them, into a plan.

// job is one transfer until its plan is made, or until it streams.
type job struct {
	sides
	t  Transport
	s  Spec
	tr *tracker

	// What the walks find beside entries. It is read once they are over.
	ignored    int64
	incomplete string      // why the source's listing may lack something
	litter     []Entry     // our temporary files at the destination
	trash      *Entry      // the destination's
	bases      *bases      // nil: the transport has no use for them
	foundTrash func(Entry) // hears of the destination's trash as it is met; may be nil

	rules *tree.Rules // of the source, where that is here
	blind blind
	saw   func(Entry) // hears of the source of a push as it is walked; may be nil
}

// patience is how long large files wait, once all of the source is known, for the
// rest of a destination to be seen: a home folder may hold a million other files.
const patience = 3 * time.Second

// maxLitter bounds what is remembered of a destination full of leftovers.
const maxLitter = 10_000

// blind is what could not be read here.
type blind struct {
	mu    stdsync.Mutex // protects what follows
	paths map[string]bool
	skips []Action
}

func (b *blind) add(p string, mode fs.FileMode, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paths == nil {
		b.paths = map[string]bool{}
	}
	b.paths[p] = true
	b.skips = append(b.skips, Action{Op: Skip, Entry: Entry{Path: p, Mode: mode}, Why: reason(err)})
}

// hides says whether p, or a folder above it, could not be read.
func (b *blind) hides(p string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return under(b.paths, p)
}

// under says whether p or a folder above it is in set.
func under(set map[string]bool, p string) bool {
	for ; len(set) > 0 && p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
		if set[p] {
			return true
		}
		if p == "/" {
			break
		}
	}
	return false
}

// makePlan is MakePlan.
func (j *job) makePlan(ctx context.Context, report func(Progress)) (*Plan, error) {
	start := j.s.now()
	j.tr = newTracker(j.t, j.s.now, report)
	defer j.tr.stop()
	p, err := j.plan(ctx)
	if err != nil {
		return nil, err
	}
	p.took = j.s.now().Sub(start)
	return p, nil
}

// plan compares both sides.
func (j *job) plan(ctx context.Context) (*Plan, error) {
	j.tr.stage("scan")
	if err := j.find(ctx); err != nil {
		return nil, err
	}
	p := &Plan{spec: j.s}
	if j.s.Verify {
		p.files = &pathList{}
	}
	g := &gathered{}
	c, err := j.compare(ctx, func(a Action) {
		g.add(a)
		if p.files != nil && (a.Op == Send || a.Op == Attr) && a.Entry.Mode.IsRegular() {
			p.files.add(a.Entry)
		}
	}, func(e Entry) {
		p.Unchanged++
		if p.files != nil && e.Mode.IsRegular() {
			p.files.add(e)
		}
	}, nil)
	if err != nil {
		return nil, err
	}
	j.tr.stage("plan")
	g.fill(p, c, j.incomplete)
	for i := range p.Actions {
		j.bases.offer(&p.Actions[i])
	}
	p.Ignored = j.ignored
	p.Actions = append(p.Actions, j.leftOver()...)
	p.local, p.remote, p.newRoot, p.trash = j.local, j.remote, j.fresh, j.trash
	p.litter = j.oldLitter(p.Actions)
	return p, nil
}

// leftOver are the Skips of what could not be read.
func (j *job) leftOver() []Action {
	out := slices.Clone(j.blind.skips)
	slices.SortFunc(out, func(a, b Action) int { return strings.Compare(a.Entry.Path, b.Entry.Path) })
	if j.incomplete != "" {
		out = append(out, Action{Op: Skip, Entry: Entry{Path: "."}, Why: j.incomplete})
	}
	return out
}

// compare walks and merges. ended hears when the destination has been seen whole
// and the source goes on; may be nil.
func (j *job) compare(ctx context.Context, out func(Action), unchanged func(Entry), ended func()) (*comparer, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := j.options()
	if _, streams := optional[Streamer](j.t); streams && !j.fresh {
		j.bases = &bases{}
	}
	src, dst, err := j.feeds(ctx, &o)
	defer func() {
		cancel()
		src.drain()
		dst.drain()
	}()
	if err != nil {
		return nil, err
	}
	c := newComparer(o, out)
	d := &doubts{j: j, c: c}
	c.unchanged = func(e Entry) { d.same++; unchanged(e) }
	c.ask = func(e, there Entry) error { return d.add(ctx, e, there) }
	c.ended = ended
	var waits time.Time // since when only the destination goes on
	c.all = func() bool {
		if waits.IsZero() {
			waits = j.s.now()
		}
		return j.bases.wanted() && j.s.now().Sub(waits) < patience
	}
	if err := c.merge(src, dst); err != nil {
		return nil, err
	}
	return c, d.flush(ctx)
}

// feeds starts both walks.
func (j *job) feeds(ctx context.Context, o *Options) (src, dst *feed, err error) {
	if j.s.Direction == Pull {
		return j.pullFeeds(ctx, o)
	}
	src, dst = sorted(nil), sorted(nil)
	j.rules = &tree.Rules{}
	o.Protected = func(p string, isDir bool) bool { return j.rules.Excluded(p, isDir) || j.blind.hides(p) }
	_, streams := optional[Streamer](j.t)
	switch {
	case j.one != nil:
		src = sorted([]Entry{*j.one})
		if !j.fresh {
			dst = newFeed(ctx, j.onlyThere([]string{j.one.Path}))
		}
	case j.fresh || o.Delete || streams:
		src = newFeed(ctx, j.sourceHere)
		if !j.fresh {
			dst = newFeed(ctx, j.allThere)
		}
	default:
		// Only what the source has is looked up, so that pushing a few files into a home
		// folder does not read it all.
		var list []Entry
		if err := j.sourceHere(ctx, func(e Entry) error { list = append(list, e); return nil }); err != nil {
			return src, dst, err
		}
		paths := make([]string, len(list), len(list)+1)
		for i, e := range list {
			paths[i] = e.Path
		}
		src, dst = sorted(list), newFeed(ctx, j.onlyThere(append(paths, tree.TrashDir)))
	}
	return src, dst, nil
}

// sourceHere walks the source of a push.
func (j *job) sourceHere(ctx context.Context, emit func(Entry) error) (err error) {
	j.ignored, err = j.s.walkHere(ctx, j.local, "", j.rules, &j.blind, func(e Entry) error {
		if j.saw != nil {
			j.saw(e)
		}
		return emit(e)
	})
	return err
}

// allThere walks the destination of a push. Where a part cannot be read less is
// seen, so less is deleted; sending reports for itself.
func (j *job) allThere(ctx context.Context, emit func(Entry) error) error {
	err := j.walkTouched(ctx, func(e Entry) error { return j.atDestination(e, emit) })
	var part *ListError
	if errors.As(err, &part) {
		return nil
	}
	return err
}

// walkThere walks the instance's end, in order.
func (j *job) walkThere(ctx context.Context, emit func(Entry) error) error {
	if st, streams := optional[Streamer](j.t); streams {
		return st.Walk(ctx, j.remote, emit)
	}
	return inOrder(func(emit func(Entry) error) error { return j.t.List(ctx, j.remote, emit) }, emit)
}

// inOrder gathers a listing and hands it over in tree order.
func inOrder(list func(emit func(Entry) error) error, emit func(Entry) error) error {
	var all []Entry
	err := list(func(e Entry) error { all = append(all, e); return nil })
	var part *ListError
	if err != nil && !errors.As(err, &part) {
		return err
	}
	for f := sorted(all); f.peek() != nil; {
		if err := emit(f.take()); err != nil {
			return err
		}
	}
	return err
}

// onlyThere looks up single paths at the destination of a push.
func (j *job) onlyThere(paths []string) func(context.Context, func(Entry) error) error {
	return func(ctx context.Context, emit func(Entry) error) error {
		return inOrder(func(emit func(Entry) error) error { return j.t.Stat(ctx, j.remote, paths, emit) },
			func(e Entry) error { return j.atDestination(e, emit) })
	}
}

// atDestination sorts out what the destination holds of ours.
func (j *job) atDestination(e Entry, emit func(Entry) error) error {
	switch {
	case e.Path == tree.TrashDir && e.Mode.IsDir():
		trash := e // so that e itself stays off the heap: there may be millions
		j.trash = &trash
		if j.foundTrash != nil {
			j.foundTrash(e)
		}
		return nil
	case tree.OursIn(e.Path):
		if len(j.litter) < maxLitter && !strings.Contains(e.Path, tree.TrashDir) {
			j.litter = append(j.litter, e)
		}
		return nil
	}
	j.tr.scanned(1)
	j.bases.see(e)
	return emit(e)
}

// yesterday is how old a leftover must be where another transfer may still want it.
func (j *job) yesterday() time.Time { return j.s.now().Add(-24 * time.Hour) }

// oldLitter are temporary files of earlier runs: small ones from before, and parts
// of yesterday that acts do not go on with. Another transfer into the same folder
// may go on with a younger part. Where a file says of which run it is, whoever
// removes it leaves it to a run that lives.
func (j *job) oldLitter(acts []Action) []Entry {
	before := j.yesterday()
	_, helped := optional[Streamer](j.t)
	if j.s.Direction == Pull {
		before = j.s.now() // a small file on its way is this process's own
	}
	parts := map[string]bool{}
	for _, a := range acts {
		if a.Op == Send && a.Entry.Size >= largeFile {
			name := partName(a.Entry)
			parts[name], parts[name+journalSuffix] = true, true
		}
	}
	var out []Entry
	for _, e := range j.litter {
		if (helped || j.s.Direction == Pull) && far.Temporary(e.Path) {
			out = append(out, e)
			continue
		}
		limit := before
		if strings.Contains(e.Path[strings.LastIndexByte(e.Path, '/')+1:], tree.PartInfix) {
			limit = j.yesterday()
		}
		if !parts[e.Path] && e.ModTime.Before(limit) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(b.Path, a.Path) })
	return out
}
