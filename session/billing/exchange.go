package billing

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Rate says that 1 of From was worth Value of To, from At on.
type Rate struct {
	From, To string
	Value    *big.Rat
	At       time.Time
}

// Exchange holds the rates that the person gave. Nothing is converted without
// one; there are no rates of ours.
type Exchange struct {
	rates []Rate // by At
}

// Add takes a rate in. A later one for the same pair replaces it from its At on.
func (x *Exchange) Add(r Rate) error {
	if r.From == "" || r.To == "" || r.From == r.To {
		return fmt.Errorf("an exchange rate needs two currencies, not %q and %q", r.From, r.To)
	}
	if r.Value == nil || r.Value.Sign() <= 0 {
		return fmt.Errorf("the exchange rate %s to %s must be more than 0", r.From, r.To)
	}
	n := len(x.rates)
	for n > 0 && x.rates[n-1].At.After(r.At) {
		n--
	}
	x.rates = slices.Insert(x.rates, n, r)
	return nil
}

// Find gives the rate in force at a moment: the last one given until then, else
// the first one given after it. It is turned round where only the other direction is known.
func (x *Exchange) Find(from, to string, at time.Time) (Rate, bool) {
	var found Rate
	ok := false
	for _, r := range x.rates {
		if ok && r.At.After(at) {
			break
		}
		switch {
		case r.From == from && r.To == to:
			found, ok = r, true
		case r.From == to && r.To == from:
			found, ok = Rate{from, to, new(big.Rat).Inv(r.Value), r.At}, true
		}
	}
	return found, ok
}

// Convert gives an amount in another currency, or a *CurrencyError.
func (x *Exchange) Convert(a Amount, to string, at time.Time) (Amount, error) {
	if a.Currency == to || a.Currency == "" && a.Sign() == 0 {
		return Amount{a.rat(), to}, nil
	}
	r, ok := x.Find(a.Currency, to, at)
	if !ok {
		return Amount{}, &CurrencyError{a.Currency, to}
	}
	return Amount{new(big.Rat).Mul(a.rat(), r.Value), to}, nil
}

// Sum adds amounts in one currency, or fails with a *CurrencyError where a rate
// is missing. A nil Exchange has no rates.
func (x *Exchange) Sum(amounts []Amount, to string, at time.Time) (Amount, error) {
	if x == nil {
		x = &Exchange{}
	}
	sum := Amount{new(big.Rat), to}
	for _, a := range amounts {
		c, err := x.Convert(a, to, at)
		if err != nil {
			return Amount{}, err
		}
		sum.Value.Add(sum.Value, c.rat())
	}
	return sum, nil
}

// Runway is how long a balance lasts at a burn per hour, to the whole second
// below. lasts is false where nothing is burnt: it has no end.
func Runway(balance, perHour Amount) (d time.Duration, lasts bool, err error) {
	if _, err := balance.common(perHour); err != nil {
		return 0, false, err
	}
	if perHour.Sign() < 0 {
		return 0, false, errors.New("a negative burn has no runway")
	}
	if perHour.Sign() == 0 {
		return 0, false, nil
	}
	if balance.Sign() <= 0 {
		return 0, true, nil
	}
	s := new(big.Rat).Quo(balance.rat(), perHour.rat())
	s.Mul(s, big.NewRat(3600, 1))
	whole := new(big.Int).Quo(s.Num(), s.Denom())
	const most = int64(1<<63-1) / int64(time.Second)
	if !whole.IsInt64() || whole.Int64() > most {
		return time.Duration(most) * time.Second, true, nil
	}
	return time.Duration(whole.Int64()) * time.Second, true, nil
}
