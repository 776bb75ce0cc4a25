package sync

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"rentop/remote"
)

// This file serves those who write onto an instance by a Transport of their own
// accord: making room for what comes, as a transfer with --delete does.

// Aside moves things below root on the instance to its trash, as --delete does, so
// that what differs is never written over. It returns their folder there, under root.
// An error says that not all of them are there: then nothing may be written.
func Aside(ctx context.Context, t Transport, root string, things []Entry, now time.Time) (dir string, err error) {
	if len(things) == 0 {
		return "", nil
	}
	s := Spec{Direction: Push, Delete: true, Now: func() time.Time { return now }}
	x := newExecution(t, s, sides{remote: root}, newTracker(t, s.Now, nil))
	defer x.tr.stop()
	b := x.bin(nil)
	acts := make([]Action, len(things))
	for i, e := range things {
		acts[i] = Action{Op: Delete, Entry: e, Why: "replaced"}
	}
	deepestFirst(acts)
	if err := b.open(ctx, acts); err != nil {
		return "", err
	}
	var failed error
	err = x.change(ctx, b.instead(acts), func(a Action, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("keep the older %s in the trash: %w", remote.Clean(path.Join(root, a.Entry.Path)), err)
		}
	})
	return b.dir, errOr(err, failed)
}

// Room is how many bytes are free where root is; known is false where nobody can tell.
func Room(ctx context.Context, t Transport, root string) (free int64, known bool) {
	s, tells := optional[Spacer](t)
	if !tells {
		return 0, false
	}
	free, total, err := s.Space(ctx, root)
	return free, err == nil && total > 0
}

// MakeFolders makes folders below root on the instance, and root itself, where they
// are missing; modes are those of the entries. Those that are there stay as they are.
func MakeFolders(ctx context.Context, t Transport, root string, folders []Entry) error {
	if err := makeRoot(ctx, t, root); err != nil {
		return err
	}
	folders = slices.Clone(folders)
	slices.SortFunc(folders, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	acts := make([]Action, len(folders))
	for i, e := range folders {
		acts[i] = Action{Op: Mkdir, Entry: e, Why: "new"}
	}
	if len(acts) == 0 {
		return nil
	}
	var failed error
	err := t.Apply(ctx, root, acts, func(a Action, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("making %s on the instance: %w", remote.Clean(path.Join(root, a.Entry.Path)), err)
		}
	})
	return errOr(err, failed)
}
