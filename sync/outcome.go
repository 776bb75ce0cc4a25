package sync

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// This file gathers what a transfer has done, in memory that does not grow with
// it: rows go to the record as they come, and of long lists the first are named.

const (
	maxSent    = 1000   // files that Result names
	maxFailed  = 10_000 // failures that it names
	rowsAtOnce = 1000   // that go to the record
)

// outcome is a Result in the making. It is for one goroutine at a time.
type outcome struct {
	s      Spec
	at     sides
	tr     *tracker
	res    Result
	rows   []Recorded
	failed map[string]bool // paths in res.Failed
	err    error           // of the record
}

func newOutcome(t Transport, s Spec, at sides, tr *tracker) *outcome {
	o := &outcome{s: s, at: at, tr: tr, failed: map[string]bool{}}
	o.res.Transport, _ = t.Name()
	return o
}

func (o *outcome) fail(p string, err error) {
	o.tr.failed.Add(1)
	if o.res.FailedAll++; len(o.res.Failed) < maxFailed {
		o.res.Failed = append(o.res.Failed, Failure{Path: p, Err: err})
		o.failed[p] = true
	}
}

// skipped counts an action that cannot be done.
func (o *outcome) skipped(a Action) { o.fail(a.Entry.Path, errors.New(a.Why)) }

// placed counts a file that is at its destination.
func (o *outcome) placed(e Entry) {
	if o.res.Files++; len(o.res.Sent) < maxSent {
		o.res.Sent = append(o.res.Sent, e)
	}
	o.res.Bytes += e.Size
	o.tr.files.Add(1)
	if o.s.Record == nil {
		return
	}
	far, near := e.Path, e.Source()
	if o.s.Direction == Pull {
		far, near = e.Source(), e.Path
	}
	o.rows = append(o.rows, Recorded{Remote: path.Join(o.at.remote, far), Local: filepath.Join(o.at.local, filepath.FromSlash(near)),
		Size: e.Size, ModTime: e.ModTime, SHA256: e.SHA256, At: o.s.now()})
	if len(o.rows) == rowsAtOnce {
		o.flush()
	}
}

// flush tells the record what is on both sides now.
func (o *outcome) flush() {
	if len(o.rows) > 0 && o.err == nil {
		o.err = o.s.Record.Add(o.rows)
	}
	o.rows = o.rows[:0]
}

// look reads the state of sources on the instance that changed; what is gone by now
// has failed.
func (o *outcome) look(ctx context.Context, t Transport, root string, files []Entry) ([]Entry, error) {
	byPath := map[string]Entry{}
	var paths []string
	for _, e := range files {
		byPath[e.Source()] = e
		paths = append(paths, e.Source())
	}
	var out []Entry
	err := t.Stat(ctx, root, paths, func(now Entry) error {
		if e, ok := byPath[now.Path]; ok && now.Mode.IsRegular() {
			e.Size, e.ModTime, e.Mode, e.SHA256 = now.Size, now.ModTime, now.Mode, ""
			out = append(out, e)
			delete(byPath, now.Path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, e := range byPath {
		o.fail(e.Path, fmt.Errorf("gone by now: %w", ErrChanged))
	}
	return out, nil
}

// did counts any action but a Send. trashed ones come here as they were planned.
func (o *outcome) did(a Action, err error) {
	if err != nil {
		o.fail(a.Entry.Path, fmt.Errorf("%s: %w", a.Op, err))
	}
}

// end is the whole result.
func (o *outcome) end(took time.Duration, err error) (*Result, error) {
	if o.flush(); o.s.Record != nil && o.err == nil {
		_ = o.s.Record.Tidy() // what stays longer than it must harms nothing
	}
	o.tr.stage("done")
	o.tr.stop()
	o.res.Wire, o.res.Kept, o.res.Reused = o.tr.wire.Load(), o.tr.kept.Load(), o.tr.reused.Load()
	o.res.Took = took
	slices.SortFunc(o.res.Sent, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return &o.res, errOr(err, o.err)
}
