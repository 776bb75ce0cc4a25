package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rentop/remote"
	"rentop/session/environment"
	"rentop/session/release"
	"rentop/sync"
)

// This file puts a portable snapshot on an instance: nothing that differs there is
// written over unasked, and all that was brought is read there again.

// RestoreSpec is a restore as a person asks for it.
type RestoreSpec struct {
	Snapshot  string // its name, its file, or an instance's name: its newest
	Overwrite bool   // what differs there goes to the trash there
	Skip      bool   // what differs there stays as it is
	Install   bool   // run pip's and conda's commands as a job

	fate func(full string, now, comes sync.Entry) fate // of what differs there; nil: as above
}

// RestorePlan is what a restore would do.
type RestorePlan struct {
	Snapshot Snapshot
	Files    int   // to bring
	Bytes    int64 // of them
	Equal    int   // files that are there already
	Differ   []Occupied
	LeftOut  int // rentop's own logs, and what is neither file, folder nor symlink
}

// Occupied is a path where something else is.
type Occupied struct {
	Path string // absolute there
	Why  string
}

// Restored is what a restore did.
type Restored struct {
	Plan      RestorePlan
	Files     int // that were brought
	Bytes     int64
	Proven    int // files there whose SHA-256 is the manifest's, read there after all was done
	Failed    []sync.Failure
	Trash     []string // folders there that hold what was in the way
	Env       environment.Report
	EnvErr    error // why the environments could not be compared
	Installed *Installed

	files []moveFile // all that is there and proven
}

// OccupiedError refuses to write over what differs.
type OccupiedError struct {
	Instance string
	Differ   []Occupied
	Skips    bool // they can be left as they are
}

func (e *OccupiedError) Error() string {
	what := fmt.Sprintf("%d paths differ from what would come, the first is", len(e.Differ))
	if len(e.Differ) == 1 {
		what = "one path differs from what would come:"
	}
	cure := "--overwrite moves such to the trash there"
	if e.Skips {
		cure += ", --skip leaves them as they are"
	}
	return fmt.Sprintf("on %s %s %s (%s); nothing was changed. %s", e.Instance, what, remote.Short(e.Differ[0].Path, 120), e.Differ[0].Why, cure)
}

// ErrMadeThere is wrapped where a snapshot is its provider's own.
var ErrMadeThere = errors.New("it is its provider's own: choose it as the image when you create an instance there; rentop creates none")

// Restore puts a portable snapshot on the instance. confirm sees the plan before
// anything is changed. A cut is survived, and a later run goes on: what is there and
// equal is not sent again.
func (s *Session) Restore(ctx context.Context, spec RestoreSpec, confirm func(RestorePlan) error, report func(sync.Progress)) (Restored, error) {
	out, err := s.restore(ctx, spec, confirm, report)
	if err != nil {
		err = fmt.Errorf("%s: restore %s: %w", s.cfg().Name, remote.Short(spec.Snapshot, 120), err)
	}
	return out, err
}

func (s *Session) restore(ctx context.Context, spec RestoreSpec, confirm func(RestorePlan) error, report func(sync.Progress)) (Restored, error) {
	var out Restored
	snap, err := s.f.findSnapshot(ctx, spec.Snapshot)
	if err != nil {
		return out, err
	}
	if snap.Portable == nil {
		return out, fmt.Errorf("%w (%s)", ErrMadeThere, remote.Short(snap.ID, 120))
	}
	held, err := s.f.alone("restore-"+s.uid, "a restore there")
	if err != nil {
		return out, err
	}
	defer held.Unlock()
	defer s.f.work()()
	r := &restorer{s: s, spec: spec, out: &out, meter: newMeter(report, s.f.opt.Now)}
	out.Plan.Snapshot = snap
	r.meter.stage("scan")
	var manifest map[string]string
	if r.from, manifest, err = release.OpenPortable(ctx, snap.Portable.File); err != nil {
		return out, err
	}
	if err := r.read(ctx, manifest); err != nil {
		return out, err
	}
	began := s.f.opt.Now()
	err = s.again(ctx, func() error {
		t, err := s.openTransport(ctx)
		if err != nil {
			return err
		}
		defer t.Close()
		defer hangUpWith(ctx, t)()
		err = r.run(ctx, t, confirm)
		served(t, err)
		return orCut(t, err)
	})
	if out.Files > 0 {
		m := moved{files: int64(out.Files), failed: int64(len(out.Failed)), bytes: out.Bytes, wire: r.meter.wire.Load(), took: s.f.opt.Now().Sub(began)}
		err = errors.Join(err, s.remember(context.WithoutCancel(ctx), "restore", r.from.File, "", m))
	}
	if err != nil {
		return out, err
	}
	out.Env, out.EnvErr = s.compareEnv(ctx, r.from)
	if spec.Install && out.EnvErr == nil {
		if out.Installed, err = s.install(ctx, out.Env); err != nil {
			return out, fmt.Errorf("install what is missing: %w", err)
		}
		out.Env, out.EnvErr = s.compareEnv(ctx, r.from) // as it is now
	}
	if len(out.Failed) > 0 {
		count := "one file is"
		if n := len(out.Failed); n > 1 {
			count = fmt.Sprintf("%d files are", n)
		}
		return out, fmt.Errorf("%s not as the snapshot has it, the first is %s: %w. Mend that and run it again: only what is missing is sent",
			count, remote.Short(out.Failed[0].Path, 120), out.Failed[0].Err)
	}
	return out, nil
}

// restorer is one restore under way. It is for one goroutine.
type restorer struct {
	s     *Session
	spec  RestoreSpec
	from  release.Portable
	roots []*restoreRoot
	out   *Restored
	meter *meter
	asked bool   // the plan was confirmed, before a cut
	home  string // of the login there
}

// run compares, asks, brings what is missing and proves all of it.
func (r *restorer) run(ctx context.Context, t sync.Transport, confirm func(RestorePlan) error) error {
	first := r.out.Plan
	if err := r.compare(ctx, t); err != nil {
		return err
	}
	plan := r.out.Plan
	if len(plan.Differ) > 0 && !r.spec.Overwrite && !r.spec.Skip {
		return &OccupiedError{r.s.cfg().Name, plan.Differ, true}
	}
	if r.asked {
		r.out.Plan = first // what was to be done, not what a cut left of it
	} else {
		if err := r.room(ctx, t); err != nil {
			return err
		}
		if confirm != nil {
			if err := confirm(plan); err != nil {
				return err
			}
		}
		r.asked = true
	}
	dir, err := r.stage(ctx)
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.begun(), []byte(r.from.SHA256), 0o600); err != nil {
		return err
	}
	r.meter.begin("send", plan.Files, plan.Bytes)
	r.out.Failed = nil
	for _, root := range r.roots {
		if err := r.bring(ctx, t, root, dir); err != nil {
			return err
		}
	}
	return r.prove(ctx, t)
}

// room refuses where what comes does not fit. Of a restore that was cut, parts of it may
// take the room already: it goes on.
func (r *restorer) room(ctx context.Context, t sync.Transport) error {
	if sha, err := os.ReadFile(r.begun()); err == nil && string(sha) == r.from.SHA256 {
		return nil
	}
	there := newRoom(t)
	for _, root := range r.roots {
		there.add(ctx, root.root, root.send)
	}
	if err := there.lacks(r.s.cfg().Name); err != nil {
		return err
	}
	state := r.s.f.opt.Dirs.State
	if free, known := sync.Room(ctx, sync.Local{}, filepath.ToSlash(state)); known && r.out.Plan.Bytes+spareRoom > free {
		return &NoRoomError{"this computer (" + state + ", where the snapshot is unpacked on its way)", r.out.Plan.Bytes + spareRoom, free}
	}
	return nil
}

// prove reads all files there again.
func (r *restorer) prove(ctx context.Context, t sync.Transport) error {
	r.meter.begin("verify", r.out.Plan.Files+r.out.Plan.Equal, 0)
	r.out.files = nil
	proven, failed := 0, map[string]bool{}
	for _, f := range r.out.Failed {
		failed[f.Path] = true
	}
	for _, root := range r.roots {
		var paths []string
		root.at = map[string]sync.Entry{}
		for _, e := range root.want {
			root.at[e.Path] = e
			if e.Mode.IsRegular() && !root.skipped(e.Path) && !failed[root.abs(e.Path)] {
				paths = append(paths, e.Path)
			}
		}
		if len(paths) == 0 {
			continue
		}
		sums, err := hashes(ctx, t, root.root, paths, r.meter.counted)
		if err != nil {
			return err
		}
		for _, p := range paths {
			if sums[p] == root.sums[p] {
				proven++
				e := root.at[p]
				r.out.files = append(r.out.files, moveFile{root.root, release.Found{Path: root.abs(p), Rel: p, Size: e.Size, ModTime: e.ModTime}})
				continue
			}
			r.out.Failed = append(r.out.Failed, sync.Failure{Path: root.abs(p), Err: errors.New("read there again, its SHA-256 is not the snapshot's")})
		}
	}
	r.out.Proven = proven
	slices.SortFunc(r.out.Trash, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	r.out.Trash = slices.Compact(r.out.Trash)
	if len(r.out.Failed) > 0 {
		return nil
	}
	return os.RemoveAll(r.begun())
}

// staged is where a snapshot is unpacked on its way: emptied before and after.
func (r *restorer) staged() string {
	return filepath.Join(r.s.f.opt.Dirs.State, "restoring", r.s.uid)
}

// begun holds the SHA-256 of the archive while its restore is not finished.
func (r *restorer) begun() string { return r.staged() + ".begun" }
