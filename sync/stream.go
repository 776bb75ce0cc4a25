package sync

import (
	"context"
	"slices"

	"rentop/sync/far"
)

// This file compares and moves at once: the first files leave while both sides
// are still being walked.

// maxWaiting bounds how many large files wait for the destination to be seen whole.
const maxWaiting = 16 << 10

func stream(ctx context.Context, t Transport, st Streamer, s Spec, report func(Progress)) (*Result, error) {
	start := s.now()
	j := &job{t: t, s: s, tr: newTracker(t, s.now, report)}
	j.tr.stage("scan")
	if err := j.find(ctx); err != nil {
		j.tr.stop()
		return nil, err
	}
	x := newExecution(t, s, j.sides, j.tr)
	files, err := x.streamed(ctx, st, j)
	if err == nil && s.Verify {
		err = x.verify(ctx, files)
	}
	return x.end(s.now().Sub(start), err)
}

// streamed is all but verifying; it returns the files that are to be equal now.
func (x *execution) streamed(ctx context.Context, st Streamer, j *job) (*pathList, error) {
	if err := x.root(ctx); err != nil {
		return nil, err
	}
	if x.dst != nil {
		defer x.dst.Close()
	}
	j.tr.stage("send")
	j.tr.growing(true)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.foundTrash = func(trash Entry) {
		b := trashBin{x: x, old: &trash}
		b.makeRoom(ctx, 0) // where it cannot, what is sent says that it is full
	}
	s := &streaming{ctx: ctx, cancel: cancel, f: x.flow(ctx, st), j: j, whole: j.fresh}
	if x.s.Verify {
		s.files = &pathList{}
	}
	_, err := j.compare(ctx, s.out, s.unchanged, s.ended)
	j.tr.growing(false)
	if err == nil {
		s.ended()
		err = s.f.last(ctx, s.late)
	}
	if err = errOr(s.err, err); err != nil {
		cancel()
	}
	err = s.f.end(err)
	if x.res.Unchanged = s.same; err != nil {
		return nil, err
	}
	for _, a := range j.leftOver() {
		x.skipped(a)
	}
	litter := j.oldLitter(nil)
	if x.res.FailedAll > 0 { // a later run may go on with parts
		litter = slices.DeleteFunc(litter, func(e Entry) bool { return !far.Temporary(e.Path) })
	}
	return s.files, x.clean(ctx, litter)
}

// streaming takes what the comparison finds.
type streaming struct {
	ctx    context.Context
	cancel context.CancelFunc
	f      *flow
	j      *job

	files   *pathList
	same    int64
	late    []Action // modes of folders that their owner may not write
	waiting []Action // large files, until the destination was seen whole
	whole   bool
	err     error // of the flow
}

func (s *streaming) unchanged(e Entry) {
	s.same++
	if s.files != nil && e.Mode.IsRegular() {
		s.files.add(e)
	}
}

func (s *streaming) out(a Action) {
	if s.files != nil && (a.Op == Send || a.Op == Attr) && a.Entry.Mode.IsRegular() {
		s.files.add(a.Entry)
	}
	switch {
	case a.Op == Skip:
		s.f.fail(a)
		return
	case closed(a.Entry):
		s.late = append(s.late, Action{Op: Attr, Entry: a.Entry, Why: a.Why})
		if a.Op == Attr {
			return
		}
	case a.Op == Send:
		s.j.tr.more(1, a.Entry.Size)
		if !s.whole && len(s.waiting) < maxWaiting && s.j.bases.waits(a) {
			s.waiting = append(s.waiting, a)
			return
		}
		s.j.bases.offer(&a)
	}
	s.give(a)
}

// ended lets go of what waited.
func (s *streaming) ended() {
	s.whole = true
	for _, a := range s.waiting {
		s.j.bases.offer(&a)
		s.give(a)
	}
	s.waiting = nil
}

func (s *streaming) give(a Action) {
	if s.err != nil {
		return
	}
	if s.err = s.f.do(s.ctx, a); s.err != nil {
		s.cancel() // the walks end, and the comparison with them
	}
}
