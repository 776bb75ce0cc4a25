package session

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"rentop/remote/store"
	"rentop/session/config"
	"rentop/sync"
)

// This file has the places that saved files are brought from.

// localKept is a folder here, or one file of it, which was called as there.
type localKept struct{ dir, only, as string }

func (l localKept) close() {}

func (l localKept) list(ctx context.Context) (out []sync.Entry, err error) {
	add := func(e sync.Entry) error {
		if l.only != "" {
			e.Path, e.From = l.as, l.only
		}
		out = append(out, e)
		return nil
	}
	if l.only != "" {
		return out, sync.Local{}.Stat(ctx, filepath.ToSlash(l.dir), []string{l.only}, add)
	}
	return out, sync.Local{}.List(ctx, filepath.ToSlash(l.dir), add)
}

func (l localKept) hash(ctx context.Context, paths []string) (map[string]string, error) {
	if l.only == "" || len(paths) == 0 {
		return hashes(ctx, sync.Local{}, filepath.ToSlash(l.dir), paths, nil)
	}
	sums, err := hashes(ctx, sync.Local{}, filepath.ToSlash(l.dir), []string{l.only}, nil)
	return map[string]string{l.as: sums[l.only]}, err
}

func (l localKept) bring(ctx context.Context, _ *Session, t sync.Transport, root string, files []sync.Entry, p *meter, done func(sync.Entry, error)) error {
	return t.Send(ctx, filepath.ToSlash(l.dir), root, files, p, done)
}

// syncKept is a folder of sync here, without what its rules leave out.
type syncKept struct {
	to   *Session
	pair config.Pair
}

func (s syncKept) dir() string {
	dir, err := filepath.Abs(expandHome(s.pair.Local))
	if err != nil {
		return s.pair.Local
	}
	return dir
}

func (s syncKept) close() {}

// list is what a push would send there: what is there as it is here is not missing.
func (s syncKept) list(ctx context.Context) ([]sync.Entry, error) {
	st, err := os.Stat(s.dir())
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, errors.New("it is no folder")
	}
	plan, err := s.to.PlanTransfer(ctx, TransferSpec{Direction: sync.Push, Local: s.pair.Local, Remote: s.pair.Remote, Checksum: true})
	if err != nil {
		return nil, err
	}
	return sent(plan), nil
}

func (s syncKept) hash(ctx context.Context, paths []string) (map[string]string, error) {
	return localKept{dir: s.dir()}.hash(ctx, paths)
}

func (s syncKept) bring(ctx context.Context, to *Session, t sync.Transport, root string, files []sync.Entry, p *meter, done func(sync.Entry, error)) error {
	return localKept{dir: s.dir()}.bring(ctx, to, t, root, files, p, done)
}

// bucketKept is a prefix of a bucket. The instance gets its bytes without this computer.
type bucketKept struct {
	c  *store.Client
	by map[string]store.Stored
}

func (b *bucketKept) close() { b.c.Close() }

func (b *bucketKept) list(ctx context.Context) ([]sync.Entry, error) {
	list, err := b.c.Stored(ctx)
	if err != nil {
		return nil, err
	}
	b.by = map[string]store.Stored{}
	out := make([]sync.Entry, len(list))
	for i, o := range list {
		b.by[o.Rel] = o
		out[i] = sync.Entry{Path: o.Rel, Size: o.Size, Mode: 0o644, ModTime: o.ModTime, SHA256: o.SHA256}
	}
	return out, nil
}

// hash knows no more than the list does: what has none is brought.
func (b *bucketKept) hash(context.Context, []string) (map[string]string, error) { return nil, nil }

func (b *bucketKept) bring(ctx context.Context, to *Session, _ sync.Transport, root string, files []sync.Entry, p *meter, done func(sync.Entry, error)) error {
	want, by := make([]store.Wanted, len(files)), map[string]sync.Entry{}
	for i, e := range files {
		want[i], by[e.Path] = store.Wanted{Stored: b.by[e.Path], Path: path.Join(root, e.Path)}, e
	}
	return b.c.Fetch(ctx, reachable{to}, want, p.Content, func(w store.Wanted, err error) { done(by[w.Rel], err) })
}

// instanceKept is a folder on another instance.
type instanceKept struct {
	from *Session
	dir  string
}

func (i *instanceKept) close() {}

// open is a transport to it and its folder there.
func (i *instanceKept) open(ctx context.Context) (sync.Transport, string, error) {
	t, err := i.from.openPlain(ctx)
	if err != nil {
		return nil, "", err
	}
	dir, _, err := t.Resolve(ctx, i.dir)
	if err != nil {
		t.Close()
		return nil, "", err
	}
	return t, dir, nil
}

func (i *instanceKept) list(ctx context.Context) (out []sync.Entry, err error) {
	t, dir, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return out, t.List(ctx, dir, func(e sync.Entry) error { out = append(out, e); return nil })
}

func (i *instanceKept) hash(ctx context.Context, paths []string) (map[string]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	t, dir, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return hashes(ctx, t, dir, paths, nil)
}

// bring copies through this machine's memory; a copy proves what it brings.
func (i *instanceKept) bring(ctx context.Context, to *Session, _ sync.Transport, root string, files []sync.Entry, _ *meter, done func(sync.Entry, error)) error {
	want := map[string]bool{}
	for _, e := range files {
		want[e.Path] = true
	}
	c := CopySpec{From: i.from, To: to, FromPath: i.dir, ToPath: root, Checksum: true}
	res, err := to.f.Copy(ctx, c, func(plan *sync.Plan) error {
		*plan = *only(plan, want, false)
		return nil
	}, nil)
	if err != nil {
		return err
	}
	failed := map[string]error{}
	for _, f := range res.Failed {
		failed[f.Path] = f.Err
	}
	for _, e := range files {
		done(e, failed[e.Path])
	}
	return nil
}
