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

// This file copies from one instance to another through this machine's memory,
// never its disk: what one sends is what the other gets, and the two compare
// SHA-256. relay.go moves the contents.

// Between is the direction of a copy from one instance to another.
const Between Direction = "copy"

// CopySpec is a copy as a person asks for it. Paths are as in Spec: the contents of
// a folder go into the folder, a file goes to the file, or into the folder. Nothing
// is deleted, and no rule leaves anything out.
type CopySpec struct {
	From, To string
	Checksum bool // decide by SHA-256, not by size and time
}

// PlanCopy lists both sides and compares them. It changes nothing.
func PlanCopy(ctx context.Context, from, to Transport, s CopySpec, report func(Progress)) (*Plan, error) {
	spec := Spec{Direction: Between, Checksum: s.Checksum}
	tr := newTracker(to, spec.now, report)
	defer tr.stop()
	tr.stage("scan")
	start := spec.now()
	p, err := (&copyPlanner{from: from, to: to, s: s, tr: tr}).plan(ctx)
	if err != nil {
		return nil, err
	}
	p.spec, p.took = spec, spec.now().Sub(start)
	return p, nil
}

type copyPlanner struct {
	from, to Transport
	s        CopySpec
	tr       *tracker
	partly   *ListError // what of the source could not be listed
}

func (c *copyPlanner) plan(ctx context.Context) (*Plan, error) {
	src, what, err := c.from.Resolve(ctx, c.s.From)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is not there on the instance", ErrUsage, remote.Clean(src))
	}
	if err != nil {
		return nil, err
	}
	dst, there, err := c.to.Resolve(ctx, c.s.To)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	var list []Entry
	switch {
	case what.Mode.IsRegular():
		list, src, dst, err = c.oneFile(ctx, src, what, dst, there, missing)
		if missing = missing && err == nil; missing || there.Mode.IsRegular() {
			_, _, serr := c.to.Resolve(ctx, dst)
			missing = errors.Is(serr, fs.ErrNotExist)
		}
	case !what.Mode.IsDir():
		err = fmt.Errorf("%w: %s on the instance is a %s", ErrUsage, remote.Clean(src), tree.TypeName(what.Mode))
	case !missing && !there.Mode.IsDir():
		err = fmt.Errorf("%w: %s is a folder, but %s on the other instance is a %s", ErrUsage, remote.Clean(src), remote.Clean(dst), tree.TypeName(there.Mode))
	default:
		list, err = c.list(ctx, c.from, src)
	}
	if err != nil {
		return nil, err
	}
	var skips []Action
	if c.partly != nil {
		for _, f := range c.partly.Problems {
			skips = append(skips, Action{Op: Skip, Entry: Entry{Path: f.Path}, Why: f.Err.Error()})
		}
	}
	var have []Entry
	if !missing {
		paths := make([]string, len(list))
		for i, e := range list {
			paths[i] = e.Path
		}
		if err := c.to.Stat(ctx, dst, paths, func(e Entry) error { have = append(have, e); return nil }); err != nil {
			return nil, err
		}
	}
	if c.s.Checksum {
		if err := c.checksums(ctx, src, dst, list, have); err != nil {
			return nil, err
		}
	}
	c.tr.stage("plan")
	p := Compare(list, have, Options{Checksum: c.s.Checksum})
	p.Actions = append(p.Actions, skips...)
	p.local, p.remote, p.newRoot = src, dst, missing
	return p, nil
}

// oneFile is a file that was named itself. A symlink is what it points to.
func (c *copyPlanner) oneFile(ctx context.Context, src string, what Entry, dst string, there Entry, missing bool) (list []Entry, srcDir, dstDir string, err error) {
	real := src
	if what.Target != "" {
		real = what.Target
	}
	name := path.Base(src)
	if missing && !strings.HasSuffix(c.s.To, "/") || !missing && !there.Mode.IsDir() {
		name, dst = path.Base(dst), path.Dir(dst)
	}
	err = c.from.Stat(ctx, path.Dir(real), []string{path.Base(real)}, func(e Entry) error { list = append(list, e); return nil })
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%w: %s is gone from the instance", ErrUsage, remote.Clean(real))
	}
	if err != nil {
		return nil, "", "", err
	}
	list[0].Path, list[0].From = name, path.Base(real)
	return list, path.Dir(real), dst, nil
}

func (c *copyPlanner) list(ctx context.Context, t Transport, root string) ([]Entry, error) {
	var list []Entry
	err := t.List(ctx, root, func(e Entry) error {
		if !tree.OursIn(e.Path) {
			list = append(list, e)
			c.tr.scanned(1)
		}
		return nil
	})
	if errors.As(err, &c.partly) {
		err = nil
	}
	return list, err
}

// checksums fills SHA256 on both sides for files of equal size.
func (c *copyPlanner) checksums(ctx context.Context, src, dst string, list, have []Entry) error {
	at := map[string]int{}
	for i, e := range have {
		at[e.Path] = i
	}
	var a, b []*Entry
	var pa, pb []string
	for i := range list {
		j, ok := at[list[i].Path]
		if e := &list[i]; ok && e.Mode.IsRegular() && have[j].Mode.IsRegular() && e.Size == have[j].Size {
			a, b = append(a, e), append(b, &have[j])
			pa, pb = append(pa, e.Source()), append(pb, e.Path)
		}
	}
	n := 0
	if err := c.from.Hash(ctx, src, pa, func(_, sum string, _ error) { a[n].SHA256 = sum; n++ }); err != nil {
		return err
	}
	n = 0
	return c.to.Hash(ctx, dst, pb, func(_, sum string, _ error) { b[n].SHA256 = sum; n++ })
}

// Copy carries out a plan of PlanCopy. What fails for one path is listed and the
// rest goes on; the error is for what ended the whole, with the result so far.
func Copy(ctx context.Context, from, to Transport, p *Plan, report func(Progress)) (*Result, error) {
	at := sides{local: p.local, remote: p.remote, fresh: p.newRoot}
	x := &copying{outcome: newOutcome(to, p.spec, at, newTracker(to, p.spec.now, report)), from: from, to: to, p: p}
	x.res.Unchanged = p.Unchanged
	if a, _ := from.Name(); a != x.res.Transport {
		x.res.Transport = a + " → " + x.res.Transport
	}
	start := p.spec.now()
	err := x.run(ctx)
	return x.end(p.spec.now().Sub(start)+p.took, err)
}

type copying struct {
	*outcome
	from, to Transport
	p        *Plan
}

func (x *copying) run(ctx context.Context) error {
	by := map[Op][]Action{}
	var files []Entry
	for _, a := range x.p.Actions {
		by[a.Op] = append(by[a.Op], a)
		switch a.Op {
		case Send:
			files = append(files, a.Entry)
		case Skip:
			x.skipped(a)
		}
	}
	x.tr.total(int64(len(files)), x.p.Bytes)
	x.tr.stage("send")
	if x.p.newRoot {
		if err := makeRoot(ctx, x.to, x.p.remote); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return x.apply(ctx, slices.Concat(by[Delete], by[Mkdir])) }, // Delete: what is replaced by another kind
		func() error { return x.move(ctx, files) },
		func() error { return x.apply(ctx, slices.Concat(by[Link], by[Attr], narrow(by[Mkdir]))) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (x *copying) apply(ctx context.Context, actions []Action) error {
	if len(actions) == 0 {
		return nil
	}
	return x.to.Apply(ctx, x.p.remote, actions, x.did)
}

// move relays the files; those that changed meanwhile are tried once more.
func (x *copying) move(ctx context.Context, files []Entry) error {
	again, err := x.relay(ctx, files, true)
	if err != nil || len(again) == 0 {
		return err
	}
	if again, err = x.look(ctx, x.from, x.p.local, again); err != nil {
		return err
	}
	_, err = x.relay(ctx, again, false)
	return err
}

func (x *copying) relay(ctx context.Context, files []Entry, retry bool) (again []Entry, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	err = relay(ctx, x.from, x.to, x.p.local, x.p.remote, files, x.tr, func(e Entry, err error) {
		switch {
		case err == nil:
			x.placed(e)
		case retry && (errors.Is(err, ErrChanged) || errors.Is(err, ErrDiffers)):
			again = append(again, e)
		default:
			x.fail(e.Path, err)
		}
	})
	return again, err
}
