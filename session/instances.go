package session

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/ledger"
)

// Add writes an instance to the config and makes its session.
func (f *Fleet) Add(in config.Instance) error {
	if what := in.Check(); what != "" {
		return &config.Error{File: "add", What: what}
	}
	return f.update(func(text []byte) ([]byte, error) { return config.Add(text, in) })
}

// Edit changes an instance; its history stays, also under a new name.
func (f *Fleet) Edit(name string, in config.Instance) error {
	if what := in.Check(); what != "" {
		return &config.Error{File: "edit", What: what}
	}
	s, err := f.Session(name)
	if err != nil {
		return err
	}
	if err := s.leaveAlone(); err != nil {
		return err
	}
	return f.updateThen(
		func(text []byte) ([]byte, error) { return config.Edit(text, name, in) },
		func() error {
			if in.Name == name {
				return nil
			}
			return f.ledger.Rename(f.ctx, name, in.Name)
		})
}

// Remove takes an instance out of the config, forgets its host key and its
// secrets, and closes its record. The machine itself is not touched: what it
// costs goes on.
func (f *Fleet) Remove(name string) error {
	s, err := f.Session(name)
	if err != nil {
		return err
	}
	if err := s.leaveAlone(); err != nil {
		return err
	}
	return f.updateThen(
		func(text []byte) ([]byte, error) { return config.Remove(text, name) },
		func() error {
			_ = f.opt.Secrets.Delete(s.uid + "/password") // none kept is fine
			return errors.Join(f.keys.Forget(s.uid), f.ledger.Remove(f.ctx, name))
		})
}

// Instance is an instance as configured.
func (f *Fleet) Instance(name string) (config.Instance, error) {
	s, err := f.Session(name)
	if err != nil {
		return config.Instance{}, err
	}
	return s.cfg(), nil
}

func (f *Fleet) update(change func([]byte) ([]byte, error)) error {
	return f.updateThen(change, func() error { return nil })
}

func (f *Fleet) updateThen(change func([]byte) ([]byte, error), then func() error) error {
	if f.opt.Instances != nil {
		return errors.New("the demo's instances cannot be added to or changed; start rentop without demo")
	}
	return f.inTurn(func() error {
		if err := config.Update(f.ConfigFile(), change); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
		return f.follow()
	})
}

func sameConfig(a, b config.Instance) bool { return reflect.DeepEqual(a, b) }

// recordPlans writes how instances are billed to the ledger where that changed:
// what was billed before stays billed as it was.
func (f *Fleet) recordPlans(names []string, uids map[string]string, all map[string]config.Instance) error {
	written, err := f.ledger.Events(f.ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.PlanSet}})
	if err != nil {
		return err
	}
	last := map[string]string{} // by uid
	for _, e := range written {
		last[e.Instance] = string(e.Data)
	}
	var changed []ledger.Event
	for _, name := range names {
		plan, err := all[name].Plan()
		if err != nil {
			return fmt.Errorf("instance %s: %w", name, err)
		}
		e := ledger.NewEvent(ledger.PlanSet, uids[name], "user", ledger.PlanDataOf(plan))
		if string(e.Data) != last[e.Instance] {
			changed = append(changed, e)
		}
	}
	_, err = f.ledger.Append(f.ctx, changed...)
	return err
}

// recordDescriptions writes what the config says of instances to the ledger where that
// changed: a bill by provider or tag must know it when they are long gone.
func (f *Fleet) recordDescriptions(names []string, uids map[string]string, all map[string]config.Instance) error {
	known, err := f.ledger.About(f.ctx)
	if err != nil {
		return err
	}
	var changed []ledger.Event
	for _, name := range names {
		in, was := all[name], ledger.Description{}
		if a := known[uids[name]]; a != nil {
			was = a.Description
		}
		is := ledger.Description{Provider: in.Provider, ID: in.ID, Tags: in.Tags}
		if is.Provider != was.Provider || is.ID != was.ID || !slices.Equal(is.Tags, was.Tags) {
			changed = append(changed, ledger.NewEvent(ledger.Described, uids[name], "user", is))
		}
	}
	_, err = f.ledger.Append(f.ctx, changed...)
	return err
}

// exchangeRates are those of the config.
func (f *Fleet) exchangeRates(file *config.File) (billing.Exchange, error) {
	var ex billing.Exchange
	for pair, rate := range file.Money.Rates {
		r, err := billing.ParseDecimal(rate)
		if err != nil {
			return ex, fmt.Errorf("money.rates.%s: %w", pair, err)
		}
		if err := ex.Add(billing.Rate{From: pair[:3], To: pair[4:], Value: r}); err != nil {
			return ex, fmt.Errorf("money.rates.%s: %w", pair, err)
		}
	}
	return ex, nil
}
