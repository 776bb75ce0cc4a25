package far

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"rentop/sync/tree"
)

// This file is about the temporary files of a run that was killed. A run that
// writes holds a lock on one file in its root, which the kernel lets go of however
// the run ends: whoever meets temporary files later and gets the lock may remove
// them, and never takes them from a run that lives.

// lockSuffix ends the name of a run's lock; none of its temporary files has it.
const lockSuffix = ".lock"

// leftAfter is how old a temporary file must be where no lock says whether its run
// lives: the folder did not take one, or the file system knows none.
const leftAfter = time.Hour

// runOf is what the names of one run begin with; false for other names.
func runOf(name string) (string, bool) {
	rest, is := strings.CutPrefix(name, tree.TmpPrefix)
	if !is {
		return "", false
	}
	token, numbered := rest, false
	if t, ok := strings.CutSuffix(rest, lockSuffix); ok {
		token, numbered = t, true
	} else {
		token, _, numbered = strings.Cut(rest, "-")
	}
	return tree.TmpPrefix + token, numbered && token != ""
}

// Temporary says whether a path is a temporary file of a run of this package: one
// that a [Sweeper] removes only where the run is over.
func Temporary(p string) bool {
	_, is := runOf(path.Base(p))
	return is
}

// hold takes the lock of this run. Without one its files are left to their age.
func (p *place) hold() {
	for range 3 {
		name := p.run + lockSuffix
		f, err := p.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return
		}
		if held, err := lock(f); !held && err == nil && !unlinked(f) {
			p.lock = f
			return
		}
		f.Close() // a sweeper was faster
		p.root.Remove(name)
		p.run = tree.TmpPrefix + tree.Token()
	}
}

// release is the end of the run.
func (p *place) release() {
	if p.lock == nil {
		return
	}
	name := p.run + lockSuffix
	if p.root.Remove(name) == nil {
		p.lock.Close()
	} else { // Windows removes no open file
		p.lock.Close()
		p.root.Remove(name)
	}
	p.lock = nil
}

// Sweeper removes temporary files of runs that are over. It is for one goroutine.
type Sweeper struct {
	root *os.Root
	runs map[string]*os.File // by the path of the lock: its file where the run is over, nil where it lives
}

// NewSweeper makes one for paths under root, which stays the caller's.
func NewSweeper(root *os.Root) *Sweeper { return &Sweeper{root: root, runs: map[string]*os.File{}} }

// Close removes the locks of the runs that were over.
func (s *Sweeper) Close() {
	for name, f := range s.runs {
		if f != nil {
			f.Close()
			s.root.Remove(name)
		}
	}
	clear(s.runs)
}

// Remove removes the temporary file at p, slash-separated, unless its run lives.
func (s *Sweeper) Remove(p string) error {
	name := filepath.FromSlash(p)
	fi, err := s.root.Lstat(name)
	if err != nil || fi.IsDir() {
		return nil
	}
	run, is := runOf(path.Base(p))
	if !is {
		return nil
	}
	over, known := s.over(path.Dir(p), run)
	if !known {
		over = time.Since(changed(fi)) > leftAfter
	}
	if !over || known && strings.HasSuffix(p, lockSuffix) { // the locks come last
		return nil
	}
	return s.root.Remove(name)
}

// over says whether a run is over whose file is in dir: its lock is there or in a
// folder above.
func (s *Sweeper) over(dir, run string) (over, known bool) {
	for ; ; dir = path.Dir(dir) {
		name := filepath.FromSlash(path.Join(dir, run+lockSuffix))
		if f, seen := s.runs[name]; seen {
			return f != nil, true
		}
		if fi, err := s.root.Lstat(name); err == nil && fi.Mode().IsRegular() {
			f, err := s.root.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				return false, false
			}
			held, err := lock(f)
			if held || err != nil {
				f.Close()
				if held {
					s.runs[name] = nil
				}
				return false, held
			}
			s.runs[name] = f
			return true, true
		}
		if dir == "." {
			return false, false
		}
	}
}
