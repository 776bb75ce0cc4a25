package session

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

	"github.com/bmatcuk/doublestar/v4"

	"rentop/remote/store"
	"rentop/session/config"
	"rentop/sync"
	"rentop/sync/tree"
)

// This file brings what was saved of an instance that is gone, from a folder here, a
// bucket or another instance, to where it was there.

// fate is what becomes of a thing in the way.
type fate int

const (
	refused fate = iota
	stays
	aside
)

// keeping is what one artifact's destination has.
type keeping struct {
	source SavedSource
	path   string // of the folder on the instance, as configured
	match  string // pattern below it; "" takes all
	alone  bool   // the artifact was a file
	place  keeper
	files  []sync.Entry
	// As last compared:
	root   string // on To
	send   []sync.Entry
	aside  []sync.Entry
	stays  map[string]sync.Entry
	differ []Occupied
}

// keeper is a place with saved files, by their path below an artifact's folder.
type keeper interface {
	list(ctx context.Context) ([]sync.Entry, error)
	// hash completes the SHA-256 of files.
	hash(ctx context.Context, paths []string) (map[string]string, error)
	// bring sends files to root on to; done has each one's SHA-256 as it is there.
	bring(ctx context.Context, to *Session, t sync.Transport, root string, files []sync.Entry, p *meter, done func(sync.Entry, error)) error
	close()
}

// findKept looks at all destinations of From's artifacts, and without a snapshot at the
// folders of sync here. One that has nothing, or cannot be looked at, is named.
func (m *mover) findKept(ctx context.Context) error {
	m.kept = nil
	missing := &m.out.Plan.Missing
	for _, a := range m.a.cfg().Artifacts {
		k := &keeping{source: SavedSource{What: "artifacts", From: a.To}, path: path.Clean(a.Path)}
		if base, pattern := doublestar.SplitPattern(k.path); strings.ContainsAny(pattern, "*?[{") {
			k.path, k.match = base, pattern
		}
		err := m.openKept(ctx, k, a)
		if err == nil {
			err = m.compareKept(ctx, k)
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			*missing = append(*missing, fmt.Sprintf("%s, from %s: %v", a.Path, a.To, err))
			continue
		}
		m.kept = append(m.kept, k)
	}
	if m.out.Plan.Saved != nil {
		return nil
	}
	for _, pair := range m.a.cfg().Sync {
		k := &keeping{source: SavedSource{What: "sync", From: pair.Local}, path: pair.Remote, place: syncKept{m.b, pair}}
		if err := m.compareKept(ctx, k); err != nil {
			*missing = append(*missing, fmt.Sprintf("%s, from %s: %v", pair.Remote, pair.Local, err))
			continue
		}
		m.kept = append(m.kept, k)
	}
	return nil
}

func (m *mover) openKept(ctx context.Context, k *keeping, a config.Artifact) error {
	switch {
	case store.IsURL(a.To):
		c, err := m.b.bucket(a.To) // as To sees it
		if err != nil {
			return err
		}
		k.place = &bucketKept{c: c}
	case config.Elsewhere(a.To):
		name, dir, _ := strings.Cut(a.To, ":")
		other, err := m.f.Session(name)
		if err != nil {
			return err
		}
		k.place = &instanceKept{from: other, dir: dir}
	default:
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		to := filepath.FromSlash(expandHome(a.To))
		if !filepath.IsAbs(to) {
			to = filepath.Join(home, to)
		}
		only, as := "", path.Base(k.path)
		if st, err := os.Stat(to); err == nil && st.Mode().IsRegular() { // one file, under a name of its own
			to, only = filepath.Dir(to), filepath.Base(to)
		}
		k.place = localKept{to, only, as}
	}
	return nil
}

// compareKept lists what is saved and looks at what is on To.
func (m *mover) compareKept(ctx context.Context, k *keeping) error {
	list, err := k.place.list(ctx)
	if err != nil {
		return err
	}
	k.files = nil
	for _, e := range list {
		ok := e.Mode.IsRegular() && !tree.OursIn(e.Path) && e.Path != store.ManifestName && tree.CheckPath(e.Path) == nil
		if ok && k.match != "" {
			ok, _ = doublestar.Match(k.match, e.Path)
		}
		if ok {
			k.files = append(k.files, e)
		}
	}
	where := k.path
	if k.match == "" && slices.ContainsFunc(k.files, func(e sync.Entry) bool { return e.Path == path.Base(k.path) }) {
		where, k.alone = path.Dir(where), true
		k.files = slices.DeleteFunc(k.files, func(e sync.Entry) bool { return e.Path != path.Base(k.path) })
	}
	k.source.Files = len(k.files)
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if k.root, _, err = t.Resolve(ctx, where); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return m.sortKept(ctx, t, k)
}

// sortKept decides for each file what becomes of it and of what is there.
func (m *mover) sortKept(ctx context.Context, t sync.Transport, k *keeping) error {
	k.send, k.aside, k.differ, k.stays, k.source.Bytes = nil, nil, nil, map[string]sync.Entry{}, 0
	have, err := m.haveOf(ctx, t, k)
	if err != nil {
		return err
	}
	for _, e := range k.files {
		if e.ModTime.After(k.source.Newest) {
			k.source.Newest = e.ModTime
		}
		now, there := have[e.Path]
		what := aside
		if there {
			if now.SHA256 != "" && now.SHA256 == e.SHA256 {
				continue
			}
			what = m.inTheWay(path.Join(k.root, e.Path), now, e)
		}
		switch {
		case what == stays:
			k.stays[e.Path] = now
			continue
		case what == refused:
			k.differ = append(k.differ, Occupied{path.Join(k.root, e.Path), "its content differs"})
			continue
		case there:
			k.aside = append(k.aside, now)
		}
		k.send = append(k.send, e)
		k.source.Bytes += e.Size
	}
	return nil
}

// haveOf is what is on To at the paths of k, files of equal size with their SHA-256; that
// of the saved one is asked for then, too.
func (m *mover) haveOf(ctx context.Context, t sync.Transport, k *keeping) (map[string]sync.Entry, error) {
	paths, at := make([]string, len(k.files)), map[string]int{}
	for i, e := range k.files {
		paths[i], at[e.Path] = e.Path, i
	}
	have := map[string]sync.Entry{}
	err := t.Stat(ctx, k.root, paths, func(e sync.Entry) error { have[e.Path] = e; return nil })
	if errors.Is(err, fs.ErrNotExist) {
		return have, nil
	}
	if err != nil {
		return nil, err
	}
	var same, ask []string
	for _, p := range paths {
		if e, there := have[p]; there && e.Mode.IsRegular() && e.Size == k.files[at[p]].Size {
			if same = append(same, p); k.files[at[p]].SHA256 == "" {
				ask = append(ask, p)
			}
		}
	}
	sums, err := hashes(ctx, t, k.root, same, nil)
	if err != nil {
		return nil, err
	}
	for p, sum := range sums {
		e := have[p]
		e.SHA256 = sum
		have[p] = e
	}
	if sums, err = k.place.hash(ctx, ask); err != nil {
		return nil, err
	}
	for p, sum := range sums {
		k.files[at[p]].SHA256 = sum
	}
	return have, nil
}

// bringKept brings what is missing. It may be cut and go on.
func (m *mover) bringKept(ctx context.Context, k *keeping) error {
	p := newMeter(m.report, m.f.opt.Now)
	return m.b.again(ctx, func() error {
		t, err := m.b.openTransport(ctx)
		if err != nil {
			return err
		}
		defer t.Close()
		defer hangUpWith(ctx, t)()
		return orCut(t, m.bringOnce(ctx, t, k, p))
	})
}

func (m *mover) bringOnce(ctx context.Context, t sync.Transport, k *keeping, p *meter) error {
	if err := m.sortKept(ctx, t, k); err != nil { // a snapshot may have come to it, or a cut
		return err
	}
	if len(k.differ) > 0 && !m.spec.Skip {
		return &OccupiedError{m.b.cfg().Name, k.differ, true}
	}
	if len(k.send) == 0 {
		return nil
	}
	trash, err := sync.Aside(ctx, t, k.root, k.aside, m.f.opt.Now())
	if trash != "" {
		m.out.Trash = append(m.out.Trash, path.Join(k.root, trash))
	}
	if err == nil {
		err = sync.MakeFolders(ctx, t, k.root, foldersOf(k.send))
	}
	if err != nil {
		return err
	}
	p.begin("send", len(k.send), k.source.Bytes)
	var failed error
	err = k.place.bring(ctx, m.b, t, k.root, k.send, p, func(e sync.Entry, err error) {
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", path.Join(k.root, e.Path), err))
			return
		}
		m.out.Files++
		m.out.Proven++
		m.out.Bytes += e.Size
		p.counted(0)
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("%w. Mend that and run it again: only what is missing is sent", failed)
	}
	return err
}

func (m *mover) closeKept() {
	for _, k := range m.kept {
		k.place.close()
	}
}

// foldersOf are the folders that files lie in, from outermost.
func foldersOf(files []sync.Entry) []sync.Entry {
	seen := map[string]bool{}
	var out []sync.Entry
	for _, f := range files {
		for d := path.Dir(f.Path); d != "." && !seen[d]; d = path.Dir(d) {
			seen[d] = true
			out = append(out, sync.Entry{Path: d, Mode: fs.ModeDir | 0o755})
		}
	}
	return out
}
