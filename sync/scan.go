package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	stdsync "sync"

	"golang.org/x/sync/errgroup"

	"rentop/sync/tree"
)

// This file lists a folder on this machine. Symlinks are reported, never
// followed (except the root itself: a dataset behind a symlink is what the
// person named).

// ScanOptions says which rules hold.
type ScanOptions struct {
	GitIgnore bool // honour .gitignore
	OwnIgnore bool // honour .rentopignore
}

// Listing is what is under a root.
type Listing struct {
	Entries []Entry      // files, folders and symlinks, sorted by path
	Skipped []Action     // what cannot be sent, and why; all Op Skip
	Ignored int64        // left out by rules; a folder counts once
	Ignore  *tree.Ignore // all rules of the tree
	Litter  []Entry      // temporary files of an earlier run that was killed
}

// scanners bounds how many folders are read at once.
const scanners = 8

// Scan lists root, which must be a folder. Names that cannot be read are
// reported in Skipped, and the rest goes on.
func Scan(ctx context.Context, root string, o ScanOptions) (*Listing, error) {
	fi, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", root)
	}
	s := &scan{root: root, o: o}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(scanners)
	s.group = g
	g.Go(func() error { return s.dir(ctx, "", nil) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	l := &s.out
	byPath := func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(l.Entries, byPath)
	slices.SortFunc(l.Litter, byPath)
	slices.SortFunc(l.Skipped, func(a, b Action) int { return strings.Compare(a.Entry.Path, b.Entry.Path) })
	slices.SortFunc(s.rules, func(a, b ruleFile) int {
		return cmp.Or(cmp.Compare(strings.Count(a.base, "/"), strings.Count(b.base, "/")), cmp.Compare(a.base, b.base))
	})
	for _, r := range s.rules {
		l.Ignore = l.Ignore.With(r.name, r.base, r.data)
	}
	return l, nil
}

type ruleFile struct {
	name, base string
	data       []byte
}

type scan struct {
	root  string
	o     ScanOptions
	group *errgroup.Group

	mu    stdsync.Mutex // protects what follows
	out   Listing
	rules []ruleFile
}

// dir reads the folder rel ("" for the root) under the rules of those above it.
func (s *scan) dir(ctx context.Context, rel string, rules *tree.Ignore) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	full := filepath.Join(s.root, filepath.FromSlash(rel))
	names, err := os.ReadDir(full)
	var found Listing
	if err != nil {
		if rel == "" {
			return err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since its parent was read
		}
		found.Skipped = append(found.Skipped, Action{Op: Skip, Entry: Entry{Path: rel, Mode: fs.ModeDir}, Why: reason(err)})
	}
	own := s.ruleFiles(rel, full, names)
	for _, r := range own {
		rules = rules.With(r.name, r.base, r.data)
	}
	var below []string
	for _, d := range names {
		p := d.Name()
		if rel != "" {
			p = rel + "/" + p
		}
		isDir := d.IsDir()
		if !tree.Ours(d.Name()) && rules.Match(p, isDir) {
			found.Ignored++
			continue
		}
		e, skip := s.entry(d, p)
		switch {
		case skip == "gone":
		case tree.Ours(d.Name()):
			found.Litter = append(found.Litter, e)
		case skip != "":
			found.Skipped = append(found.Skipped, Action{Op: Skip, Entry: e, Why: skip})
		default:
			found.Entries = append(found.Entries, e)
			if isDir {
				below = append(below, p)
			}
		}
	}
	s.mu.Lock()
	s.out.Entries = append(s.out.Entries, found.Entries...)
	s.out.Skipped = append(s.out.Skipped, found.Skipped...)
	s.out.Litter = append(s.out.Litter, found.Litter...)
	s.out.Ignored += found.Ignored
	s.rules = append(s.rules, own...)
	s.mu.Unlock()
	for _, p := range below {
		walk := func() error { return s.dir(ctx, p, rules) }
		if !s.group.TryGo(walk) {
			if err := walk(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ruleFiles reads the ignore files of one folder; like git, no symlinks.
func (s *scan) ruleFiles(rel, full string, names []fs.DirEntry) []ruleFile {
	var out []ruleFile
	for _, d := range names {
		n := d.Name()
		if !(s.o.GitIgnore && n == tree.GitIgnoreFile || s.o.OwnIgnore && n == tree.OwnIgnoreFile) || !d.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(full, n))
		if err != nil {
			continue // it is named when it is sent
		}
		data, err := io.ReadAll(io.LimitReader(f, tree.MaxIgnoreFile))
		f.Close()
		if err == nil {
			out = append(out, ruleFile{name: n, base: rel, data: data})
		}
	}
	return out
}

// entry makes the Entry of p, or says why it cannot be sent.
func (s *scan) entry(d fs.DirEntry, p string) (Entry, string) {
	e := Entry{Path: p, Mode: d.Type()}
	fi, err := d.Info()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return e, "gone"
		}
		return e, reason(err)
	}
	e.Mode = fi.Mode() & (fs.ModeType | fs.ModePerm)
	e.ModTime = fi.ModTime()
	switch {
	case e.Mode.IsRegular():
		e.Size = fi.Size()
	case e.Mode.IsDir():
	case e.Mode&fs.ModeSymlink != 0:
		if e.Target, err = os.Readlink(filepath.Join(s.root, filepath.FromSlash(p))); err != nil {
			return e, reason(err)
		}
		if runtime.GOOS == "windows" {
			e.Target = filepath.ToSlash(e.Target)
		}
	default:
		return e, "a " + tree.TypeName(e.Mode) + " is not sent"
	}
	return e, ""
}

// reason is an error without the path that is shown beside it.
func reason(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err.Error()
	case errors.As(err, &le):
		return le.Err.Error()
	}
	return err.Error()
}
