package session

// What gone instances left behind: a disk, a snapshot, an address that goes on
// costing money when nobody looks any more.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote/provider"
	"rentop/session/ledger"
)

// leftAsk bounds one question to a provider.
const leftAsk = 30 * time.Second

// recordLeft asks a provider what is left of an instance that is gone, and writes it
// down. A provider that cannot tell leaves the record as it is.
func (f *Fleet) recordLeft(ctx context.Context, uid string, prov provider.Provider, id string) error {
	ask, cancel := context.WithTimeout(ctx, leftAsk)
	defer cancel()
	left, err := prov.Leftovers(ask, id, provider.Gone)
	if errors.Is(err, provider.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("what is left of it could not be asked: %w", err)
	}
	data := ledger.LeftData{Items: []ledger.LeftItem{}}
	for _, l := range left {
		data.Items = append(data.Items, ledger.LeftItem{Kind: l.Kind, ID: l.ID, PerMonth: l.PerMonth, Currency: l.Currency})
	}
	was, err := f.ledger.Events(ctx, ledger.Filter{Instance: uid, Kinds: []ledger.Kind{ledger.LeftBehind}})
	if err != nil {
		return err
	}
	e := ledger.NewEvent(ledger.LeftBehind, uid, "provider", data)
	if n := len(was); n > 0 && string(was[n-1].Data) == string(e.Data) || n == 0 && len(left) == 0 {
		return nil
	}
	_, err = f.ledger.Append(context.WithoutCancel(ctx), e)
	return err
}

// RescanLeftovers asks again about every gone instance of which something was left. It
// tells how many were asked, and fails for those that could not be.
func (f *Fleet) RescanLeftovers(ctx context.Context) (asked int, err error) {
	about, err := f.ledger.About(ctx)
	if err != nil {
		return 0, err
	}
	instances, err := f.ledger.Instances(ctx)
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, i := range instances {
		events, err := f.ledger.Events(ctx, ledger.Filter{Instance: i.UID, Kinds: []ledger.Kind{ledger.LeftBehind}})
		if err != nil {
			return asked, err
		}
		items, _ := ledger.Left(events)
		a := about[i.UID]
		if len(items) == 0 || a == nil {
			continue
		}
		prov, err := f.account(a.Provider)
		if err == nil {
			asked++
			err = f.recordLeft(ctx, i.UID, prov, a.ID)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", i.Name, err))
		}
	}
	return asked, errors.Join(faults...)
}
