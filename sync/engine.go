package sync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file turns what a person asked for into a plan; execute.go carries it out.

// Spec is what a person asked for. The contents of a folder go into the
// destination folder; a file goes to the file at the destination, or into it
// where that is a folder or ends in a slash.
type Spec struct {
	Direction Direction
	Local     string // path on this machine
	Remote    string // path on the instance; "~" and relative ones start at the login's home
	Delete    bool   // remove at the destination what the source does not have
	Force     bool   // delete also where that is refused
	Checksum  bool   // decide by SHA-256, not by size and time
	Verify    bool   // read all again on both sides afterwards
	DryRun    bool   // Run plans only
	// NoIgnore sends what ignore files leave out. A push honours .gitignore and
	// .rentopignore; a pull only .rentopignore, since results and checkpoints
	// lie where .gitignore points, and losing one is worse than fetching one too
	// many. GitIgnore honours both there.
	NoIgnore  bool
	GitIgnore bool
	Manifest  io.Writer        // with Verify: lines for sha256sum -c, from the destination's root
	Record    *Record          // learns what is on both sides; may be nil
	Now       func() time.Time // nil: time.Now
}

func (s *Spec) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// ErrUsage is for a Spec that cannot be meant: a file onto a folder's children,
// a source that is not there.
var ErrUsage = errors.New("cannot be transferred")

// Run plans and executes. With DryRun it only plans, and the result says what
// is unchanged. report may be nil; it is called at most ten times a second.
func Run(ctx context.Context, t Transport, s Spec, report func(Progress)) (*Result, error) {
	p, err := MakePlan(ctx, t, s, report)
	if err != nil {
		return nil, err
	}
	if s.DryRun {
		name, _ := t.Name()
		return &Result{Unchanged: p.Unchanged, Transport: name, Took: p.took}, nil
	}
	return Execute(ctx, t, p, report)
}

// MakePlan lists both sides and compares them. It changes nothing.
func MakePlan(ctx context.Context, t Transport, s Spec, report func(Progress)) (*Plan, error) {
	start := s.now()
	pl := planner{t: t, s: s, tr: newTracker(t, s.now, report)}
	defer pl.tr.stop()
	pl.tr.stage("scan")
	var p *Plan
	var err error
	switch s.Direction {
	case Push:
		p, err = pl.push(ctx)
	case Pull:
		p, err = pl.pull(ctx)
	default:
		err = fmt.Errorf("%w: direction %q", ErrUsage, s.Direction)
	}
	if err != nil {
		return nil, err
	}
	p.spec = s
	p.took = s.now().Sub(start)
	return p, nil
}

type planner struct {
	t  Transport
	s  Spec
	tr *tracker
}

// yesterday is how old a leftover must be where another transfer may still want it.
func (pl *planner) yesterday() time.Time { return pl.s.now().Add(-24 * time.Hour) }

func (pl *planner) scanOptions() ScanOptions {
	if pl.s.NoIgnore {
		return ScanOptions{}
	}
	return ScanOptions{GitIgnore: true, OwnIgnore: true}
}

func (pl *planner) push(ctx context.Context) (*Plan, error) {
	local, err := filepath.Abs(pl.s.Local)
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(local)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	root, what, err := pl.t.Resolve(ctx, pl.s.Remote)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	o := Options{Delete: pl.s.Delete, Force: pl.s.Force, Checksum: pl.s.Checksum, IgnoreModes: runtime.GOOS == "windows"}
	l := &Listing{}
	switch {
	case fi.Mode().IsRegular():
		o.Delete = false // one file has nothing beside it
		if l, local, err = oneFile(local); err != nil {
			return nil, err
		}
		if missing && !strings.HasSuffix(pl.s.Remote, "/") || !missing && !what.Mode.IsDir() {
			l.Entries[0].Path = path.Base(root)
			if root = path.Dir(root); missing {
				_, _, err = pl.t.Resolve(ctx, root)
				missing = errors.Is(err, fs.ErrNotExist)
				if err != nil && !missing {
					return nil, err
				}
			} else {
				missing = false
			}
		}
	case !fi.IsDir():
		return nil, fmt.Errorf("%w: %s is a %s", ErrUsage, local, tree.TypeName(fi.Mode()))
	case !missing && !what.Mode.IsDir():
		return nil, fmt.Errorf("%w: %s is a folder, but %s on the instance is a %s", ErrUsage, local, remote.Clean(root), tree.TypeName(what.Mode))
	default:
		if l, err = Scan(ctx, local, pl.scanOptions()); err != nil {
			return nil, err
		}
	}
	var there, litter []Entry
	if !missing {
		if there, litter, err = pl.there(ctx, root, l, o.Delete); err != nil {
			return nil, err
		}
	}
	if err := pl.checksums(ctx, l.Entries, there, local, root); err != nil {
		return nil, err
	}
	blind := map[string]bool{} // what could not be read here is not deleted there
	for _, a := range l.Skipped {
		blind[a.Entry.Path] = true
	}
	o.Protected = func(p string, isDir bool) bool {
		return l.Ignore.Excluded(p, isDir) || under(blind, p)
	}
	pl.tr.stage("plan")
	p := Compare(l.Entries, there, o)
	p.Ignored = l.Ignored
	p.Actions = append(p.Actions, l.Skipped...)
	p.local, p.remote, p.newRoot = local, root, missing
	p.litter = oldLitter(litter, p, pl.yesterday(), pl.yesterday())
	return p, nil
}

// oneFile is the listing of a file that was named itself; it is sent whatever
// the rules say, and a symlink is what it points to.
func oneFile(name string) (*Listing, string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, "", err
	}
	fi, err := os.Stat(real)
	if err != nil {
		return nil, "", err
	}
	e := Entry{Path: filepath.Base(name), From: filepath.Base(real), Size: fi.Size(), Mode: fi.Mode().Perm(), ModTime: fi.ModTime()}
	return &Listing{Entries: []Entry{e}}, filepath.Dir(real), nil
}

// under says whether p or a folder above it is in set.
func under(set map[string]bool, p string) bool {
	for ; len(set) > 0 && p != "." && p != "/"; p = path.Dir(p) {
		if set[p] {
			return true
		}
	}
	return false
}

// there lists the destination of a push: all of it where deletes are wanted,
// else only what the source has, so that pushing one file into a home folder
// does not read it all.
func (pl *planner) there(ctx context.Context, root string, l *Listing, all bool) (there, litter []Entry, err error) {
	emit := func(e Entry) error {
		if tree.OursIn(e.Path) {
			litter = append(litter, e)
		} else {
			there = append(there, e)
			pl.tr.scanned(1)
		}
		return nil
	}
	if all {
		err = pl.t.List(ctx, root, emit)
		var part *ListError
		if errors.As(err, &part) {
			err = nil // less is seen, so less is deleted; sending reports for itself
		}
		return there, litter, err
	}
	paths := make([]string, len(l.Entries))
	for i, e := range l.Entries {
		paths[i] = e.Path
	}
	return there, litter, pl.t.Stat(ctx, root, paths, emit)
}

func (pl *planner) pull(ctx context.Context) (*Plan, error) {
	root, what, err := pl.t.Resolve(ctx, pl.s.Remote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there on the instance", ErrUsage, remote.Clean(root))
	}
	if err != nil {
		return nil, err
	}
	local, err := filepath.Abs(pl.s.Local)
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(local)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	o := Options{Delete: pl.s.Delete, Force: pl.s.Force, Checksum: pl.s.Checksum, KeepIn: true,
		IgnoreModes: runtime.GOOS == "windows", Windows: runtime.GOOS == "windows", FoldCase: runtime.GOOS == "windows" || runtime.GOOS == "darwin"}
	var src []Entry
	here := &Listing{}
	switch {
	case what.Mode.IsRegular():
		o.Delete = false
		name := path.Base(root)
		real := root
		if what.Target != "" {
			real = what.Target
		}
		if missing && !strings.HasSuffix(pl.s.Local, "/") && !strings.HasSuffix(pl.s.Local, string(filepath.Separator)) || !missing && !fi.IsDir() {
			name = filepath.Base(local)
			local = filepath.Dir(local)
		}
		root = path.Dir(real)
		if err := pl.t.Stat(ctx, root, []string{path.Base(real)}, func(e Entry) error { src = append(src, e); return nil }); err != nil {
			return nil, err
		}
		if len(src) != 1 {
			return nil, fmt.Errorf("%w: %s is gone from the instance", ErrUsage, remote.Clean(real))
		}
		src[0].Path, src[0].From = name, path.Base(real)
		if fi, err := os.Lstat(filepath.Join(local, name)); err == nil {
			here.Entries = []Entry{{Path: name, Size: fi.Size(), Mode: fi.Mode() & (fs.ModeType | fs.ModePerm), ModTime: fi.ModTime()}}
		}
	case !what.Mode.IsDir():
		return nil, fmt.Errorf("%w: %s on the instance is a %s", ErrUsage, remote.Clean(root), tree.TypeName(what.Mode))
	case !missing && !fi.IsDir():
		return nil, fmt.Errorf("%w: %s on the instance is a folder, but %s is a file", ErrUsage, remote.Clean(root), local)
	default:
		err = pl.t.List(ctx, root, func(e Entry) error {
			if !tree.OursIn(e.Path) {
				src = append(src, e)
				pl.tr.scanned(1)
			}
			return nil
		})
		var part *ListError
		if errors.As(err, &part) {
			o.Incomplete = part.Error()
		} else if err != nil {
			return nil, err
		}
		if !missing {
			if here, err = Scan(ctx, local, ScanOptions{}); err != nil {
				return nil, err
			}
		}
	}
	rules := (*tree.Ignore)(nil)
	ignored := int64(0)
	if what.Mode.IsDir() && !pl.s.NoIgnore {
		if rules, err = pl.remoteRules(ctx, root, src); err != nil {
			return nil, err
		}
		kept := src[:0]
		for _, e := range src {
			if rules.Excluded(e.Path, e.Mode.IsDir()) {
				ignored++
				continue
			}
			kept = append(kept, e)
		}
		src = kept
	}
	if o.Protected, err = pl.protectHere(ctx, rules, local, missing); err != nil {
		return nil, err
	}
	src, special := splitSpecial(src)
	if err := pl.checksums(ctx, here.Entries, src, local, root); err != nil {
		return nil, err
	}
	pl.tr.stage("plan")
	p := Compare(src, here.Entries, o)
	p.Ignored = ignored
	p.Actions = append(p.Actions, special...)
	if o.Incomplete != "" {
		p.Actions = append(p.Actions, Action{Op: Skip, Entry: Entry{Path: "."}, Why: o.Incomplete})
	}
	p.local, p.remote, p.newRoot = local, root, missing
	p.litter = oldLitter(here.Litter, p, pl.s.now(), pl.yesterday())
	return p, nil
}

// protectHere says what a pull's deletes leave alone: what the instance's rules
// ignore, and what this folder's own do. A push leaves such files here (secrets,
// data sets), so that they exist nowhere else.
func (pl *planner) protectHere(ctx context.Context, there *tree.Ignore, local string, missing bool) (func(string, bool) bool, error) {
	if !pl.s.Delete || missing || pl.s.NoIgnore {
		return there.Excluded, nil
	}
	here, err := Scan(ctx, local, ScanOptions{GitIgnore: true, OwnIgnore: true})
	if err != nil {
		return nil, err
	}
	return func(p string, isDir bool) bool { return there.Excluded(p, isDir) || here.Ignore.Excluded(p, isDir) }, nil
}

// splitSpecial takes out what is neither file, folder nor symlink.
func splitSpecial(src []Entry) (plain []Entry, skips []Action) {
	for _, e := range src {
		if m := e.Mode.Type(); m == 0 || m == fs.ModeDir || m == fs.ModeSymlink {
			plain = append(plain, e)
		} else {
			skips = append(skips, Action{Op: Skip, Entry: e, Why: "a " + tree.TypeName(m) + " is not sent"})
		}
	}
	return plain, skips
}

// checksums fills SHA256 on both sides for files of equal size.
func (pl *planner) checksums(ctx context.Context, a, b []Entry, local, root string) error {
	if !pl.s.Checksum {
		return nil
	}
	byPath := make(map[string]*Entry, len(b))
	for i := range b {
		byPath[b[i].Path] = &b[i]
	}
	var here, far []*Entry
	var paths []string
	for i := range a {
		if o := byPath[a[i].Path]; o != nil && a[i].Mode.IsRegular() && o.Mode.IsRegular() && a[i].Size == o.Size {
			here, far = append(here, &a[i]), append(far, o)
			paths = append(paths, o.Source())
		}
	}
	n := 0
	err := pl.t.Hash(ctx, root, paths, func(p, sum string, err error) {
		far[n].SHA256 = sum
		n++
	})
	if err != nil {
		return err
	}
	for _, e := range here {
		e.SHA256, _ = hashFile(ctx, filepath.Join(local, filepath.FromSlash(e.Source())), nil)
	}
	return nil
}
