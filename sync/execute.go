package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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
	x := &execution{t: t, p: p, tr: newTracker(t, p.spec.now, report)}
	x.res.Transport, _ = t.Name()
	x.res.Unchanged = p.Unchanged
	start := p.spec.now()
	err := x.run(ctx)
	x.tr.stage("done")
	x.tr.stop()
	x.res.Wire, x.res.Kept, x.res.Reused = x.tr.wire.Load(), x.tr.kept.Load(), x.tr.reused.Load()
	x.res.Took = p.spec.now().Sub(start) + p.took
	slices.SortFunc(x.res.Sent, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	if rerr := x.remember(); err == nil {
		err = rerr
	}
	return &x.res, err
}

type execution struct {
	t   Transport
	p   *Plan
	tr  *tracker
	res Result
	dst *os.Root // of a pull
}

func (x *execution) fail(p string, err error) {
	x.res.Failed = append(x.res.Failed, Failure{Path: p, Err: err})
	x.tr.failed.Add(1)
}

func (x *execution) run(ctx context.Context) error {
	by := map[Op][]Action{}
	var files int64
	for _, a := range x.p.Actions {
		by[a.Op] = append(by[a.Op], a)
		if a.Op == Send {
			files++
		}
		if a.Op == Skip {
			x.fail(a.Entry.Path, errors.New(a.Why))
		}
	}
	x.tr.total(files, x.p.Bytes)
	x.tr.stage("send")
	if err := x.root(ctx); err != nil {
		return err
	}
	if x.dst != nil {
		defer x.dst.Close()
	}
	if err := x.clean(ctx); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return x.apply(ctx, by[Delete]) },
		func() error { return x.apply(ctx, by[Mkdir]) },
		func() error { return x.send(ctx, by[Send]) },
		func() error { return x.apply(ctx, by[Link]) },
		func() error { return x.apply(ctx, slices.Concat(by[Attr], narrow(by[Mkdir]))) },
		func() error { return x.deletes(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if x.p.spec.Verify {
		return x.verify(ctx)
	}
	return nil
}

// root makes the destination's folder and opens it.
func (x *execution) root(ctx context.Context) (err error) {
	if x.p.spec.Direction == Pull {
		if err := os.MkdirAll(x.p.local, 0o755); err != nil {
			return err
		}
		x.dst, err = os.OpenRoot(x.p.local)
		return err
	}
	if !x.p.newRoot {
		return nil
	}
	if _, here := x.t.(Local); here {
		return os.MkdirAll(filepath.FromSlash(x.p.remote), 0o755)
	}
	a := Action{Op: Mkdir, Entry: Entry{Path: strings.TrimPrefix(x.p.remote, "/"), Mode: fs.ModeDir | 0o755}}
	if a.Entry.Path == "" {
		return nil
	}
	var failed error
	if err := x.t.Apply(ctx, "/", []Action{a}, func(_ Action, err error) { failed = err }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("making %s on the instance: %w", remote.Clean(x.p.remote), failed)
	}
	return nil
}

// clean removes what killed runs left behind.
func (x *execution) clean(ctx context.Context) error {
	var acts []Action
	for _, e := range x.p.litter {
		acts = append(acts, Action{Op: Delete, Entry: e})
	}
	return x.change(ctx, acts, func(Action, error) {}) // what stays harms nothing
}

// narrow are the modes of new folders that their owner may not write: set last.
func narrow(mkdirs []Action) []Action {
	var out []Action
	for _, a := range mkdirs {
		if a.Entry.Mode.Perm()&0o700 != 0o700 {
			out = append(out, Action{Op: Attr, Entry: a.Entry})
		}
	}
	slices.Reverse(out)
	return out
}

// change applies actions at the destination.
func (x *execution) change(ctx context.Context, actions []Action, done func(Action, error)) error {
	if len(actions) == 0 {
		return nil
	}
	if x.dst != nil {
		return applyLocal(ctx, x.dst, actions, done)
	}
	return x.t.Apply(ctx, x.p.remote, actions, done)
}

func (x *execution) apply(ctx context.Context, actions []Action) error {
	return x.change(ctx, actions, func(a Action, err error) {
		if err != nil {
			x.fail(a.Entry.Path, fmt.Errorf("%s: %w", a.Op, err))
		}
	})
}

// send moves the files; those that changed meanwhile are tried once more.
func (x *execution) send(ctx context.Context, acts []Action) error {
	files := make([]Entry, 0, len(acts))
	for _, a := range acts {
		e := a.Entry
		if there, ok := x.p.changed[e.Path]; ok && x.noModes() {
			e.Mode = there.Mode // keep the executable bit that Windows cannot know (mutagen#35)
		} else if x.noModes() {
			e.Mode = 0o644
		}
		files = append(files, e)
	}
	again, err := x.move(ctx, files, true)
	if err != nil || len(again) == 0 {
		return err
	}
	if again, err = x.look(ctx, again); err != nil {
		return err
	}
	_, err = x.move(ctx, again, false)
	return err
}

func (x *execution) noModes() bool { return filepath.Separator == '\\' }

// move sends or fetches; it returns what is worth another try.
func (x *execution) move(ctx context.Context, files []Entry, retry bool) (again []Entry, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	done := func(e Entry, err error) {
		switch {
		case err == nil:
			x.res.Sent = append(x.res.Sent, e)
			x.res.Bytes += e.Size
			x.tr.files.Add(1)
		case retry && (errors.Is(err, ErrChanged) || errors.Is(err, ErrDiffers)):
			again = append(again, e)
		default:
			x.fail(e.Path, err)
		}
	}
	if x.p.spec.Direction == Push {
		err = x.t.Send(ctx, x.p.local, x.p.remote, files, x.tr, done)
	} else {
		err = x.t.Fetch(ctx, x.p.remote, x.p.local, files, x.tr, done)
	}
	return again, err
}

// look reads the state of changed sources again.
func (x *execution) look(ctx context.Context, files []Entry) ([]Entry, error) {
	if x.p.spec.Direction == Push {
		return files, nil // opened and measured anew when sent
	}
	byPath := map[string]Entry{}
	var paths []string
	for _, e := range files {
		byPath[e.Source()] = e
		paths = append(paths, e.Source())
	}
	var out []Entry
	err := x.t.Stat(ctx, x.p.remote, paths, func(now Entry) error {
		if e, ok := byPath[now.Path]; ok && now.Mode.IsRegular() {
			e.Size, e.ModTime, e.Mode = now.Size, now.ModTime, now.Mode
			out = append(out, e)
			delete(byPath, now.Path)
		}
		return nil
	})
	for _, e := range byPath {
		x.fail(e.Path, fmt.Errorf("gone by now: %w", ErrChanged))
	}
	return out, err
}

// deletes does --delete, unless something failed: a tree that is not whole is
// no reason to remove anything.
func (x *execution) deletes(ctx context.Context) error {
	if len(x.p.Deletes) == 0 {
		return nil
	}
	if n := len(x.res.Failed); n > 0 {
		x.fail(".", fmt.Errorf("%d entries were not deleted, since %d others failed; run it again", len(x.p.Deletes), n))
		return nil
	}
	return x.change(ctx, x.p.Deletes, func(a Action, err error) {
		if err != nil {
			x.fail(a.Entry.Path, fmt.Errorf("delete: %w", err))
		} else {
			x.res.Deleted = append(x.res.Deleted, a.Entry.Path)
		}
	})
}

// remember tells the record what is on both sides now.
func (x *execution) remember() error {
	if x.p.spec.Record == nil || len(x.res.Sent) == 0 {
		return nil
	}
	now := x.p.spec.now()
	rows := make([]Recorded, 0, len(x.res.Sent))
	for _, e := range x.res.Sent {
		far, near := e.Path, e.Source()
		if x.p.spec.Direction == Pull {
			far, near = e.Source(), e.Path
		}
		rows = append(rows, Recorded{Remote: path.Join(x.p.remote, far), Local: filepath.Join(x.p.local, filepath.FromSlash(near)),
			Size: e.Size, ModTime: e.ModTime, SHA256: e.SHA256, At: now})
	}
	return x.p.spec.Record.Add(rows)
}
