package session

import (
	"context"
	"fmt"

	"rentop/remote"
)

// This file moves what was saved of an instance that cannot be reached any more: its
// newest portable snapshot, as a restore puts it there.

// planSaved looks for what there is of From.
func (m *mover) planSaved(ctx context.Context, away error) error {
	if len(m.spec.Paths) > 0 {
		return fmt.Errorf("%w. --path chooses among the files there; without it its newest snapshot is taken", away)
	}
	list, err := m.f.Snapshots(ctx, m.a.Name())
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Portable == nil || s.Portable.UID != "" && s.Portable.UID != m.a.uid { // of another that had its name
			continue
		}
		m.out.Plan.Saved, m.out.Plan.Files, m.out.Plan.Bytes = &s, int64(s.Portable.Files), s.Portable.Bytes
		return nil
	}
	return fmt.Errorf("%w. No portable snapshot of it is here either; what its artifacts saved is at their destinations: rentop push or rentop pull brings it", away)
}

// carrySaved restores the snapshot on To. What From's job wrote after it is not in it.
func (m *mover) carrySaved(ctx context.Context) error {
	m.stage(MoveCarries)
	got, err := m.b.Restore(ctx, RestoreSpec{Snapshot: m.out.Plan.Saved.Portable.File, Overwrite: m.spec.Overwrite}, nil, m.report)
	m.out.Files, m.out.Bytes, m.out.Proven, m.out.Trash = int64(got.Files), got.Bytes, int64(got.Proven), got.Trash
	if err != nil {
		return err
	}
	m.out.Plan.Env, m.out.Plan.EnvErr = got.Env, got.EnvErr
	m.files = got.files
	if home := got.Plan.Snapshot.Portable.Home; home != "" {
		there, err := remote.Output(ctx, m.b, `printf '%s' "$HOME"`)
		if err != nil {
			return err
		}
		m.log.data.Paths, m.log.data.Saved = []MovePath{{home, string(there)}}, true
	}
	return m.note(ctx, moveProven)
}
