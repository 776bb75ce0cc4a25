package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/sync"
)

// WatchKind is what a WatchEvent tells.
type WatchKind string

const (
	WatchReady   WatchKind = "ready"   // both sides were compared and are equal; changes are followed now
	WatchMoved   WatchKind = "moved"   // changes were carried over
	WatchLost    WatchKind = "lost"    // the connection is away; Err says why
	WatchPolling WatchKind = "polling" // no events here: Err says why it reads again and again
)

// WatchEvent is something that a watch did. Change is set for ready and moved.
type WatchEvent struct {
	Kind   WatchKind
	At     time.Time
	Took   time.Duration // of moved: from when the change was quiet to the instance's confirmation
	Change sync.Change
	Err    error
}

// lastWatchRetry is the longest wait between two tries to come back: a watch has
// nothing better to do.
const lastWatchRetry = 15 * time.Second

// keepUp runs work over one transport after another until ctx ends, which is no
// error. What cannot be done in the first place, or needs the person, is.
func (s *Session) keepUp(ctx context.Context, tell func(WatchEvent), work func(context.Context, sync.Transport) error) error {
	worked := false
	for wait := firstRetry; ; wait = min(2*wait, lastWatchRetry) {
		err := s.overOne(ctx, func(ctx context.Context, tr sync.Transport) error {
			began := s.f.opt.Now()
			err := work(ctx, tr)
			if s.f.opt.Now().Sub(began) > lastRetry {
				wait = firstRetry
			}
			worked = true
			return err
		})
		var away unreachable
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil || remote.NeedsPerson(err) || !worked || !errors.Is(err, remote.ErrCut) && !errors.As(err, &away):
			return err
		}
		tell(WatchEvent{Kind: WatchLost, At: s.f.opt.Now(), Err: err})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// overOne runs work over a transport, with a context that ends when its connection
// does: a watch that waits for a change shall come back before there is one.
func (s *Session) overOne(ctx context.Context, work func(context.Context, sync.Transport) error) error {
	tr, err := s.openTransport(ctx)
	if err != nil {
		return err
	}
	defer tr.Close()
	defer hangUpWith(ctx, tr)()
	over, end := context.WithCancelCause(ctx)
	defer end(nil)
	if c, ok := tr.(*carriage); ok {
		gone := make(chan struct{})
		defer func() { end(nil); <-gone }()
		go func() {
			defer close(gone)
			select {
			case <-c.conn.Done():
				end(fmt.Errorf("%w: %w", remote.ErrCut, c.conn.Err()))
			case <-over.Done():
			}
		}()
	}
	err = work(over, tr)
	if cause := context.Cause(over); over.Err() != nil && ctx.Err() == nil && err != nil && errors.Is(cause, remote.ErrCut) {
		return cause
	}
	return orCut(tr, err)
}

// WatchPush pushes a folder, then each change in it as it is saved, until ctx ends.
// tell and report are called from one goroutine at a time. A connection that is
// lost is opened again, and what was missed is caught up with.
func (s *Session) WatchPush(ctx context.Context, t TransferSpec, confirm func(*sync.Plan) error, tell func(WatchEvent), report func(sync.Progress)) error {
	t.Direction = sync.Push
	spec, err := s.spec(t)
	if err != nil {
		return err
	}
	if spec.Record, err = s.pushed(); err != nil {
		return err
	}
	m, err := sync.NewMirror(spec)
	if err != nil {
		return fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	w, err := sync.Watch(spec.Local, m.Ignored) // before the first look, so that nothing is missed
	if err != nil {
		return fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	defer w.Close()
	var sum moved
	defer func() { s.rememberWatch(context.WithoutCancel(ctx), spec, &sum) }()
	polling := false
	err = s.keepUp(ctx, tell, func(ctx context.Context, tr sync.Transport) error {
		c, err := m.All(ctx, tr, confirm, report)
		if sum.add(c.Result); err != nil {
			return err
		}
		w.Refresh()
		tell(WatchEvent{Kind: WatchReady, At: s.f.opt.Now(), Change: c})
		for {
			if why := w.Polling(); why != "" && !polling {
				polling = true
				tell(WatchEvent{Kind: WatchPolling, At: s.f.opt.Now(), Err: errors.New(why)})
			}
			ch, err := nextChange(ctx, w, m)
			if err != nil {
				return err
			}
			began := s.f.opt.Now()
			c, err := m.Some(ctx, ch, report)
			if sum.add(c.Result); err != nil {
				return err
			}
			if c.Everything {
				w.Refresh()
			}
			if something(c) {
				now := s.f.opt.Now()
				tell(WatchEvent{Kind: WatchMoved, At: now, Took: now.Sub(began), Change: c})
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s: push: %w", s.cfg().Name, err)
	}
	return nil
}

// unfinished is how soon a file is read again that changed while it was read.
const unfinished = time.Second

func nextChange(ctx context.Context, w *sync.Watcher, m *sync.Mirror) (sync.Changes, error) {
	if !m.Pending() {
		return w.Next(ctx)
	}
	soon, cancel := context.WithTimeout(ctx, unfinished)
	defer cancel()
	ch, err := w.Next(soon)
	if err != nil && ctx.Err() == nil {
		return sync.Changes{}, nil
	}
	return ch, err
}

// something says whether there is anything to tell of a change.
func something(c sync.Change) bool {
	return len(c.Held) > 0 || c.Result != nil && (c.Files > 0 || len(c.Deleted)+len(c.Failed) > 0 || c.Wire > 0)
}

// rememberWatch writes what a watch has moved: one event, not one a save.
func (s *Session) rememberWatch(ctx context.Context, spec sync.Spec, m *moved) {
	if m.files+m.failed > 0 {
		_ = s.remember(ctx, string(spec.Direction), spec.Local, spec.Remote, *m) // the files are there all the same
	}
}
