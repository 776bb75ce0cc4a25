package sync

import (
	"context"
	"errors"
	stdsync "sync"
)

// This file feeds a transport that streams: actions go in as they are found, and
// what became of them comes back in any order.

// flow is one Push or Pull that is running. do, settle and end are for one
// goroutine.
type flow struct {
	x     *execution
	ch    chan Action
	ended chan struct{}
	err   error // set before ended is closed

	mu      stdsync.Mutex       // protects what follows, and the outcome while the flow is running
	open    int                 // given and not heard of
	settled chan struct{}       // not nil: closed when open is 0
	removed func(Action, error) // hears of deletes instead of x.did
}

const flowAhead = 1024 // actions

func (x *execution) flow(ctx context.Context, st Streamer) *flow {
	f := &flow{x: x, ch: make(chan Action, flowAhead), ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		if x.s.Direction == Push {
			f.err = st.Push(ctx, x.at.local, x.at.remote, f.ch, x.tr, f.heard)
		} else {
			f.err = st.Pull(ctx, x.at.remote, x.at.local, f.ch, x.tr, f.heard)
		}
	}()
	return f
}

// heard is the transport's done.
func (f *flow) heard(a Action, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case a.Op == Send && err != nil:
		f.x.fail(a.Entry.Path, err)
	case a.Op == Send:
		f.x.placed(a.Entry)
	case f.removed != nil:
		f.removed(a, err)
	default:
		f.x.did(a, err)
	}
	if f.open--; f.open == 0 && f.settled != nil {
		close(f.settled)
		f.settled = nil
	}
}

// fail notes a failure that the transport has no part in.
func (f *flow) fail(a Action) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.x.skipped(a)
}

// do gives an action to the transport.
func (f *flow) do(ctx context.Context, a Action) error {
	f.mu.Lock()
	f.open++
	f.mu.Unlock()
	select {
	case f.ch <- a:
		return nil
	case <-f.ended:
		return errOr(f.err, errEnded)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits until all that was given has been heard of.
func (f *flow) settle(ctx context.Context) error {
	f.mu.Lock()
	if f.open == 0 {
		f.mu.Unlock()
		return nil
	}
	f.settled = make(chan struct{})
	wait := f.settled
	f.mu.Unlock()
	select {
	case <-wait:
		return nil
	case <-f.ended:
		return errOr(f.err, errEnded)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets the transport come to its end. err is what has happened here, where
// the transport's own error is the likelier cause of a flow that ended early.
func (f *flow) end(err error) error {
	close(f.ch)
	<-f.ended
	if err == nil || errors.Is(err, errEnded) {
		return errOr(f.err, err)
	}
	return err
}

// all gives actions; those that would lock a folder come after the others.
func (f *flow) all(ctx context.Context, acts []Action) error {
	var late []Action
	for _, a := range acts {
		if a.Op == Skip {
			continue
		}
		if closed(a.Entry) {
			late = append(late, Action{Op: Attr, Entry: a.Entry, Why: a.Why})
			if a.Op == Attr {
				continue
			}
		}
		if err := f.do(ctx, a); err != nil {
			return err
		}
	}
	return f.last(ctx, late)
}

// last gives the modes of folders that their owner may not write, once all else
// is done.
func (f *flow) last(ctx context.Context, late []Action) error {
	if len(late) == 0 { // the transport's end waits for all, and sooner hears that nothing follows
		return nil
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	for i := range late {
		if err := f.do(ctx, late[len(late)-1-i]); err != nil {
			return err
		}
	}
	return f.settle(ctx)
}

// flowing carries out a plan in one flow.
func (x *execution) flowing(ctx context.Context, st Streamer, p *Plan, bin *trashBin) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0 // the removals come first
	for n < len(p.Actions) && p.Actions[n].Op == Delete {
		n++
	}
	f := x.flow(ctx, st)
	err := f.takeAway(ctx, p.Actions[:n], bin, false)
	if err == nil {
		err = f.all(ctx, p.Actions[n:])
	}
	var gone []Action
	if err == nil && len(p.Deletes) > 0 {
		if err = f.settle(ctx); err == nil { // nothing is removed where anything fails
			gone = x.removable(p)
			err = f.takeAway(ctx, gone, bin, true)
		}
	}
	if err != nil {
		cancel()
	}
	if err = f.end(err); err != nil || len(gone) == 0 {
		return err
	}
	return bin.forgetOld(ctx)
}

// takeAway does removals and waits for them.
func (f *flow) takeAway(ctx context.Context, acts []Action, bin *trashBin, listed bool) error {
	if len(acts) == 0 {
		return nil
	}
	if err := bin.open(ctx, acts); err != nil {
		return err
	}
	f.mu.Lock()
	f.removed = f.x.removed(listed)
	f.mu.Unlock()
	for _, a := range bin.instead(acts) {
		if err := f.do(ctx, a); err != nil {
			return err
		}
	}
	err := f.settle(ctx)
	f.mu.Lock()
	f.removed = nil
	f.mu.Unlock()
	return err
}
