package plan

import (
	"errors"
	"math/big"

	"rentop/session/billing"
)

// Names in RentOrBuy.Missing.
const (
	MissingRig   = "the rest of the machine (guides: 30 to 50 % of the card)"
	MissingPower = "power"
)

// Purchase is what could be had in place of an hourly rent. A nil price is not asked
// about; a nil share or power is not known.
type Purchase struct {
	Price    *billing.Amount // of the card
	Rig      *big.Rat        // of the rest of the machine, as a share of Price: 0.4
	Resale   *big.Rat        // what is got for it in the end, as a share of all that was paid; nil: nothing is counted on
	Watts    *big.Rat        // while it works
	PerKWh   *billing.Amount
	PerMonth *billing.Amount // a flat rent, for any number of hours
}

// RentOrBuy is the comparison over a time.
type RentOrBuy struct {
	Hours *big.Rat // of work in all
	Rent  billing.Amount

	Buy           *billing.Amount // nil: not asked about, or Missing says what is not known
	BuyAtLeast    *billing.Amount // its known part
	BuyFromHours  *big.Rat        // hours of work from which buying is cheaper; nil: never, or not known
	BuyFromMonths *big.Rat        // the same at this use

	Flat          *billing.Amount // nil: not asked about
	FlatFromHours *big.Rat        // hours a month from which the flat rent is cheaper; nil: never
	Missing       []string
}

// Compare says what months of work of so many hours each cost: rented by the hour, at
// a flat rent, and bought.
func Compare(perHour billing.Amount, hoursPerMonth *big.Rat, months int64, p Purchase) (RentOrBuy, error) {
	if months < 1 || hoursPerMonth.Sign() <= 0 {
		return RentOrBuy{}, errors.New("a comparison needs at least a month, and more than 0 hours of work in it")
	}
	r := RentOrBuy{Hours: new(big.Rat).Mul(hoursPerMonth, big.NewRat(months, 1))}
	r.Rent = times(perHour, r.Hours)
	if p.PerMonth != nil {
		flat := times(*p.PerMonth, big.NewRat(months, 1))
		if _, err := flat.Cmp(r.Rent); err != nil {
			return r, err
		}
		r.Flat = &flat
		if perHour.Sign() > 0 {
			r.FlatFromHours = new(big.Rat).Quo(value(*p.PerMonth), perHour.Value)
		}
	}
	if p.Price != nil {
		return r, r.buy(perHour, hoursPerMonth, p)
	}
	return r, nil
}

func (r *RentOrBuy) buy(perHour billing.Amount, hoursPerMonth *big.Rat, p Purchase) error {
	fixed := *p.Price
	if p.Rig == nil {
		r.Missing = append(r.Missing, MissingRig)
	} else {
		fixed = times(fixed, new(big.Rat).Add(big.NewRat(1, 1), p.Rig))
	}
	if p.Resale != nil {
		fixed = times(fixed, new(big.Rat).Sub(big.NewRat(1, 1), p.Resale))
	}
	power := billing.Amount{Currency: fixed.Currency}
	if p.Watts == nil || p.PerKWh == nil {
		r.Missing = append(r.Missing, MissingPower)
	} else {
		power = times(*p.PerKWh, new(big.Rat).Quo(p.Watts, big.NewRat(1000, 1)))
	}
	known, err := fixed.Add(times(power, r.Hours))
	if err != nil {
		return err
	}
	spared, err := perHour.Sub(power) // by each hour that is not rented
	if err != nil {
		return err
	}
	if _, err := known.Cmp(r.Rent); err != nil {
		return err
	}
	r.BuyAtLeast = &known
	if len(r.Missing) > 0 {
		return nil
	}
	r.Buy = &known
	if spared.Sign() > 0 {
		r.BuyFromHours = new(big.Rat).Quo(value(fixed), spared.Value)
		r.BuyFromMonths = new(big.Rat).Quo(r.BuyFromHours, hoursPerMonth)
	}
	return nil
}
