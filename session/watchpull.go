package session

import (
	"context"
	"fmt"
	"time"

	"rentop/sync"
)

// PullWatch says how a watched pull looks.
type PullWatch struct {
	Every  time.Duration // between two looks; 0: 5 s
	Settle time.Duration // how long a file stands still before it is taken; 0: 10 s
}

func (p PullWatch) orDefaults() PullWatch {
	if p.Every <= 0 {
		p.Every = 5 * time.Second
	}
	if p.Settle <= 0 {
		p.Settle = 10 * time.Second
	}
	return p
}

// WatchPull pulls files as they are finished on the instance, until ctx ends: never
// one that is still being written, and a checkpoint of several files only whole. It
// deletes nothing. tell and report are called from one goroutine at a time.
func (s *Session) WatchPull(ctx context.Context, t TransferSpec, p PullWatch, tell func(WatchEvent), report func(sync.Progress)) error {
	p = p.orDefaults()
	t.Direction, t.Delete = sync.Pull, false
	spec, err := s.spec(t)
	if err != nil {
		return err
	}
	if spec.Record, err = s.pushed(); err != nil {
		return err
	}
	c := newSettler(p.Settle)
	var sum moved
	defer func() { s.rememberWatch(context.WithoutCancel(ctx), spec, &sum) }()
	told := map[string]bool{} // failures
	ready := false
	err = s.keepUp(ctx, tell, func(ctx context.Context, tr sync.Transport) error {
		for {
			plan, err := sync.MakePlan(ctx, tr, spec, nil)
			if err != nil {
				return err
			}
			began := s.f.opt.Now()
			first, last, waiting := c.sift(plan, began)
			if !ready {
				ready = true
				tell(WatchEvent{Kind: WatchReady, At: began, Change: sync.Change{Result: &sync.Result{Unchanged: plan.Unchanged}}})
			}
			for _, part := range []*sync.Plan{first, last} {
				if part.Empty() {
					continue
				}
				res, err := sync.Execute(ctx, tr, part, report)
				if sum.add(res); err != nil {
					return err
				}
				whole := arrived(part, res)
				fresh := res.Failed[:0]
				for _, f := range res.Failed {
					if line := f.Path + "\x00" + f.Err.Error(); !told[line] {
						told[line] = true
						fresh = append(fresh, f)
					}
				}
				res.Failed = fresh
				if ch := (sync.Change{Result: res}); something(ch) {
					now := s.f.opt.Now()
					tell(WatchEvent{Kind: WatchMoved, At: now, Took: now.Sub(began), Change: ch})
				}
				if !whole {
					break // its mark would call a checkpoint whole that is not
				}
			}
			every := p.Every
			if waiting > 0 {
				every = min(every, max(p.Settle/2, time.Second))
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s: pull: %w", s.cfg().Name, err)
	}
	return nil
}

// arrived says whether no file of the plan failed.
func arrived(p *sync.Plan, r *sync.Result) bool {
	failed := map[string]bool{}
	for _, f := range r.Failed {
		failed[f.Path] = true
	}
	for _, a := range p.Actions {
		if a.Op == sync.Send && failed[a.Entry.Path] {
			return false
		}
	}
	return true
}
