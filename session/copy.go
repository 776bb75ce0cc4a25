package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"rentop/sync"
)

// CopySpec is a copy between two instances. Paths are as in a transfer: relative
// ones start at the login's home; nothing is deleted.
type CopySpec struct {
	From, To         *Session
	FromPath, ToPath string
	Checksum         bool // distrust size and time
}

func (c CopySpec) spec() sync.CopySpec {
	return sync.CopySpec{From: c.FromPath, To: c.ToPath, Checksum: c.Checksum}
}

// openPlain is openTransport without the helper.
func (s *Session) openPlain(ctx context.Context) (sync.Transport, error) {
	return s.openOver(ctx, sync.OpenOptions{NoAgent: true, WhyNot: "a copy between instances does without rentop's helper"})
}

// openRelay opens both ends of a copy. They do without the helper: what it gives
// over a link is not a file's bytes.
func (c CopySpec) openRelay(ctx context.Context) (from, to sync.Transport, end func(), err error) {
	if from, err = c.From.openPlain(ctx); err != nil {
		return nil, nil, nil, err
	}
	if to, err = c.To.openPlain(ctx); err != nil {
		from.Close()
		return nil, nil, nil, err
	}
	stopFrom, stopTo := hangUpWith(ctx, from), hangUpWith(ctx, to)
	return from, to, func() { stopFrom(); stopTo(); from.Close(); to.Close() }, nil
}

// PlanCopy says what a copy would do. A cut on either side is survived.
func (f *Fleet) PlanCopy(ctx context.Context, c CopySpec) (plan *sync.Plan, err error) {
	err = c.From.again(ctx, func() error {
		from, to, end, err := c.openRelay(ctx)
		if err != nil {
			return err
		}
		defer end()
		plan, err = sync.PlanCopy(ctx, relayed(from), relayed(to), c.spec(), nil)
		return orCut(from, orCut(to, err))
	})
	return plan, c.named(err)
}

// named says between which instances something failed.
func (c CopySpec) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("copy from %s to %s: %w", c.From.Name(), c.To.Name(), err)
}

// Copy moves files from one instance to another through this machine's memory, never
// its disk, and returns when they are there. A cut on either side is survived.
func (f *Fleet) Copy(ctx context.Context, c CopySpec, confirm func(*sync.Plan) error, report func(sync.Progress)) (*sync.Result, error) {
	var res *sync.Result
	err := c.From.again(ctx, func() error {
		from, to, end, err := c.openRelay(ctx)
		if err != nil {
			return err
		}
		defer end()
		cut := func(err error) error { return orCut(from, orCut(to, err)) }
		plan, err := sync.PlanCopy(ctx, relayed(from), relayed(to), c.spec(), report)
		if err != nil {
			return cut(err)
		}
		if confirm != nil {
			if err := confirm(plan); err != nil {
				return err
			}
		}
		part, err := sync.Copy(ctx, relayed(from), relayed(to), plan, report)
		res = added(res, part)
		return cut(err)
	})
	if res != nil {
		err = errors.Join(err, c.remember(context.WithoutCancel(ctx), res))
	}
	return res, c.named(err)
}

// relayed is the transport under a carriage: a relay must know its kind.
func relayed(t sync.Transport) sync.Transport {
	if c, ok := t.(*carriage); ok {
		return c.Transport
	}
	return t
}

// copyFrom is how the ledger calls the end that a copy comes from.
const copyFrom = "copy from"

// remember writes the copy to both instances' ledgers, and to the record of what
// exists elsewhere: nothing, since neither end is this machine.
func (c CopySpec) remember(ctx context.Context, res *sync.Result) error {
	var m moved
	m.add(res)
	var err error
	for s, direction := range map[*Session]string{c.From: copyFrom, c.To: "copy to"} {
		path, other := c.FromPath, c.To.Name()+":"+c.ToPath
		if s == c.To {
			path, other = c.ToPath, c.From.Name()+":"+c.FromPath
		}
		err = errors.Join(err, s.remember(ctx, direction, other, filepath.ToSlash(path), m))
	}
	return err
}

// CopyOutline counts a plan of PlanCopy. It takes as long as the slower way.
func (c CopySpec) Outline(p *sync.Plan) Outline {
	o := c.To.Outline(sync.Push, p)
	down := c.From.Estimate(sync.Pull, p.Bytes)
	up := o.Estimate
	switch {
	case down.Took == nil || up.Took == nil:
		o.Estimate = Estimate{} // one way is not known, so neither is the whole
	case *down.Took > *up.Took:
		o.Estimate = down
	}
	o.Estimate.Traffic = nil
	if sum := up.Traffic; sum != nil && down.Traffic != nil {
		if both, err := sum.Add(*down.Traffic); err == nil {
			o.Estimate.Traffic = &both
		}
	}
	return o
}
