package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/release"
	"rentop/sync"
	"rentop/sync/tree"
)

// This file moves what was saved of an instance that cannot be reached any more: what
// this move had carried stays; its newest portable snapshot and then its artifacts, from
// where they were saved, come to it. Of two versions the newer one counts.

// SavedSource is a place that files come from where the instance itself is gone.
type SavedSource struct {
	What   string    // "snapshot", "artifacts", "sync"
	From   string    // the snapshot's name, the destination, the folder here
	Files  int       // that are saved there
	Bytes  int64     // to bring; of a snapshot all
	Newest time.Time // of its files, or when the snapshot was taken; zero where there are none
}

// everywhere is where a snapshot's files come to lie.
const everywhere = "/"

// planSaved looks for what there is of From. away is why that cannot be asked.
func (m *mover) planSaved(ctx context.Context, away error) error {
	if len(m.spec.Paths) > 0 {
		return fmt.Errorf("%w. --path chooses among the files there; without it what was saved of it is taken", away)
	}
	p := &m.out.Plan
	p.Away, p.JobEnded = true, m.log.did[moveStopped]
	p.EnvErr = fmt.Errorf("%s cannot be asked", m.a.Name()) // until a snapshot tells it
	if err := m.readSeen(); err != nil {
		return err
	}
	if m.whole() { // every file is there, and proven: nothing is missing
		p.Paths = m.log.data.Paths
		return nil
	}
	if err := m.savedSnapshot(ctx); err != nil {
		return err
	}
	if err := m.findKept(ctx); err != nil {
		return err
	}
	for _, k := range m.kept {
		if len(k.files) > 0 {
			p.Sources = append(p.Sources, k.source)
			p.Files += int64(len(k.send))
			p.Bytes += k.source.Bytes
			p.Differ = append(p.Differ, k.differ...)
		}
	}
	if len(p.Sources) == 0 && len(m.seen) == 0 {
		return fmt.Errorf("%w. Nothing of it is saved either: no portable snapshot is here, and no artifacts are at their destinations", away)
	}
	if len(p.Differ) > 0 && !m.spec.Overwrite && !m.spec.Skip {
		return &OccupiedError{m.b.cfg().Name, p.Differ, true}
	}
	return m.count(ctx, p)
}

// whole says whether an earlier rentop proved all of it, from From itself.
func (m *mover) whole() bool { return m.log.did[moveProven] && !m.log.data.Saved }

// savedSnapshot takes From's newest portable snapshot, never that of another instance
// that had its name.
func (m *mover) savedSnapshot(ctx context.Context) error {
	list, err := m.f.Snapshots(ctx, m.a.Name())
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Portable == nil || s.Portable.UID != "" && s.Portable.UID != m.a.uid {
			continue
		}
		p := &m.out.Plan
		p.Saved, p.Files, p.Bytes = &s, int64(s.Portable.Files), s.Portable.Bytes
		p.Sources = append(p.Sources, SavedSource{What: "snapshot", From: s.ID, Files: s.Portable.Files, Bytes: s.Portable.Bytes, Newest: s.At})
		return nil
	}
	return nil
}

// inTheWay says what becomes of a thing there that differs from what comes. What is this
// move's own is decided by time, and nothing of it is lost.
func (m *mover) inTheWay(full string, now, comes sync.Entry) fate {
	switch {
	case slices.Contains(m.log.data.Skipped, full):
		return stays
	case now.Mode.IsDir():
		return refused
	case m.mine(full) && now.ModTime.After(comes.ModTime) && !tree.SameTime(now.ModTime, comes.ModTime):
		return stays
	case m.mine(full) || m.spec.Overwrite:
		return aside
	case m.spec.Skip:
		m.log.data.Skipped = append(m.log.data.Skipped, full)
		return stays
	}
	return refused
}

// mine says whether what is there came with this move: its places were looked at before
// its first file.
func (m *mover) mine(full string) bool {
	return m.log.under && slices.ContainsFunc(m.log.data.Mine, func(root string) bool { return root == everywhere || tree.Under(full, root) })
}

// carrySaved brings what was saved to To. What From wrote after it is not in it.
func (m *mover) carrySaved(ctx context.Context) error {
	p := &m.out.Plan
	if !m.whole() {
		m.log.data.Saved = true
		m.stage(MoveCarries)
		if p.Saved != nil {
			if err := m.restoreSaved(ctx); err != nil {
				return err
			}
		}
		for _, k := range m.kept {
			if err := m.own(ctx, k.root); err != nil {
				return err
			}
			if err := m.bringKept(ctx, k); err != nil {
				return fmt.Errorf("bring what is saved in %s: %w", remote.Short(k.source.From, 120), err)
			}
		}
		if err := m.count(ctx, p); err != nil {
			return err
		}
	}
	if err := m.listSaved(ctx); err != nil {
		return err
	}
	return m.note(ctx, moveProven)
}

// own writes down that what is below root comes with this move from now on.
func (m *mover) own(ctx context.Context, root string) error {
	if m.mine(root) || slices.Contains(m.log.data.Mine, root) {
		return nil
	}
	m.log.data.Mine = append(slices.Clone(m.log.data.Mine), root)
	return m.note(ctx, moveBringing)
}

// ownCarried does so for what is carried from an instance that answers again.
func (m *mover) ownCarried(ctx context.Context) error {
	for _, root := range placesOf(m.log.data.Paths) {
		if err := m.own(ctx, root); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) restoreSaved(ctx context.Context) error {
	s := m.out.Plan.Saved
	spec := RestoreSpec{Snapshot: s.Portable.File, Overwrite: m.spec.Overwrite, Skip: m.spec.Skip, fate: m.inTheWay}
	got, err := m.b.Restore(ctx, spec, func(RestorePlan) error { return m.own(ctx, everywhere) }, m.report)
	m.out.Files, m.out.Bytes, m.out.Proven, m.out.Trash = int64(got.Files), got.Bytes, int64(got.Proven), got.Trash
	if err != nil {
		return err
	}
	m.out.Plan.Env, m.out.Plan.EnvErr = got.Env, got.EnvErr
	m.files = got.files
	home := got.Plan.Snapshot.Portable.Home
	if home == "" || slices.ContainsFunc(m.log.data.Paths, func(mp MovePath) bool { return mp.From == home }) {
		return nil
	}
	there, err := remote.Output(ctx, m.b, `printf '%s' "$HOME"`)
	if err != nil {
		return err
	}
	m.log.data.Paths = append(slices.Clone(m.log.data.Paths), MovePath{home, string(there)})
	return nil
}

// listSaved remembers all that is there now for the search of checkpoints: also what the
// move had carried before From was gone.
func (m *mover) listSaved(ctx context.Context) error {
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	have := map[string]bool{}
	for _, f := range m.files {
		have[f.Path] = true
	}
	roots := map[string]bool{everywhere: true} // the restore listed what it proved
	for _, k := range m.kept {
		roots[k.root] = k.alone // its folder may be the home
		for _, e := range k.files {
			if now, there := k.stays[e.Path]; there {
				e = now
			}
			if full := path.Join(k.root, e.Path); !have[full] {
				have[full] = true
				m.files = append(m.files, moveFile{k.root, release.Found{Path: full, Rel: e.Path, Size: e.Size, ModTime: e.ModTime}})
			}
		}
	}
	for _, root := range m.log.data.Mine {
		if roots[root] {
			continue
		}
		err := t.List(ctx, root, func(e sync.Entry) error {
			if full := path.Join(root, e.Path); e.Mode.IsRegular() && !tree.OursIn(e.Path) && !have[full] {
				have[full] = true
				m.files = append(m.files, moveFile{root, release.Found{Path: full, Rel: e.Path, Size: e.Size, ModTime: e.ModTime}})
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("list %s: %w", remote.Short(root, 120), err)
		}
	}
	return nil
}

// usualHome is the home of a login on most instances: of one that is gone it cannot be asked.
func usualHome(dir string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(dir, "/root"); ok && (rest == "" || rest[0] == '/') {
		return rest, true
	}
	if below, ok := strings.CutPrefix(dir, "/home/"); ok {
		_, rest, deep := strings.Cut(below, "/")
		if deep {
			rest = "/" + rest
		}
		return rest, true
	}
	return "", false
}
