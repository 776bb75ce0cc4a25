package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"rentop/remote"
	"rentop/sync/tree"
)

// This file puts back what --delete has removed.

// UndoError names what Undo left in the trash, since something is in its place.
type UndoError struct{ Left []Failure }

func (e *UndoError) Error() string {
	if len(e.Left) == 1 {
		return fmt.Sprintf("not put back: %s: %v", remote.Clean(e.Left[0].Path), e.Left[0].Err)
	}
	return fmt.Sprintf("%d were not put back, the first is %s: %v", len(e.Left), remote.Clean(e.Left[0].Path), e.Left[0].Err)
}

// Undo puts back what the last transfer into root removed, which is a path as in
// Spec.Remote. Nothing is overwritten: what has something in its place by now stays
// in the trash, and is named by an *UndoError. restored are paths under root.
func Undo(ctx context.Context, t Transport, root string) (restored []string, err error) {
	abs, _, err := t.Resolve(ctx, root)
	if err != nil {
		return nil, err
	}
	var list []Entry
	err = t.List(ctx, path.Join(abs, tree.TrashDir), func(e Entry) error { list = append(list, e); return nil })
	gens := byGeneration(list)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(gens) == 0 {
		return nil, ErrNothingToUndo
	}
	g := gens[len(gens)-1]
	u := undo{prefix: path.Join(tree.TrashDir, g.name), there: map[string]fs.FileMode{}}
	return u.run(ctx, t, abs, g)
}

// ErrNothingToUndo is where the trash is empty.
var ErrNothingToUndo = errors.New("nothing to put back: no transfer has removed anything there, or its trash was given up for room")

type undo struct {
	prefix   string
	there    map[string]fs.FileMode // what is in the places by now
	restored []string
	left     []Failure
}

func (u *undo) run(ctx context.Context, t Transport, root string, g generation) ([]string, error) {
	slices.SortFunc(g.entries, func(a, b Entry) int { return tree.Compare(a.Path, b.Path) })
	var paths []string
	for _, e := range g.entries {
		if p := u.place(e); p != "" {
			paths = append(paths, p)
		}
	}
	if err := t.Stat(ctx, root, paths, func(e Entry) error { u.there[e.Path] = e.Mode; return nil }); err != nil {
		return nil, err
	}
	var folders, moves, modes []Action
	for _, e := range g.entries {
		p := u.place(e)
		now, taken := u.there[p]
		switch {
		case p == "":
		case u.covered(p):
			u.left = append(u.left, Failure{p, errors.New("its folder is something else by now")})
		case !e.Mode.IsDir() && taken:
			u.left = append(u.left, Failure{p, errors.New("a " + tree.TypeName(now) + " is in its place by now")})
		case !e.Mode.IsDir():
			moves = append(moves, Action{Op: Move, Entry: e, To: p})
		case !taken:
			a := Action{Op: Mkdir, Entry: Entry{Path: p, Mode: e.Mode}}
			folders = append(folders, a)
			if closed(a.Entry) {
				a.Op = Attr
				modes = append([]Action{a}, modes...)
			}
		}
	}
	err := t.Apply(ctx, root, slices.Concat(folders, moves, modes), func(a Action, err error) {
		switch {
		case err != nil && a.Op == Move:
			u.left = append(u.left, Failure{a.To, err})
		case err != nil:
			u.left = append(u.left, Failure{a.Entry.Path, err})
		case a.Op == Move:
			u.restored = append(u.restored, a.To)
		case a.Op == Mkdir:
			u.restored = append(u.restored, a.Entry.Path)
		}
	})
	if err != nil {
		return u.restored, err
	}
	// The folders of the trash; one that still holds something stays.
	var empty []Action
	for _, a := range g.removals() {
		if a.Entry.Mode.IsDir() {
			empty = append(empty, a)
		}
	}
	if err := t.Apply(ctx, root, empty, func(Action, error) {}); err != nil {
		return u.restored, err
	}
	slices.Sort(u.restored)
	if len(u.left) > 0 {
		return u.restored, &UndoError{u.left}
	}
	return u.restored, nil
}

// covered says whether something that is no folder is where a folder of p was.
func (u *undo) covered(p string) bool {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		if m, there := u.there[d]; there && !m.IsDir() {
			return true
		}
	}
	return false
}

// place is where an entry of the trash was, "" for the generation itself.
func (u *undo) place(e Entry) string {
	return strings.TrimPrefix(strings.TrimPrefix(e.Path, u.prefix), "/")
}
