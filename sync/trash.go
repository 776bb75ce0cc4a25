package sync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rentop/sync/tree"
)

// This file keeps what --delete removes: each transfer's in a folder of its own
// under the destination's root, on the same file system, where it has its paths
// again. The tree there is all that is known of it, so that nothing can disagree
// with it after a kill. Files are renamed one by one and folders only removed once
// they are empty: what came into them meanwhile stays.

const (
	trashTime = "20060102T150405.000Z"
	trashKept = 30 * 24 * time.Hour
	// Where less than this, or a twentieth, of the file system is free the trash gives
	// way, its oldest first.
	trashLeast = 2 << 30
)

// trashBin is the trash of one transfer's destination.
type trashBin struct {
	x    *execution
	dir  string // this transfer's; "" where deletes are for good
	old  *Entry // the trash as it was found; nil: there was none
	made bool   // its folders
}

func (x *execution) bin(old *Entry) *trashBin {
	b := &trashBin{x: x, old: old}
	if x.s.Delete && !x.s.NoTrash {
		b.dir = path.Join(tree.TrashDir, x.s.now().UTC().Format(trashTime)+"-"+tree.Token()[:8])
	}
	return b
}

// instead are the actions that take acts, deletes with the deepest first, to the
// trash.
func (b *trashBin) instead(acts []Action) []Action {
	if b.dir == "" || len(acts) == 0 {
		return acts
	}
	var out, moves, folders []Action
	for _, a := range slices.Backward(acts) {
		if a.Entry.Mode.IsDir() {
			out = append(out, folder(path.Join(b.dir, a.Entry.Path), a.Entry.Mode.Perm()))
		}
	}
	for _, a := range acts {
		if a.Entry.Mode.IsDir() {
			folders = append(folders, a)
		} else {
			moves = append(moves, Action{Op: Move, Entry: a.Entry, Why: a.Why, To: path.Join(b.dir, a.Entry.Path)})
		}
	}
	return slices.Concat(out, moves, folders)
}

func folder(p string, m fs.FileMode) Action {
	return Action{Op: Mkdir, Entry: Entry{Path: p, Mode: fs.ModeDir | m}, Why: "the trash"}
}

// open makes the trash's folders, before acts go there. git is told to look away:
// what was removed is no work that somebody has not committed.
func (b *trashBin) open(ctx context.Context, acts []Action) error {
	if b.dir == "" || len(acts) == 0 || b.made {
		return nil
	}
	b.made = true
	var failed error
	err := b.x.change(ctx, []Action{folder(tree.TrashDir, 0o700), folder(b.dir, 0o700)}, func(_ Action, err error) { failed = errOr(failed, err) })
	if err != nil || failed != nil || b.old != nil {
		return err // that a folder is missing is said by each that should go there
	}
	const name, text = tree.TrashDir + "/" + tree.GitIgnoreFile, "*\n"
	if b.x.dst != nil {
		b.x.dst.WriteFile(filepath.FromSlash(name), []byte(text), 0o600)
		return nil
	}
	dir, err := os.MkdirTemp("", "rentop-trash-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "ignore"), []byte(text), 0o600); err != nil {
		return err
	}
	e := Entry{Path: name, From: "ignore", Size: int64(len(text)), Mode: 0o600, ModTime: b.x.s.now()}
	return b.x.t.Send(ctx, dir, b.x.at.remote, []Entry{e}, silent{}, func(Entry, error) {})
}

// silent is a Meter for what is no part of the transfer.
type silent struct{}

func (silent) Content(int64)  {}
func (silent) Wire(int64)     {}
func (silent) Current(string) {}

// generation is what one transfer removed.
type generation struct {
	name    string
	at      time.Time
	size    int64
	entries []Entry // paths from the destination's root
}

// generations lists the trash, the oldest first.
func (b *trashBin) generations(ctx context.Context) ([]generation, error) {
	var list []Entry
	emit := func(e Entry) error { list = append(list, e); return nil }
	var err error
	if b.x.dst != nil {
		_, err = tree.Walk(ctx, filepath.Join(b.x.at.local, tree.TrashDir), tree.Options{}, emit)
	} else {
		err = b.x.t.List(ctx, path.Join(b.x.at.remote, tree.TrashDir), emit)
	}
	var part *ListError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &part) {
		err = nil
	}
	return byGeneration(list), err
}

// byGeneration sorts a listing of the trash.
func byGeneration(list []Entry) []generation {
	by := map[string]*generation{}
	for _, e := range list {
		name, _, _ := strings.Cut(e.Path, "/")
		when, _, _ := strings.Cut(name, "-")
		at, err := time.Parse(trashTime, when)
		if err != nil {
			continue // not ours
		}
		g := by[name]
		if g == nil {
			g = &generation{name: name, at: at}
			by[name] = g
		}
		e.Path = path.Join(tree.TrashDir, e.Path)
		g.entries = append(g.entries, e)
		g.size += e.Size
	}
	out := make([]generation, 0, len(by))
	for _, g := range by {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b generation) int { return strings.Compare(a.name, b.name) })
	return out
}

// makeRoom gives the trash's room back where need bytes would leave too little, and
// all of it where nothing was added for long.
func (b *trashBin) makeRoom(ctx context.Context, need int64) error {
	if b.old == nil {
		return nil
	}
	if b.x.s.now().Sub(b.old.ModTime) > trashKept {
		return b.forgetOld(ctx)
	}
	missing := b.missing(ctx, need)
	if missing <= 0 {
		return nil
	}
	gens, err := b.generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range gens {
		if missing <= 0 {
			break
		}
		if err := b.forget(ctx, g); err != nil {
			return err
		}
		missing -= g.size
	}
	return nil
}

// missing is how many bytes are too few; nobody who can tell: none.
func (b *trashBin) missing(ctx context.Context, need int64) int64 {
	var free, total int64
	if b.x.dst != nil {
		free, total = spaceHere(b.x.at.local)
	} else if s, tells := optional[Spacer](b.x.t); tells {
		var err error
		if free, total, err = s.Space(ctx, b.x.at.remote); err != nil {
			return 0 // what is sent will say that it is full
		}
	}
	if total == 0 {
		return 0
	}
	return max(total/20, trashLeast) + need - free
}

// forgetOld removes what has been in the trash for long.
func (b *trashBin) forgetOld(ctx context.Context) error {
	if b.old == nil {
		return nil
	}
	gens, err := b.generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range gens {
		if b.x.s.now().Sub(g.at) > trashKept {
			if err := b.forget(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes a generation for good. What cannot be removed is left.
func (b *trashBin) forget(ctx context.Context, g generation) error {
	return b.x.change(ctx, g.removals(), func(Action, error) {})
}

// removals are the deletes of all that g holds, the deepest first.
func (g generation) removals() []Action {
	acts := make([]Action, len(g.entries))
	for i, e := range g.entries {
		acts[i] = Action{Op: Delete, Entry: e}
	}
	deepestFirst(acts)
	return acts
}
