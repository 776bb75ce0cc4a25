package session

// What the providers' accounts say of money: balances and charges. All of it is asked
// for only when a person wants it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rentop/remote/provider"
	"rentop/session/billing"
	"rentop/session/ledger"
)

// Account is one provider's, with how long its balance lasts.
type Account struct {
	Provider string
	Balance  billing.Amount  // cash and credit together
	PerHour  *billing.Amount // what its instances cost now; nil: not known of all of them
	Runway   *time.Duration  // nil: it has no end, or is not known
}

// accountAsk bounds all questions to one account.
const accountAsk = 30 * time.Second

// Accounts asks every provider that the config names for its balance. Those that cannot
// tell are left out; those that could not be asked are in the error.
func (f *Fleet) Accounts(ctx context.Context, s *Spending) ([]Account, error) {
	var out []Account
	var faults []error
	for _, kind := range f.providerKinds() {
		ask, cancel := context.WithTimeout(ctx, accountAsk)
		b, err := f.Balance(ask, kind)
		cancel()
		if errors.Is(err, provider.ErrUnsupported) {
			continue
		}
		a := Account{Provider: kind, Balance: billing.Amount{Currency: b.Currency}}
		if err == nil {
			a.Balance, err = balanceOf(b)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		a.runway(s)
		out = append(out, a)
	}
	return out, errors.Join(faults...)
}

// providerKinds are those that the config names, each once.
func (f *Fleet) providerKinds() (kinds []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		kind := s.cfg().Provider
		_, known := provider.FindAPI(kind)
		if (known || f.opt.Providers[kind] != nil) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// balanceOf adds cash and credit.
func balanceOf(b provider.Balance) (billing.Amount, error) {
	sum := billing.Amount{Currency: b.Currency}
	for _, part := range []string{b.Cash, b.Credit} {
		if part == "" {
			continue
		}
		v, err := billing.ParseDecimal(part)
		if err != nil {
			return sum, fmt.Errorf("the balance: %w", err)
		}
		if sum, err = sum.Add(billing.Amount{Value: v, Currency: b.Currency}); err != nil {
			return sum, err
		}
	}
	if sum.Value == nil {
		return sum, errors.New("the balance: its provider told none")
	}
	return sum, nil
}

// runway is how long the balance lasts at what its instances cost now.
func (a *Account) runway(s *Spending) {
	burn := billing.Amount{Currency: a.Balance.Currency}
	for _, i := range s.Instances {
		about := s.About[i.UID]
		if i.Gone || about == nil || about.Provider != a.Provider {
			continue
		}
		if i.PerHour == nil {
			return
		}
		sum, err := burn.Add(*i.PerHour)
		if err != nil {
			return
		}
		burn = sum
	}
	a.PerHour = &burn
	if d, ends, err := billing.Runway(a.Balance, burn); err == nil && ends {
		a.Runway = &d
	}
}

// AskCharges asks the providers that tell it what they charged for each instance since a
// moment, and writes it down. It tells how many did; those that could not be asked are in
// the error.
func (f *Fleet) AskCharges(ctx context.Context, since time.Time) (told int, err error) {
	instances, err := f.ledger.Instances(ctx)
	if err != nil {
		return 0, err
	}
	about, err := f.ledger.About(ctx)
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, i := range instances {
		a := about[i.UID]
		if a == nil || a.Provider == "" || a.ID == "" {
			continue
		}
		prov, err := f.account(a.Provider)
		charger, can := prov.(provider.Charger)
		if err != nil || !can {
			continue // plain lines of a person's own
		}
		ok, err := f.askCharge(ctx, i.UID, charger, a.ID, since)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", i.Name, err))
		}
		if ok {
			told++
		}
	}
	return told, errors.Join(faults...)
}

func (f *Fleet) askCharge(ctx context.Context, uid string, p provider.Charger, id string, since time.Time) (bool, error) {
	events, err := f.ledger.Events(ctx, ledger.Filter{Instance: uid, Kinds: ledger.MeterKinds})
	if err != nil {
		return false, err
	}
	now := f.opt.Now()
	t := ledger.Fold(events, now)
	from, to := t.Begin(), now
	if t.State == billing.Gone {
		to = t.Since
	}
	if from.Before(since) {
		from = since
	}
	if from.IsZero() || !from.Before(to) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, accountAsk)
	defer cancel()
	c, err := p.Charges(ctx, id, from, to)
	if errors.Is(err, provider.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e := ledger.NewEvent(ledger.Charged, uid, "provider", ledger.ChargeData{From: c.From, To: c.To, Amount: c.Amount, Currency: c.Currency})
	_, err = f.ledger.Append(ctx, e)
	return err == nil, err
}
