package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"rentop/sync/tree"
)

// This file keeps a folder on the instance as one here is, change by change. It
// remembers what it has put there, so that a save costs no question first: only
// what changed is looked at here, and sent.

// Mirror pushes a folder and then its changes. Its methods but Ignored are for
// one goroutine.
type Mirror struct {
	spec   Spec
	t      Transport
	root   string // on the instance, absolute
	known  map[string]Entry
	below  map[string]map[string]bool // paths of known by their folder
	ignore atomic.Pointer[tree.Ignore]
	again  []string // changed while they were read
	later  []string // not deleted, since something else failed
}

// NewMirror makes one for a push of a folder. s.Verify has no meaning here.
func NewMirror(s Spec) (*Mirror, error) {
	local, err := filepath.Abs(s.Local)
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(local); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a folder: only a folder can be kept as it is here", ErrUsage, local)
	}
	s.Local, s.Direction, s.Verify, s.Manifest = local, Push, false, nil
	return &Mirror{spec: s}, nil
}

// Ignored says whether rules leave p out. It may be called at any time.
func (m *Mirror) Ignored(p string, dir bool) bool { return m.ignore.Load().Excluded(p, dir) }

// Change is what one step did.
type Change struct {
	*Result
	// Held are removals that were not carried out, since they are more than half of
	// what is there: a folder that is unmounted looks like that.
	Held []string
	// Everything says that all was looked at: rules may have changed, so that other
	// folders are to be watched.
	Everything bool
}

// scanAll reads the folder here.
func (m *Mirror) scanAll(ctx context.Context) (*Listing, error) {
	o := ScanOptions{GitIgnore: !m.spec.NoIgnore, OwnIgnore: !m.spec.NoIgnore}
	l, err := Scan(ctx, m.spec.Local, o)
	if err == nil {
		m.ignore.Store(l.Ignore)
	}
	return l, err
}

// All compares both sides over t and sends what differs; later steps use t too.
// confirm may stop it. After the first time it removes only what this mirror had
// put there.
func (m *Mirror) All(ctx context.Context, t Transport, confirm func(*Plan) error, report func(Progress)) (Change, error) {
	m.t = t
	l, err := m.scanAll(ctx)
	if err != nil {
		return Change{}, err
	}
	plan, err := MakePlan(ctx, t, m.spec, report)
	if err != nil {
		return Change{}, err
	}
	c := Change{Everything: true}
	if m.known != nil {
		plan.Deletes = slices.DeleteFunc(plan.Deletes, func(a Action) bool { _, ours := m.known[a.Entry.Path]; return !ours })
		if plan.Refused != nil {
			c.hold(plan)
		}
	} else if confirm != nil {
		if err := confirm(plan); err != nil {
			return c, err
		}
	}
	m.root = plan.remote
	if c.Result, err = Execute(ctx, t, plan, report); err != nil {
		return c, err
	}
	m.known, m.below = map[string]Entry{}, map[string]map[string]bool{}
	for _, e := range l.Entries {
		m.put(e)
	}
	for _, p := range m.unsure(c.Result, plan) {
		m.drop(p) // what is there was not looked at
	}
	return c, nil
}

// hold takes the removals out of a plan.
func (c *Change) hold(p *Plan) {
	for _, a := range p.Deletes {
		c.Held = append(c.Held, a.Entry.Path)
	}
	p.Deletes, p.Refused = nil, nil
}

// Some sends what has changed.
func (m *Mirror) Some(ctx context.Context, ch Changes, report func(Progress)) (Change, error) {
	ch.Paths = slices.Concat(ch.Paths, m.again, m.later)
	m.again, m.later = nil, nil
	for _, p := range slices.Concat(ch.Paths, ch.Trees) {
		if b := path.Base(p); b == tree.GitIgnoreFile || b == tree.OwnIgnoreFile {
			ch.All = true // what was left out may count now, or the other way round
		}
	}
	var src, dst []Entry
	o := Options{Delete: m.spec.Delete, Force: true, IgnoreModes: runtime.GOOS == "windows", Protected: m.Ignored}
	var skipped []Action
	if ch.All {
		l, err := m.scanAll(ctx)
		if err != nil {
			return Change{}, err
		}
		src, skipped = l.Entries, l.Skipped
		for _, e := range m.known {
			dst = append(dst, e)
		}
	} else {
		if _, err := os.Stat(m.spec.Local); err != nil {
			return Change{}, err // unmounted: nothing in it was removed
		}
		look := looks{m: m, src: map[string]Entry{}, dst: map[string]Entry{}}
		for _, p := range ch.Paths {
			if err := look.path(ctx, p); err != nil {
				return Change{}, err
			}
		}
		for _, p := range ch.Trees {
			if err := look.tree(ctx, p); err != nil {
				return Change{}, err
			}
		}
		src, dst, skipped = values(look.src), values(look.dst), look.skipped
	}
	blind := map[string]bool{}
	for _, a := range skipped {
		blind[a.Entry.Path] = true
	}
	if len(blind) > 0 { // what could not be read here is not deleted there
		o.Protected = func(p string, dir bool) bool { return m.Ignored(p, dir) || under(blind, p) }
	}
	plan := Compare(src, dst, o)
	plan.Actions = append(plan.Actions, skipped...)
	plan.spec, plan.local, plan.remote = m.spec, m.spec.Local, m.root
	c := Change{Everything: ch.All}
	if n := len(plan.Deletes); n > 0 && !m.spec.Force && 2*n > len(m.known) {
		c.hold(plan)
	}
	if plan.Empty() {
		name, _ := m.t.Name()
		c.Result = &Result{Transport: name, Unchanged: plan.Unchanged}
		return c, nil
	}
	var err error
	if c.Result, err = Execute(ctx, m.t, plan, report); err != nil {
		return c, err
	}
	gone := len(c.Failed) == 0
	failed := map[string]bool{}
	for _, p := range m.unsure(c.Result, plan) {
		failed[p] = true
	}
	for _, a := range plan.Actions {
		switch {
		case a.Op == Skip: // what is there stays
		case failed[a.Entry.Path]:
			m.doubt(a.Entry.Path)
		case a.Op == Delete:
			m.drop(a.Entry.Path)
		default:
			m.put(a.Entry)
		}
	}
	for _, a := range plan.Deletes {
		if gone {
			m.drop(a.Entry.Path)
		} else {
			m.later = append(m.later, a.Entry.Path)
		}
	}
	return c, nil
}

// Pending says whether files changed while they were read: Some with no changes
// sends them.
func (m *Mirror) Pending() bool { return len(m.again) > 0 }

// unsure are the paths that failed. Those that changed under our eyes are looked at
// soon, and are no failure: they are being written.
func (m *Mirror) unsure(r *Result, p *Plan) (failed []string) {
	if r.FailedAll > int64(len(r.Failed)) { // more than are named
		for _, a := range p.Actions {
			failed = append(failed, a.Entry.Path)
		}
	}
	r.Failed = slices.DeleteFunc(r.Failed, func(f Failure) bool {
		failed = append(failed, f.Path)
		if errors.Is(f.Err, ErrChanged) {
			m.again = append(m.again, f.Path)
			r.FailedAll--
			return true
		}
		return false
	})
	return failed
}

// doubt notes that a change of p failed: what was there of it is there still, and is
// taken to differ, so that p is sent when it is looked at next and removed when it is
// gone here.
func (m *Mirror) doubt(p string) {
	e, known := m.known[p]
	switch {
	case !known:
		return
	case e.Mode.IsDir():
		e.Mode ^= 0o001
	case e.Mode&fs.ModeSymlink != 0:
		e.Target = ""
	default:
		e.Size = -1
	}
	m.put(e)
}

func (m *Mirror) put(e Entry) {
	e.SHA256 = ""
	m.known[e.Path] = e
	dir := path.Dir(e.Path)
	if m.below[dir] == nil {
		m.below[dir] = map[string]bool{}
	}
	m.below[dir][e.Path] = true
}

func (m *Mirror) drop(p string) {
	delete(m.known, p)
	delete(m.below[path.Dir(p)], p)
}

// looks gathers what to compare.
type looks struct {
	m        *Mirror
	src, dst map[string]Entry
	skipped  []Action
}

// theirs adds what is known of p and of all below it.
func (l *looks) theirs(p string) {
	if e, ok := l.m.known[p]; ok {
		l.dst[p] = e
	}
	for kid := range l.m.below[p] {
		l.theirs(kid)
	}
}

// ours adds p as it is here; it says whether it is there and a folder.
func (l *looks) ours(p string) (there, dir bool) {
	full := filepath.Join(l.m.spec.Local, filepath.FromSlash(p))
	fi, err := os.Lstat(full)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !notFolder(err) {
			l.skipped = append(l.skipped, Action{Op: Skip, Entry: Entry{Path: p}, Why: reason(err)})
			return true, false // not known to be gone
		}
		return false, false
	}
	s := &scan{root: l.m.spec.Local}
	e, skip := s.entry(fs.FileInfoToDirEntry(fi), p)
	switch skip {
	case "":
		l.src[p] = e
	case "gone":
		return false, false
	default:
		l.skipped = append(l.skipped, Action{Op: Skip, Entry: e, Why: skip})
	}
	return true, fi.IsDir()
}

// notFolder says that a part of the path is a file by now.
func notFolder(err error) bool { return strings.Contains(reason(err), "not a directory") }

// above adds the folders over p that are not known to be there; false where p is
// left out.
func (l *looks) above(p string, dir bool) bool {
	if l.m.Ignored(p, dir) || tree.OursIn(p) {
		return false
	}
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		d := p[:i]
		if e, known := l.m.known[d]; known && e.Mode.IsDir() {
			continue
		}
		if e, known := l.m.known[d]; known {
			l.dst[d] = e
		}
		if there, dir := l.ours(d); !there || !dir {
			return there // what is above has changed too, and is looked at itself
		}
	}
	return true
}

// path looks at one path.
func (l *looks) path(ctx context.Context, p string) error {
	if !l.above(p, false) {
		return nil
	}
	_, dir := l.ours(p)
	if e, known := l.m.known[p]; dir && known && e.Mode.IsDir() {
		l.dst[p] = e // only itself: what is below speaks for itself
		return nil
	}
	if dir {
		delete(l.src, p)
		return l.tree(ctx, p)
	}
	l.theirs(p)
	return nil
}

// tree looks at a folder and all below it.
func (l *looks) tree(ctx context.Context, p string) error {
	if !l.above(p, true) {
		return nil
	}
	l.theirs(p)
	if _, dir := l.ours(p); !dir {
		return nil
	}
	found, err := scanBelow(ctx, l.m.spec, p, l.m.ignore.Load())
	if err != nil {
		return err
	}
	for _, e := range found.Entries {
		l.src[e.Path] = e
	}
	l.skipped = append(l.skipped, found.Skipped...)
	l.m.ignore.Store(found.Ignore)
	return nil
}

// scanBelow lists the folder p of the tree under the rules of those above it, with
// paths from the tree's root. Ignore has all rules.
func scanBelow(ctx context.Context, spec Spec, p string, rules *tree.Ignore) (*Listing, error) {
	s := &scan{root: spec.Local, o: ScanOptions{GitIgnore: !spec.NoIgnore, OwnIgnore: !spec.NoIgnore}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(scanners)
	s.group = g
	g.Go(func() error { return s.dir(ctx, p, rules) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.rules, func(a, b ruleFile) int { return strings.Compare(a.base, b.base) })
	for _, r := range s.rules {
		rules = rules.With(r.name, r.base, r.data)
	}
	s.out.Ignore = rules
	return &s.out, nil
}

func values(m map[string]Entry) []Entry {
	out := make([]Entry, 0, len(m))
	for _, e := range m {
		out = append(out, e)
	}
	return out
}
