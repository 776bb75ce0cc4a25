package provider

// What all providers with an API have in common. A driver makes single requests;
// this file decides what may be believed of their answers.
//
// Gone is the one answer that ends a release, so it takes three things: the API
// says that there is no such instance, the account's whole list does not have
// it, and this key has seen it before. A 404 alone also comes from a key of
// another account, a wrong id, or a proxy on a bad day.

import (
	"context"
	"errors"
	"fmt"

	"rentop/remote"
)

// driver is what differs between providers. Each method is one step at the
// provider; errors need not name the provider or the instance.
type driver interface {
	Kind() string
	Can() Can
	// checkID says what is wrong with an id, "" where it is possible.
	checkID(id string) string
	// get reads one instance, errAbsent where the API says that it does not exist.
	get(ctx context.Context, id string) (Instance, error)
	// list reads the whole account.
	list(ctx context.Context) ([]Instance, error)
	start(ctx context.Context, in Instance) error
	stop(ctx context.Context, in Instance) error
	destroy(ctx context.Context, in Instance) error
	snapshot(ctx context.Context, in Instance, name string) (Snapshot, error)
	// leftovers lists what costs money in the state after; the instance may be
	// gone already, with only its id known.
	leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error)
	balance(ctx context.Context) (Balance, error)
	snapshotState(ctx context.Context, id string) (SnapshotState, error)
}

// detailer is a driver whose list does not tell address and price; detail adds
// them with a request of its own.
type detailer interface {
	detail(ctx context.Context, in *Instance) error
}

// pricer adds a price that takes requests of its own. What cannot be read stays "".
type pricer interface {
	prices(ctx context.Context, in *Instance)
}

// placer is a driver whose ids name a place, outside of which they need not be
// looked for.
type placer interface {
	listAround(ctx context.Context, id string) ([]Instance, error)
}

var (
	// errAbsent: the API says that there is no such thing.
	errAbsent = errors.New("there is none")
	// errState: the API refused because of the state that the instance is in.
	errState = errors.New("not possible in its state")
)

// rented implements Provider and all of account.go over a driver.
type rented struct {
	d    driver
	who  func() (string, error) // names the key without telling it
	seen Seen
}

func (r *rented) Kind() string { return r.d.Kind() }
func (r *rented) Can() Can     { return r.d.Can() }

// find reads the instance, or proves that it is gone.
func (r *rented) find(ctx context.Context, id string) (Instance, error) {
	if err := ctx.Err(); err != nil {
		return Instance{}, err
	}
	if id == "" {
		return Instance{}, errors.New(`its id is not known: add id = "…" to the config (rentop import shows it)`)
	}
	if why := r.d.checkID(id); why != "" {
		return Instance{}, errors.New(why)
	}
	who, err := r.who()
	if err != nil {
		return Instance{}, err
	}
	in, err := r.d.get(ctx, id)
	switch {
	case err == nil && in.ID != id:
		return Instance{}, fmt.Errorf("the answer is about another instance, %q", remote.Short(in.ID, 80))
	case err == nil:
		r.seen.Add(r.Kind(), who, id)
		return in, nil
	case !errors.Is(err, errAbsent):
		return Instance{}, err
	}
	list, err := r.around(ctx, id)
	if err != nil {
		return Instance{}, fmt.Errorf("the provider says that there is no such instance, which the account's list must confirm, and that could not be read: %w", err)
	}
	for _, in := range list {
		if in.ID == id { // the provider contradicts itself: what exists may cost money
			r.seen.Add(r.Kind(), who, id)
			return in, nil
		}
	}
	if !r.seen.Has(r.Kind(), who, id) {
		return Instance{}, fmt.Errorf("this key has never seen such an instance, so that it is gone cannot be told from a wrong id or a key of another account; check id = \"…\" and the key in %s", envOf(r.Kind()))
	}
	return Instance{ID: id, Status: Status{State: Gone, Detail: "no such instance"}}, nil
}

// around is all of the account among which the id would be.
func (r *rented) around(ctx context.Context, id string) ([]Instance, error) {
	if d, ok := r.d.(placer); ok {
		return d.listAround(ctx, id)
	}
	return r.d.list(ctx)
}

func (r *rented) Status(ctx context.Context, id string) (Status, error) {
	in, err := r.find(ctx, id)
	if err != nil {
		return Status{}, r.failed("status", id, err)
	}
	return in.Status, nil
}

func (r *rented) Start(ctx context.Context, id string) error {
	return r.act(ctx, "start", id, r.Can().Start, Running, r.d.start)
}

func (r *rented) Stop(ctx context.Context, id string) error {
	return r.act(ctx, "stop", id, r.Can().Stop, Stopped, r.d.stop)
}

func (r *rented) Destroy(ctx context.Context, id string) error {
	return r.act(ctx, "destroy", id, r.Can().Destroy, Gone, r.d.destroy)
}

// act makes one request toward the goal, of an instance that was read just
// before: nothing is stopped or destroyed that could not be identified.
func (r *rented) act(ctx context.Context, what, id string, can bool, goal State, do func(context.Context, Instance) error) error {
	if !can {
		return r.failed(what, id, ErrUnsupported)
	}
	in, err := r.find(ctx, id)
	if err == nil && !r.there(in, goal) {
		if in.Status.State == Gone {
			err = errors.New("it does not exist any more")
		} else {
			err = r.confirm(ctx, id, goal, do(ctx, in))
		}
	}
	if err != nil {
		return r.failed(what, id, err)
	}
	return nil
}

// confirm takes back a refusal where the instance is at the goal already, as after
// a request by another, or one whose answer was lost.
func (r *rented) confirm(ctx context.Context, id string, goal State, err error) error {
	if err == nil || !errors.Is(err, errState) && !errors.Is(err, errAbsent) {
		return err
	}
	if in, e := r.find(ctx, id); e == nil && r.there(in, goal) {
		return nil
	}
	return err
}

// there says whether nothing is left to do. A stop that could still end charges is
// not there: see stopsFurther.
func (r *rented) there(in Instance, goal State) bool {
	further, can := r.d.(interface{ stopsFurther(Instance) bool })
	return in.Status.State == goal && !(goal == Stopped && can && further.stopsFurther(in))
}

func (r *rented) Snapshot(ctx context.Context, id, name string) (Snapshot, error) {
	if !r.Can().Snapshot {
		return Snapshot{}, r.failed("snapshot", id, ErrUnsupported)
	}
	in, err := r.find(ctx, id)
	if err == nil && in.Status.State == Gone {
		err = errors.New("it does not exist any more")
	}
	var s Snapshot
	if err == nil {
		s, err = r.d.snapshot(ctx, in, name)
	}
	if err != nil {
		return Snapshot{}, r.failed("snapshot", id, err)
	}
	return s, nil
}

func (r *rented) Leftovers(ctx context.Context, id string, after State) ([]Leftover, error) {
	in, err := r.find(ctx, id)
	var list []Leftover
	if err == nil {
		list, err = r.d.leftovers(ctx, in, after)
	}
	if err != nil {
		return nil, r.failed("leftovers", id, err)
	}
	return list, nil
}

func (r *rented) Import(ctx context.Context) ([]Instance, error) {
	who, err := r.who()
	var all []Instance
	if err == nil {
		all, err = r.d.list(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: list the instances: %w", r.Kind(), err)
	}
	kept := make([]Instance, 0, len(all))
	for _, in := range all {
		if in.Status.State == Gone {
			continue
		}
		if r.d.checkID(in.ID) != "" {
			return nil, fmt.Errorf("%s: list the instances: an instance has the impossible id %q", r.Kind(), remote.Short(in.ID, 80))
		}
		r.seen.Add(r.Kind(), who, in.ID)
		if d, ok := r.d.(detailer); ok {
			_ = d.detail(ctx, &in) // what it lacks then is not known, and the list is still whole
		}
		if p, ok := r.d.(pricer); ok {
			p.prices(ctx, &in)
		}
		kept = append(kept, in)
	}
	return kept, nil
}

func (r *rented) Balance(ctx context.Context) (Balance, error) {
	b, err := r.d.balance(ctx)
	if err != nil {
		return Balance{}, fmt.Errorf("%s: balance: %w", r.Kind(), err)
	}
	return b, nil
}

func (r *rented) Address(ctx context.Context, id string) (Address, error) {
	in, err := r.find(ctx, id)
	if d, ok := r.d.(detailer); ok && err == nil {
		err = d.detail(ctx, &in)
	}
	if err == nil && in.Address.Host == "" {
		why := in.NoAddress
		if why == "" {
			why = in.Status.Detail
		}
		err = fmt.Errorf("%w (%s)", ErrNoAddress, why)
	}
	if err != nil {
		return Address{}, r.failed("address", id, err)
	}
	return in.Address, nil
}

func (r *rented) SnapshotState(ctx context.Context, snapshot string) (SnapshotState, error) {
	if !r.Can().Snapshot {
		return SnapshotState{}, r.failed("snapshot state", snapshot, ErrUnsupported)
	}
	s, err := r.d.snapshotState(ctx, snapshot)
	if err != nil {
		return SnapshotState{}, r.failed("snapshot state", snapshot, err)
	}
	return s, nil
}

func (r *rented) failed(what, id string, err error) error {
	return fmt.Errorf("%s: %s of %q: %w", r.Kind(), what, remote.Short(id, 80), err)
}
