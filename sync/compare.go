package sync

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"rentop/sync/tree"
)

// This file compares two trees as a merge of their walks. It touches nothing,
// and remembers only the folders that are open on the way, so that its memory
// does not grow with the trees.

// comparer merges two walks.
type comparer struct {
	o         Options
	out       func(Action) // in an order in which they can be done
	unchanged func(Entry)  // files and symlinks that are there already, as the source has them
	// ask takes a file of equal size about which its time says nothing, or is not to
	// decide; whoever takes it calls settle later. nil: the time decides.
	ask   func(e, there Entry) error
	ended func()      // the destination has been seen whole; may be nil
	all   func() bool // read the destination to its end although the source has ended; nil: only with Delete

	src, dst *feed
	open     []level // the folders above what is looked at
	deletes  []Action
	sources  int // entries of the source
	have     int // entries of the destination
	singles  int // of the replaced, those with nothing in them
	cleared  int // entries of folders that something else replaces
	skipped  map[string]bool
	err      error // of ask
}

// level is an open folder.
type level struct {
	path    string
	fresh   bool              // not at the destination yet
	blocked string            // why it cannot be made
	extra   *Entry            // it is only at the destination: this
	closed  bool              // nothing below may be deleted
	keep    bool              // holds something that stays
	names   map[string]string // folded name to the first of the source that had it
	extras  []extra           // with FoldCase: what is only at the destination
}

// extra is a name that only the destination has, and its part of the deletes.
type extra struct {
	folded   string
	from, to int
}

func newComparer(o Options, out func(Action)) *comparer {
	return &comparer{o: o, out: out, open: []level{{}}, skipped: map[string]bool{}}
}

// merge compares until both feeds have ended, or the first fails.
func (c *comparer) merge(src, dst *feed) error {
	c.src, c.dst = src, dst
	for {
		s, d := src.peek(), dst.peek()
		if d == nil && dst.err == nil && c.ended != nil {
			c.ended()
			c.ended = nil
		}
		switch {
		case c.err != nil:
			return c.err
		case s == nil && d == nil:
			c.close(0)
			return errOr(src.err, dst.err)
		case s == nil && src.err == nil && !c.o.Delete && (c.all == nil || !c.all()):
			c.close(0)
			return nil
		}
		if s == nil && src.err != nil || d == nil && dst.err != nil {
			return errOr(src.err, dst.err)
		}
		order := 0
		switch {
		case s == nil:
			order = 1
		case d == nil:
			order = -1
		default:
			order = tree.Compare(s.Path, d.Path)
		}
		switch {
		case order < 0:
			c.one(src.take(), Entry{}, false)
		case order > 0:
			e := dst.take()
			c.leave(e.Path)
			c.extra(e)
		default:
			c.have++
			c.one(src.take(), dst.take(), true)
		}
	}
}

// leave closes the folders that p is not in.
func (c *comparer) leave(p string) {
	n := len(c.open)
	for n > 1 && (!tree.Under(p, c.open[n-1].path) || p == c.open[n-1].path) {
		n--
	}
	c.close(n)
}

// close closes the innermost folders until n are left; 0 closes all.
func (c *comparer) close(n int) {
	for len(c.open) > n {
		l := &c.open[len(c.open)-1]
		var up *level
		if len(c.open) > 1 {
			up = &c.open[len(c.open)-2]
		}
		for _, x := range l.extras {
			if _, same := l.names[x.folded]; same { // the source's, under another spelling
				for i := x.from; i < x.to; i++ {
					c.deletes[i].Op = ""
				}
			}
		}
		if l.extra != nil {
			if l.keep {
				up.keep = true
			} else {
				c.deletes = append(c.deletes, Action{Op: Delete, Entry: *l.extra, Why: "not in the source"})
			}
			if c.o.FoldCase {
				last := &up.extras[len(up.extras)-1]
				last.to = len(c.deletes)
			}
		} else if up != nil && l.keep {
			up.keep = true
		}
		c.open = c.open[:len(c.open)-1]
	}
}

func (c *comparer) top() *level { return &c.open[len(c.open)-1] }

// one plans for an entry of the source.
func (c *comparer) one(e, there Entry, exists bool) {
	c.sources++
	c.leave(e.Path)
	in := c.top()
	if why := c.cannot(e, in); why != "" {
		c.skip(e, why, exists && there.Mode.IsDir())
		return
	}
	if t := e.Mode.Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
		c.skip(e, "a "+tree.TypeName(t)+" is not sent", false)
		c.open = append(c.open, level{path: e.Path, closed: true})
		return
	}
	if in.fresh {
		exists = false // seen through a symlink that becomes a folder
	} else if !exists && c.o.FoldCase && c.o.Lookup != nil {
		there, exists = c.o.Lookup(e.Path)
	}
	if exists && there.Mode.Type() != e.Mode.Type() {
		if !c.makeRoom(e, there) {
			return
		}
		exists = false
	}
	switch {
	case e.Mode.IsDir():
		if !exists {
			c.out(Action{Op: Mkdir, Entry: e, Why: "new"})
		} else if c.modeDiffers(e, there) {
			c.out(Action{Op: Attr, Entry: e, Why: "mode differs"})
		}
		c.open = append(c.open, level{path: e.Path, fresh: !exists, closed: in.closed})
	case e.Mode&fs.ModeSymlink != 0:
		switch {
		case !exists:
			c.out(Action{Op: Link, Entry: e, Why: "new"})
		case there.Target != e.Target:
			c.out(Action{Op: Link, Entry: e, Why: "target differs"})
		default:
			c.unchanged(e)
		}
	default:
		c.file(e, there, exists, false)
	}
}

// timeDiffers is why a file of equal size is sent where nobody looks at its content.
const timeDiffers = "time differs"

func (c *comparer) file(e, there Entry, exists, asked bool) {
	why := "new"
	if exists {
		hashed := (c.o.Checksum || asked) && e.SHA256 != "" && there.SHA256 != ""
		later := !tree.SameTime(e.ModTime, there.ModTime)
		if c.ask != nil && !asked && e.Size == there.Size && (later || c.o.Checksum) {
			if err := c.ask(e, there); c.err == nil {
				c.err = err
			}
			return
		}
		switch {
		case e.Size != there.Size:
			why = "size differs"
		case hashed && e.SHA256 != there.SHA256:
			why = "content differs"
		case !hashed && later:
			why = timeDiffers
		case later:
			c.out(Action{Op: Attr, Entry: e, Why: "time differs, content is equal"})
			return
		case c.modeDiffers(e, there):
			c.out(Action{Op: Attr, Entry: e, Why: "mode differs"})
			return
		default:
			c.unchanged(e)
			return
		}
	}
	if c.o.IgnoreModes { // keep the executable bit that a side without modes cannot know (mutagen#35)
		if e.Mode = 0o644; exists {
			e.Mode = there.Mode
		}
	}
	if c.skipped[e.Link] {
		e.Link = ""
	}
	c.out(Action{Op: Send, Entry: e, Why: why})
}

// settle plans for a file that ask had taken. SHA256 of both decides where it is set.
func (c *comparer) settle(e, there Entry) { c.file(e, there, true, true) }

// cannot says why the destination cannot hold e.
func (c *comparer) cannot(e Entry, in *level) string {
	if in.blocked != "" {
		return in.blocked
	}
	if err := tree.CheckPath(e.Path); err != nil {
		return err.Error()
	}
	if c.o.Windows {
		if why := tree.WindowsName(e.Path); why != "" {
			return why
		}
	}
	if c.o.FoldCase {
		key := tree.Fold(c.name(e.Path, in))
		if first, taken := in.names[key]; taken {
			return fmt.Sprintf("differs from %q only in case", first)
		}
		if in.names == nil {
			in.names = map[string]string{}
		}
		in.names[key] = e.Path
	}
	if c.o.KeepIn && e.Mode&fs.ModeSymlink != 0 && tree.LinkLeaves(e.Path, e.Target) {
		return fmt.Sprintf("the symlink points out of the folder, to %q", e.Target)
	}
	return ""
}

// name is p from the folder in on.
func (c *comparer) name(p string, in *level) string {
	return strings.TrimPrefix(p[len(in.path):], "/")
}

// skip plans nothing for e and says why; into says that the destination has a
// folder in its place.
func (c *comparer) skip(e Entry, why string, into bool) {
	c.out(Action{Op: Skip, Entry: e, Why: why})
	if e.Mode.IsDir() || into {
		l := level{path: e.Path, closed: c.top().closed}
		if e.Mode.IsDir() {
			l.blocked = why
		}
		c.open = append(c.open, l)
	} else if e.Mode.IsRegular() {
		c.skipped[e.Path] = true
	}
}

// makeRoom plans the removal of what has another type than e. Files and
// symlinks are overwritten as any file is; a folder with something in it goes
// only where deleting was asked for.
func (c *comparer) makeRoom(e, there Entry) bool {
	if !there.Mode.IsDir() {
		if e.Mode.IsDir() {
			c.singles++
			c.out(Action{Op: Delete, Entry: there, Why: "replaced by a folder"})
		}
		return true
	}
	next := c.dst.peek()
	switch {
	case next == nil || !tree.Under(next.Path, there.Path):
		c.singles++
		c.out(Action{Op: Delete, Entry: there, Why: "replaced by a " + tree.TypeName(e.Mode)})
		return true
	case !c.o.Delete:
		c.skip(e, "a folder that is not empty is in its place (--delete replaces it)", true)
		return false
	}
	return c.clear(e, there)
}

// clear plans the removal of a whole destination folder, or says why not.
func (c *comparer) clear(e, dir Entry) bool {
	by := tree.TypeName(e.Mode)
	gone := []Action{{Op: Delete, Entry: dir, Why: "replaced by a " + by}}
	why := ""
	for next := c.dst.peek(); next != nil && tree.Under(next.Path, dir.Path); next = c.dst.peek() {
		d := c.dst.take()
		if why == "" && (c.top().closed || c.protected(d)) {
			why = fmt.Sprintf("the folder in its place holds %q, which is ignored", d.Path)
		}
		gone = append(gone, Action{Op: Delete, Entry: d, Why: "its folder is replaced by a " + by})
	}
	if why != "" {
		c.skip(e, why, true)
		for _, a := range gone[1:] {
			c.leave(a.Entry.Path)
			c.extra(a.Entry)
		}
		return false
	}
	c.have += len(gone) - 1
	c.cleared += len(gone)
	deepestFirst(gone)
	for _, a := range gone {
		c.out(a)
	}
	return true
}

func (c *comparer) protected(e Entry) bool {
	return c.o.Protected != nil && c.o.Protected(e.Path, e.Mode.IsDir())
}

// extra plans for what only the destination has.
func (c *comparer) extra(d Entry) {
	c.have++
	if !c.o.Delete {
		return
	}
	in := c.top()
	if c.o.FoldCase {
		in.extras = append(in.extras, extra{tree.Fold(c.name(d.Path, in)), len(c.deletes), len(c.deletes)})
	}
	stays := in.closed || c.protected(d)
	if d.Mode.IsDir() {
		c.open = append(c.open, level{path: d.Path, extra: &d, closed: in.closed, keep: stays})
		return
	}
	if stays {
		in.keep = true
		return
	}
	c.deletes = append(c.deletes, Action{Op: Delete, Entry: d, Why: "not in the source"})
	if c.o.FoldCase {
		in.extras[len(in.extras)-1].to = len(c.deletes)
	}
}

// finish returns what --delete removes, and whether that is refused. incomplete
// is why the source's listing may lack something.
func (c *comparer) finish(replace []Action, incomplete string) ([]Action, *RefusedError) {
	gone := slices.DeleteFunc(c.deletes, func(a Action) bool { return a.Op == "" })
	deepestFirst(gone)
	if !c.o.Delete {
		return nil, nil
	}
	all := slices.Concat(replace, gone)
	have := c.have + c.singles
	why := ""
	switch {
	case len(all) == 0:
	case incomplete != "":
		why = "the source could not be read completely (" + incomplete + ")"
	case c.o.Force:
	case c.sources == 0:
		why = "the source is empty; is it mounted? (--force deletes all the same)"
	case 2*(len(gone)+c.cleared) > have: // a folder that became a symlink here may hold everything there
		why = "that is more than half of what is there (--force deletes all the same)"
	}
	if why == "" {
		return gone, nil
	}
	return gone, &RefusedError{Why: why, Deletes: all, Have: have}
}

func deepestFirst(a []Action) {
	slices.SortFunc(a, func(x, y Action) int { return strings.Compare(y.Entry.Path, x.Entry.Path) })
}

func (c *comparer) modeDiffers(e, there Entry) bool {
	return !c.o.IgnoreModes && e.Mode.Perm() != there.Mode.Perm()
}
