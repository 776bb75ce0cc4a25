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

	"rentop/sync/tree"
)

// This file keeps a folder on the instance as one here is, change by change. It
// remembers what it has put there, so that a save costs no question first: only
// what changed is looked at here, and sent.

// Mirror pushes a folder and then its changes. Its methods but Ignored are for
// one goroutine.
type Mirror struct {
	spec  Spec
	t     Transport
	root  string // on the instance, absolute
	known map[string]Entry
	below map[string]map[string]bool // paths of known by their folder
	rules atomic.Pointer[tree.Rules]
	again []string // changed while they were read
	later []string // not deleted, since something else failed
}

// NewMirror makes one for a push of a folder. s.Verify has no meaning here.
func NewMirror(s Spec) (*Mirror, error) {
	local, err := filepath.Abs(s.Local)
	if err != nil {
		return nil, err
	}
	if err := mirrorable(local); err != nil {
		return nil, err
	}
	s.Local, s.Direction, s.Verify, s.Manifest = local, Push, false, nil
	return &Mirror{spec: s}, nil
}

func mirrorable(local string) error {
	if fi, err := os.Stat(local); err != nil || !fi.IsDir() {
		return fmt.Errorf("%w: %s is not a folder: only a folder can be kept as it is here", ErrUsage, local)
	}
	return nil
}

// Ignored says whether rules leave p out. It may be called at any time.
func (m *Mirror) Ignored(p string, dir bool) bool { return m.rules.Load().Excluded(p, dir) }

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

// All compares both sides over t and sends what differs; later steps use t too.
// confirm may stop it. After the first time it removes only what this mirror had
// put there.
func (m *Mirror) All(ctx context.Context, t Transport, confirm func(*Plan) error, report func(Progress)) (Change, error) {
	m.t = t
	if err := mirrorable(m.spec.Local); err != nil {
		return Change{}, err
	}
	var here []Entry
	j := &job{t: t, s: m.spec, saw: func(e Entry) { here = append(here, e) }}
	plan, err := j.makePlan(ctx, report)
	if err != nil {
		return Change{}, err
	}
	m.rules.Store(j.rules)
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
	for _, e := range here {
		m.put(e)
	}
	for _, p := range m.unsure(c.Result, plan) {
		m.drop(p) // what is there was not looked at, or it cannot be sent
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
	o := Options{Delete: m.spec.Delete, Force: true, IgnoreModes: runtime.GOOS == "windows"}
	var blind blind
	if ch.All {
		rules := &tree.Rules{}
		if err := m.walk(ctx, "", rules, &blind, func(e Entry) { src = append(src, e) }); err != nil {
			return Change{}, err
		}
		m.rules.Store(rules)
		for _, e := range m.known {
			dst = append(dst, e)
		}
	} else {
		if _, err := os.Stat(m.spec.Local); err != nil {
			return Change{}, err // unmounted: nothing in it was removed
		}
		look := looks{m: m, src: map[string]Entry{}, dst: map[string]Entry{}, blind: &blind}
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
		src, dst = values(look.src), values(look.dst)
	}
	// what could not be read here is not deleted there
	o.Protected = func(p string, dir bool) bool { return m.Ignored(p, dir) || blind.hides(p) }
	plan := Compare(src, dst, o)
	plan.Actions = append(plan.Actions, blind.skips...)
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
	blind    *blind
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
	e, err := lookAt(l.m.spec.Local, p)
	switch {
	case err == nil:
		l.src[p] = e
		return true, e.Mode.IsDir()
	case errors.Is(err, fs.ErrNotExist) || notFolder(err):
		return false, false
	}
	l.blind.add(p, 0, err)
	return true, false // not known to be gone
}

// notFolder says that a part of the path is a file by now.
func notFolder(err error) bool { return strings.Contains(reason(err), "not a directory") }

// above says where to look instead of p: at p itself, or at the topmost folder over
// it that is new here, whose rules nobody has read yet; "" where p is left out, or
// has been looked at with such a folder.
func (l *looks) above(p string, dir bool) string {
	if l.m.Ignored(p, dir) || tree.OursIn(p) {
		return ""
	}
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		d := p[:i]
		if e, known := l.m.known[d]; known && e.Mode.IsDir() {
			continue
		}
		if _, seen := l.src[d]; seen {
			return ""
		}
		return d
	}
	return p
}

// path looks at one path.
func (l *looks) path(ctx context.Context, p string) error {
	switch at := l.above(p, false); at {
	case "":
		return nil
	case p:
	default:
		return l.tree(ctx, at)
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
	if p = l.above(p, true); p == "" {
		return nil
	}
	l.theirs(p)
	if _, dir := l.ours(p); !dir {
		return nil
	}
	return l.m.walk(ctx, p, l.m.rules.Load(), l.blind, func(e Entry) { l.src[e.Path] = e })
}

// walk reads what is below the folder p here, "" for all.
func (m *Mirror) walk(ctx context.Context, p string, rules *tree.Rules, b *blind, emit func(Entry)) error {
	_, err := m.spec.walkHere(ctx, m.spec.Local, p, rules, b, func(e Entry) error {
		e.Link = "" // the first of the names may not be looked at now
		emit(e)
		return nil
	})
	return err
}

func values(m map[string]Entry) []Entry {
	out := make([]Entry, 0, len(m))
	for _, e := range m {
		out = append(out, e)
	}
	return out
}
