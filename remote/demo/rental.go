//go:build unix

package demo

// The simulated provider. It really stops, starts, snapshots and destroys.

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
)

// rental implements provider.Provider over a Fleet.
type rental struct{ fleet *Fleet }

// snapshot is an image that the provider keeps.
type snapshot struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Instance string    `json:"instance"`
	TakenAt  time.Time `json:"taken_at"`
	Bytes    int64     `json:"bytes"`
}

// An image of an instance costs by its disk, at a third of the disk's price.
var snapshotShare = big.NewRat(1, 3)

func (rental) Kind() string { return Kind }

func (rental) Can() provider.Can {
	return provider.Can{Start: true, Stop: true, Destroy: true, Snapshot: true,
		StopKeepsCharging: "the disk goes on costing while the instance is stopped"}
}

func (r rental) find(id string) *machine {
	for _, m := range r.fleet.machines {
		if m.id == id || m.name == id {
			return m
		}
	}
	return nil
}

func (rental) failed(what, id string, err error) error {
	return fmt.Errorf("%s: %s %s: %w", Kind, what, remote.Clean(id), err)
}

var errNoInstance = errors.New("there is no such instance; rentop ls shows them")

// do runs one power action at a time on the instance.
func (r rental) do(ctx context.Context, what, id string, act func(*machine) error) error {
	err := ctx.Err()
	if m := r.find(id); err == nil && m == nil {
		err = errNoInstance
	} else if err == nil {
		m.power.Lock()
		err = act(m)
		m.power.Unlock()
		err = errors.Join(err, r.fleet.save())
	}
	if err != nil {
		return r.failed(what, id, err)
	}
	return nil
}

func (r rental) Status(ctx context.Context, id string) (provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return provider.Status{}, r.failed("status of", id, err)
	}
	m := r.find(id)
	if m == nil {
		return provider.Status{State: provider.Gone, Detail: "unknown id"}, nil
	}
	in := m.instance()
	billed := in.State == provider.Running || in.State == provider.Changing
	return provider.Status{State: in.State, StartedAt: in.StartedAt, Billed: &billed, Detail: "simulated"}, nil
}

func (r rental) Start(ctx context.Context, id string) error {
	return r.do(ctx, "starting", id, func(m *machine) error {
		switch m.instance().State {
		case provider.Running:
			return nil
		case provider.Gone:
			return errors.New("it was destroyed")
		}
		return m.plugIn(r.fleet.now())
	})
}

func (r rental) Stop(ctx context.Context, id string) error {
	return r.do(ctx, "stopping", id, func(m *machine) error {
		switch m.instance().State {
		case provider.Stopped:
			return nil
		case provider.Gone:
			return errors.New("it was destroyed")
		}
		return m.plugOut(ctx, provider.Stopped)
	})
}

func (r rental) Destroy(ctx context.Context, id string) error {
	return r.do(ctx, "destroying", id, func(m *machine) error {
		if m.instance().State == provider.Gone {
			return nil
		}
		if err := m.plugOut(ctx, provider.Changing); err != nil {
			return err
		}
		if err := removeAll(m.root); err != nil {
			return err
		}
		m.mu.Lock()
		m.state = provider.Gone
		m.mu.Unlock()
		return nil
	})
}

// Snapshot packs the instance's home. The same name again is the same snapshot, so
// that a retry makes no second one.
func (r rental) Snapshot(ctx context.Context, id, name string) (provider.Snapshot, error) {
	var made snapshot
	err := r.do(ctx, "making a snapshot of", id, func(m *machine) error {
		if m.instance().State == provider.Gone {
			return errors.New("it was destroyed")
		}
		var err error
		made, err = r.fleet.snapshot(ctx, m, name)
		return err
	})
	if err != nil {
		return provider.Snapshot{}, err
	}
	m := r.find(id)
	return provider.Snapshot{ID: made.ID, Name: made.Name, PerMonth: m.imagePrice(), Currency: m.currency}, nil
}

func (f *Fleet) snapshot(ctx context.Context, m *machine, name string) (snapshot, error) {
	f.mu.Lock()
	n := len(f.snaps) + 1
	for _, s := range f.snaps {
		if s.Instance == m.id && s.Name == name {
			f.mu.Unlock()
			return s, nil
		}
	}
	f.mu.Unlock()
	s := snapshot{ID: fmt.Sprintf("snap-%s-%d", m.name, n), Name: name, Instance: m.id, TakenAt: f.now().UTC()}
	dir := filepath.Join(f.dir, "snapshots")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, err
	}
	var err error
	if s.Bytes, err = pack(ctx, m.home, filepath.Join(dir, s.ID+".tar.gz")); err != nil {
		return s, err
	}
	f.mu.Lock()
	f.snaps = append(f.snaps, s)
	f.mu.Unlock()
	return s, nil
}

func (m *machine) diskPrice(share *big.Rat) string {
	price, ok := new(big.Rat).SetString(m.perGBMonth)
	if !ok {
		return ""
	}
	price.Mul(price, new(big.Rat).SetInt64(int64(m.diskGB)))
	return price.Mul(price, share).FloatString(2)
}

func (m *machine) imagePrice() string { return m.diskPrice(snapshotShare) }

func (r rental) Leftovers(ctx context.Context, id string, after provider.State) ([]provider.Leftover, error) {
	if err := ctx.Err(); err != nil {
		return nil, r.failed("what is left of", id, err)
	}
	m := r.find(id)
	if m == nil {
		return nil, r.failed("what is left of", id, errNoInstance)
	}
	var list []provider.Leftover
	if after == provider.Stopped {
		list = append(list, provider.Leftover{Kind: "disk", ID: m.id + "-disk", PerMonth: m.diskPrice(big.NewRat(1, 1)), Currency: m.currency})
	}
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	for _, s := range r.fleet.snaps {
		if s.Instance == m.id {
			list = append(list, provider.Leftover{Kind: "snapshot", ID: s.ID, PerMonth: m.imagePrice(), Currency: m.currency})
		}
	}
	return list, nil
}
