package sync

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"rentop/sync/tree"
)

// This file is how two listings were compared before it was a merge: in memory,
// by maps. The merge must plan the same.

// oldCompare makes the plan that turns dst into src. Both are listings as a walk and
// Transport.List give them, in any order.
func oldCompare(src, dst []Entry, o Options) *Plan {
	src = slices.Clone(src)
	slices.SortFunc(src, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	c := oldComparison{o: o, plan: &Plan{}, dst: make(map[string]Entry, len(dst)), src: make(map[string]bool, len(src)),
		fresh: map[string]bool{}, blocked: map[string]string{}, folded: map[string]string{}, kids: map[string]int{}}
	for _, e := range dst {
		c.dst[e.Path] = e
		c.kids[path.Dir(e.Path)]++
	}
	for _, e := range src {
		c.src[e.Path] = true
	}
	for _, e := range src {
		c.one(e)
	}
	if o.Delete {
		c.deletes(len(src))
	}
	p := c.plan
	p.Actions = slices.Concat(c.replace, c.mkdirs, c.sends, c.links, c.attrs, c.skips)
	return p
}

type oldComparison struct {
	o       Options
	plan    *Plan
	dst     map[string]Entry
	src     map[string]bool
	fresh   map[string]bool   // folders that are not there yet
	blocked map[string]string // folders that cannot be made, and why
	folded  map[string]string // lower-case path to the first that had it
	kids    map[string]int    // entries directly in a destination folder
	cleared int               // entries of folders that something else replaces

	replace, mkdirs, sends, links, attrs, skips []Action
}

func (c *oldComparison) one(e Entry) {
	parent := path.Dir(e.Path)
	if why := c.cannot(e, parent); why != "" {
		c.skip(e, why)
		return
	}
	there, exists := c.dst[e.Path]
	if exists && c.fresh[parent] {
		exists = false // seen through a symlink that becomes a folder
	}
	if exists && there.Mode.Type() != e.Mode.Type() {
		if !c.makeRoom(e, there) {
			return
		}
		exists = false
	}
	why := "new"
	switch {
	case e.Mode.IsDir():
		if !exists {
			c.fresh[e.Path] = true
			c.mkdirs = append(c.mkdirs, Action{Op: Mkdir, Entry: e, Why: why})
		} else if c.modeDiffers(e, there) {
			c.attrs = append(c.attrs, Action{Op: Attr, Entry: e, Why: "mode differs"})
		}
	case e.Mode&fs.ModeSymlink != 0:
		if exists && there.Target == e.Target {
			c.plan.Unchanged++
			return
		}
		if exists {
			why = "target differs"
		}
		c.links = append(c.links, Action{Op: Link, Entry: e, Why: why})
	default:
		c.file(e, there, exists)
	}
}

func (c *oldComparison) file(e, there Entry, exists bool) {
	why := "new"
	if exists {
		hashed := c.o.Checksum && e.SHA256 != "" && there.SHA256 != ""
		timeDiffers := !tree.SameTime(e.ModTime, there.ModTime)
		switch {
		case e.Size != there.Size:
			why = "size differs"
		case hashed && e.SHA256 != there.SHA256:
			why = "content differs"
		case !hashed && timeDiffers:
			why = "time differs"
		case timeDiffers || c.modeDiffers(e, there):
			what := "mode differs"
			if timeDiffers {
				what = "time differs, content is equal"
			}
			c.attrs = append(c.attrs, Action{Op: Attr, Entry: e, Why: what})
			return
		default:
			c.plan.Unchanged++
			return
		}
	}
	c.sends = append(c.sends, Action{Op: Send, Entry: e, Why: why})
	if c.plan.Bytes += e.Size; c.plan.Bytes < 0 { // sizes that no disk holds
		c.plan.Bytes = math.MaxInt64
	}
}

// cannot says why the destination cannot hold e.
func (c *oldComparison) cannot(e Entry, parent string) string {
	if why, bad := c.blocked[parent]; bad {
		return why
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
		key := strings.ToLower(e.Path)
		if first, taken := c.folded[key]; taken {
			return fmt.Sprintf("differs from %q only in case", first)
		}
		c.folded[key] = e.Path
	}
	if c.o.KeepIn && e.Mode&fs.ModeSymlink != 0 && tree.LinkLeaves(e.Path, e.Target) {
		return fmt.Sprintf("the symlink points out of the folder, to %q", e.Target)
	}
	return ""
}

func (c *oldComparison) skip(e Entry, why string) {
	if e.Mode.IsDir() {
		c.blocked[e.Path] = why
	}
	c.skips = append(c.skips, Action{Op: Skip, Entry: e, Why: why})
}

// makeRoom plans the removal of what has another type than e. Files and
// symlinks are overwritten as any file is; a folder with something in it goes
// only where deleting was asked for.
func (c *oldComparison) makeRoom(e, there Entry) bool {
	if !there.Mode.IsDir() {
		if e.Mode.IsDir() {
			c.replace = append(c.replace, Action{Op: Delete, Entry: there, Why: "replaced by a folder"})
		}
		return true
	}
	if c.kids[there.Path] > 0 {
		why := "a folder that is not empty is in its place (--delete replaces it)"
		if c.o.Delete {
			if why = c.clear(there, tree.TypeName(e.Mode)); why == "" {
				return true
			}
		}
		c.skip(e, why)
		return false
	}
	c.replace = append(c.replace, Action{Op: Delete, Entry: there, Why: "replaced by a " + tree.TypeName(e.Mode)})
	return true
}

// clear plans the removal of a whole destination folder, or says why not.
func (c *oldComparison) clear(dir Entry, by string) string {
	gone := []Action{{Op: Delete, Entry: dir, Why: "replaced by a " + by}}
	for p, d := range c.dst {
		if !strings.HasPrefix(p, dir.Path+"/") {
			continue
		}
		if c.protected(d) {
			return fmt.Sprintf("the folder in its place holds %q, which is ignored", p)
		}
		gone = append(gone, Action{Op: Delete, Entry: d, Why: "its folder is replaced by a " + by})
	}
	oldDeepestFirst(gone)
	c.cleared += len(gone)
	c.replace = append(c.replace, gone...)
	for _, a := range gone {
		delete(c.dst, a.Entry.Path)
	}
	return ""
}

func (c *oldComparison) protected(e Entry) bool {
	return c.o.Protected != nil && c.o.Protected(e.Path, e.Mode.IsDir())
}

func (c *oldComparison) deletes(sources int) {
	keep := map[string]bool{}
	var gone []Action
	for p, d := range c.dst {
		if c.src[p] {
			continue
		}
		if c.protected(d) {
			for a := path.Dir(p); a != "." && !keep[a]; a = path.Dir(a) {
				keep[a] = true
			}
			continue
		}
		gone = append(gone, Action{Op: Delete, Entry: d, Why: "not in the source"})
	}
	gone = slices.DeleteFunc(gone, func(a Action) bool { return keep[a.Entry.Path] })
	oldDeepestFirst(gone)
	c.plan.Deletes = gone
	all := slices.Concat(c.replace, gone)
	have := len(c.dst) + len(c.replace)
	why := ""
	switch {
	case len(all) == 0:
	case c.o.Incomplete != "":
		why = "the source could not be read completely (" + c.o.Incomplete + ")"
	case c.o.Force:
	case sources == 0:
		why = "the source is empty; is it mounted? (--force deletes all the same)"
	case 2*(len(gone)+c.cleared) > have: // a folder that became a symlink here may hold everything there
		why = "that is more than half of what is there (--force deletes all the same)"
	}
	if why != "" {
		c.plan.Refused = &RefusedError{Why: why, Deletes: all, Have: have}
	}
}

func oldDeepestFirst(a []Action) {
	slices.SortFunc(a, func(x, y Action) int { return strings.Compare(y.Entry.Path, x.Entry.Path) })
}

func (c *oldComparison) modeDiffers(e, there Entry) bool {
	return !c.o.IgnoreModes && e.Mode.Perm() != there.Mode.Perm()
}
