package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rentop/remote"
)

// This file carries out a plan: away with what is replaced, folders, files,
// symlinks, attributes, and only if nothing failed the deletes.

// Execute does what p says. A refused delete is a *RefusedError and nothing is
// done. What fails for one path is listed in the result and the rest goes on;
// the error is for what ended the whole (the connection, the context, a
// destination that cannot be made), with the result so far.
func Execute(ctx context.Context, t Transport, p *Plan, report func(Progress)) (*Result, error) {
	if p.Refused != nil {
		return nil, p.Refused
	}
	start := p.spec.now()
	at := sides{local: p.local, remote: p.remote, fresh: p.newRoot}
	x := newExecution(t, p.spec, at, newTracker(t, p.spec.now, report))
	x.res.Unchanged = p.Unchanged
	err := x.carryOut(ctx, p)
	return x.end(p.spec.now().Sub(start)+p.took, err)
}

// execution changes the destination.
type execution struct {
	*outcome
	t   Transport
	at  sides
	dst *os.Root // of a pull
}

func newExecution(t Transport, s Spec, at sides, tr *tracker) *execution {
	return &execution{outcome: newOutcome(t, s, at, tr), t: t, at: at}
}

func (x *execution) carryOut(ctx context.Context, p *Plan) error {
	var files int64
	for _, a := range p.Actions {
		switch a.Op {
		case Send:
			files++
		case Skip:
			x.skipped(a)
		}
	}
	x.tr.total(files, p.Bytes)
	x.tr.stage("send")
	if err := x.root(ctx); err != nil {
		return err
	}
	if x.dst != nil {
		defer x.dst.Close()
	}
	if err := x.clean(ctx, p.litter); err != nil {
		return err
	}
	bin := x.bin(p.trash)
	if err := bin.makeRoom(ctx, p.Bytes); err != nil {
		return err
	}
	do := x.phases
	if st, streams := optional[Streamer](x.t); streams {
		do = func(ctx context.Context, p *Plan, bin *trashBin) error { return x.flowing(ctx, st, p, bin) }
	}
	if err := do(ctx, p, bin); err != nil {
		return err
	}
	if p.spec.Verify {
		return x.verify(ctx, p.files)
	}
	return nil
}

// phases does one kind of action after the other, over a transport that takes
// lists.
func (x *execution) phases(ctx context.Context, p *Plan, bin *trashBin) error {
	by := map[Op][]Action{}
	for _, a := range p.Actions {
		by[a.Op] = append(by[a.Op], a)
	}
	for _, step := range []func() error{
		func() error { return x.remove(ctx, by[Delete], bin, false) },
		func() error { return x.change(ctx, by[Mkdir], x.did) },
		func() error { return x.send(ctx, by[Send]) },
		func() error { return x.change(ctx, by[Link], x.did) },
		func() error { return x.change(ctx, slices.Concat(by[Attr], narrow(by[Mkdir])), x.did) },
		func() error { return x.remove(ctx, x.removable(p), bin, true) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// root makes the destination's folder and opens it.
func (x *execution) root(ctx context.Context) (err error) {
	if x.s.Direction == Pull {
		if err := os.MkdirAll(x.at.local, 0o755); err != nil {
			return err
		}
		x.dst, err = os.OpenRoot(x.at.local)
		return err
	}
	if !x.at.fresh {
		return nil
	}
	if _, here := x.t.(Local); here {
		return os.MkdirAll(filepath.FromSlash(x.at.remote), 0o755)
	}
	return makeRoot(ctx, x.t, x.at.remote)
}

// makeRoot makes a folder on the instance with those above it.
func makeRoot(ctx context.Context, t Transport, root string) error {
	a := Action{Op: Mkdir, Entry: Entry{Path: strings.TrimPrefix(root, "/"), Mode: fs.ModeDir | 0o755}}
	if a.Entry.Path == "" {
		return nil
	}
	var failed error
	if err := t.Apply(ctx, "/", []Action{a}, func(_ Action, err error) { failed = err }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("making %s on the instance: %w", remote.Clean(root), failed)
	}
	return nil
}

// clean removes what killed runs left behind.
func (x *execution) clean(ctx context.Context, litter []Entry) error {
	var acts []Action
	for _, e := range litter {
		acts = append(acts, Action{Op: Delete, Entry: e})
	}
	return x.change(ctx, acts, func(Action, error) {}) // what stays harms nothing
}

// narrow are the modes of new folders that their owner may not write: set last.
func narrow(mkdirs []Action) []Action {
	var out []Action
	for _, a := range mkdirs {
		if closed(a.Entry) {
			out = append(out, Action{Op: Attr, Entry: a.Entry})
		}
	}
	slices.Reverse(out)
	return out
}

// closed says whether a folder's own owner may not write into it.
func closed(e Entry) bool { return e.Mode.IsDir() && e.Mode.Perm()&0o700 != 0o700 }

// change applies actions at the destination.
func (x *execution) change(ctx context.Context, actions []Action, done func(Action, error)) error {
	if len(actions) == 0 {
		return nil
	}
	if x.dst != nil {
		return applyLocal(ctx, x.dst, actions, done)
	}
	return x.t.Apply(ctx, x.at.remote, actions, done)
}

// send moves the files; those that changed meanwhile are tried once more.
func (x *execution) send(ctx context.Context, acts []Action) error {
	files := make([]Entry, 0, len(acts))
	for _, a := range acts {
		files = append(files, a.Entry)
	}
	again, err := x.move(ctx, files, true)
	if err != nil || len(again) == 0 {
		return err
	}
	if x.s.Direction == Pull { // a push opens and measures anew
		if again, err = x.look(ctx, x.t, x.at.remote, again); err != nil {
			return err
		}
	}
	_, err = x.move(ctx, again, false)
	return err
}

// move sends or fetches; it returns what is worth another try.
func (x *execution) move(ctx context.Context, files []Entry, retry bool) (again []Entry, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	done := func(e Entry, err error) {
		switch {
		case err == nil:
			x.placed(e)
		case retry && (errors.Is(err, ErrChanged) || errors.Is(err, ErrDiffers)):
			again = append(again, e)
		default:
			x.fail(e.Path, err)
		}
	}
	if x.s.Direction == Push {
		err = x.t.Send(ctx, x.at.local, x.at.remote, files, x.tr, done)
	} else {
		err = x.t.Fetch(ctx, x.at.remote, x.at.local, files, x.tr, done)
	}
	return again, err
}

// removable are p's deletes, unless something failed: a tree that is not whole is
// no reason to remove anything.
func (x *execution) removable(p *Plan) []Action {
	if n := x.res.FailedAll; n > 0 && len(p.Deletes) > 0 {
		x.fail(".", fmt.Errorf("%d entries were not deleted, since %d others failed; run it again", len(p.Deletes), n))
		return nil
	}
	return p.Deletes
}

// remove does deletes, through the trash where there is one. listed says that the
// result names them.
func (x *execution) remove(ctx context.Context, acts []Action, bin *trashBin, listed bool) error {
	if len(acts) == 0 {
		return nil
	}
	if err := bin.open(ctx, acts); err != nil {
		return err
	}
	if err := x.change(ctx, bin.instead(acts), x.removed(listed)); err != nil || !listed {
		return err
	}
	return bin.forgetOld(ctx)
}

// removed hears of deletes and of moves into the trash.
func (x *execution) removed(listed bool) func(Action, error) {
	return func(a Action, err error) {
		switch {
		case err != nil:
			x.fail(a.Entry.Path, fmt.Errorf("delete: %w", err))
		case listed && a.Op != Mkdir:
			x.res.Deleted = append(x.res.Deleted, a.Entry.Path)
		}
	}
}
