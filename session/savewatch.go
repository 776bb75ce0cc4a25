package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"rentop/remote"
	"rentop/remote/store"
	"rentop/session/config"
	"rentop/session/release"
	"rentop/sync"
	"rentop/sync/whole"
)

// This file saves artifacts as they are finished, with the eyes of WatchPull: what is
// still being written is left, and a checkpoint goes as a whole, its mark last.

// SaveEvent is something that WatchSave did.
type SaveEvent struct {
	Kind     WatchKind // WatchReady, WatchMoved, WatchLost
	At       time.Time
	Artifact config.Artifact // of moved
	Saved    []SavedFile     // of moved
	Dropped  []string        // checkpoints that keep gave up at the destination
	Err      error           // of lost
}

// WatchSave saves each artifact's files as they are finished, until ctx ends. p.Every
// is for artifacts that say none.
func (s *Session) WatchSave(ctx context.Context, p PullWatch, tell func(SaveEvent)) error {
	if len(s.cfg().Artifacts) == 0 {
		return fmt.Errorf("%s: %w", s.cfg().Name, errNoArtifacts)
	}
	p = p.orDefaults()
	var all []*savedArtifact
	for i, a := range s.cfg().Artifacts {
		w := &savedArtifact{s: s, a: a, target: artifactsOf(s.cfg())[i], c: newSettler(p.Settle), every: p.Every, known: map[string]string{}, told: map[string]bool{}}
		if a.Every != "" {
			w.every, _ = time.ParseDuration(a.Every) // checked when the config was read
		}
		all = append(all, w)
	}
	ready := false
	for wait := firstRetry; ; {
		next := time.Hour
		var err error
		for _, w := range all {
			if due := w.next.Sub(s.f.opt.Now()); due > 0 {
				next = min(next, due)
				continue
			}
			var again time.Duration
			if again, err = w.look(ctx, tell); err != nil {
				break
			}
			w.next = s.f.opt.Now().Add(again)
			next = min(next, again)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (remote.NeedsPerson(err) || !ready):
			return fmt.Errorf("%s: save: %w", s.cfg().Name, err)
		case err != nil:
			tell(SaveEvent{Kind: WatchLost, At: s.f.opt.Now(), Err: err})
			next, wait = wait, min(2*wait, lastWatchRetry)
		default:
			if wait = firstRetry; !ready {
				ready = true
				tell(SaveEvent{Kind: WatchReady, At: s.f.opt.Now()})
			}
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
			return nil
		}
	}
}

// savedArtifact is one artifact under watch.
type savedArtifact struct {
	s      *Session
	a      config.Artifact
	target release.Artifact
	c      *settler
	every  time.Duration
	next   time.Time
	known  map[string]string // what was saved by this watch: version by path
	told   map[string]bool   // failures
}

func versionOf(f release.Found) string { return fmt.Sprint(f.Size, " ", f.ModTime.UnixNano()) }

// look saves what is finished now, and says when to look again.
func (w *savedArtifact) look(ctx context.Context, tell func(SaveEvent)) (again time.Duration, err error) {
	deps := w.s.releaseDeps(ctx)
	files, err := deps.Find(ctx, w.target)
	if errors.Is(err, fs.ErrNotExist) { // nothing is written yet
		return w.every, nil
	}
	if err != nil {
		return 0, err
	}
	byRel := make(map[string]release.Found, len(files))
	plan := &sync.Plan{}
	for _, f := range files {
		byRel[f.Rel] = f
		plan.Actions = append(plan.Actions, sync.Action{Op: sync.Send, Entry: sync.Entry{Path: f.Rel, Size: f.Size, ModTime: f.ModTime}})
	}
	first, last, waiting := w.c.sift(plan, w.s.f.opt.Now())
	ev := SaveEvent{Kind: WatchMoved, Artifact: w.a}
	failed := map[string]bool{} // by unit: a mark would call a checkpoint whole that is not
	for _, part := range []*sync.Plan{first, last} {
		if err := w.save(ctx, deps, part, byRel, failed, &ev); err != nil {
			return 0, err
		}
	}
	if w.a.Keep > 0 && len(ev.Saved) > 0 {
		if ev.Dropped, err = w.drop(ctx, files); err != nil {
			return 0, err
		}
	}
	if len(ev.Saved)+len(ev.Dropped) > 0 {
		ev.At = w.s.f.opt.Now()
		tell(ev)
	}
	if waiting > 0 {
		return min(w.every, max(w.c.quiet/2, time.Second)), nil
	}
	return w.every, nil
}

// save brings what of a plan is not known to be there, but for units that failed
// before; it adds to them.
func (w *savedArtifact) save(ctx context.Context, deps release.Deps, plan *sync.Plan, byRel map[string]release.Found, failed map[string]bool, ev *SaveEvent) error {
	before := maps.Clone(failed)
	note := func(f release.Found, err error) {
		if err != nil {
			unit, _ := unitOf(f.Rel)
			failed[unit] = true
			line := f.Path + "\x00" + err.Error()
			if w.told[line] {
				return
			}
			w.told[line] = true
		} else {
			w.known[f.Path] = versionOf(f)
		}
		ev.Saved = append(ev.Saved, SavedFile{w.a, f.Path, f.Size, err})
	}
	l := SaveLine{Artifact: w.a, target: w.target}
	for _, a := range plan.Actions {
		f := byRel[a.Entry.Path]
		if unit, _ := unitOf(f.Rel); before[unit] || w.known[f.Path] == versionOf(f) {
			continue
		}
		if whole.Tells(f.Rel) {
			err := wholeThere(ctx, deps.Runner, f)
			if errors.Is(err, whole.ErrCut) {
				note(f, err)
				continue
			}
			if err != nil {
				return err
			}
		}
		l.files, l.lack = append(l.files, f), append(l.lack, f)
	}
	if len(l.files) == 0 {
		return nil
	}
	return w.s.bring(ctx, deps, l, func(f release.Found, err error) { note(byRel[f.Rel], err) })
}

// drop removes from a bucket what keep gives up. Only checkpoints go, only where as
// many newer ones were saved by this watch, whole; a folder here and another instance
// keep all.
func (w *savedArtifact) drop(ctx context.Context, files []release.Found) ([]string, error) {
	if !store.IsURL(w.target.To) || !w.allKnown(files) {
		return nil, nil
	}
	p, err := w.s.place(w.target.To)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	b, is := p.(bucketPlace)
	if !is {
		return nil, nil
	}
	var there []release.Found
	err = b.list(ctx, func(f release.Found) { there = append(there, f) })
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{} // of the newest, as the instance has them
	for _, f := range files {
		mine[checkpointOf(f.Rel)] = true
	}
	old := slices.DeleteFunc(oldCheckpoints(there, w.a.Keep), func(name string) bool { return mine[name] })
	for _, f := range there {
		if slices.Contains(old, checkpointOf(f.Rel)) {
			if err := b.c.Remove(ctx, f.Rel); err != nil {
				return nil, err
			}
		}
	}
	return old, nil
}

func (w *savedArtifact) allKnown(files []release.Found) bool {
	for _, f := range files {
		if checkpointOf(f.Rel) != "" && w.known[f.Path] != versionOf(f) {
			return false
		}
	}
	return true
}
