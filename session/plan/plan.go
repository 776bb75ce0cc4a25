// Package plan answers what to rent, before anything is rented: how many hours a
// budget buys, whether to rent or to buy, and what a machine that can be taken away
// costs with the work that is lost. It is pure: values in, values out.
//
// Money is exact. What is expected of chance (reclaims) is computed in floating
// point and is an estimate; it is said as one. What is not known is nil, never 0.
package plan

import (
	"errors"
	"math/big"
	"time"

	"rentop/session/billing"
)

// Stretch is what a budget buys.
type Stretch struct {
	PerHour billing.Amount // while it runs, the disk with it
	Run     time.Duration  // hours of running, to the whole second below
	Forever bool           // nothing costs anything: Run has no end
	Lasts   *time.Duration // until the budget is used up on the calendar; nil: how many hours a day is not known
	Rounded bool           // only whole started hours can be bought
}

// Budget says how long money lasts at a price of an hour. disk is what an hour of
// the disk costs, which is kept all day; nil is none. perDay is how many hours of a
// day it runs, 0 where that is not known.
func Budget(money, perHour billing.Amount, disk *billing.Amount, perDay time.Duration, billed billing.Quantum) (Stretch, error) {
	if perDay < 0 || perDay > 24*time.Hour {
		return Stretch{}, errors.New("a day has 24 hours")
	}
	burn, err := withDisk(perHour, disk)
	if err != nil {
		return Stretch{}, err
	}
	s := Stretch{PerHour: burn, Rounded: billed == billing.Hour}
	if perDay > 0 && disk != nil { // the disk is paid for the hours off, too
		off := new(big.Rat).Mul(value(*disk), hours(24*time.Hour-perDay))
		day := new(big.Rat).Add(new(big.Rat).Mul(value(burn), hours(perDay)), off)
		burn.Value = day.Quo(day, hours(perDay))
	}
	run, ends, err := billing.Runway(money, burn)
	if err != nil {
		return Stretch{}, err
	}
	if !ends {
		s.Forever = true
		return s, nil
	}
	if s.Rounded {
		run = run.Truncate(time.Hour)
	}
	s.Run = run
	if perDay > 0 {
		days := float64(run) / float64(perDay)
		if most := float64(1<<63-1) / float64(24*time.Hour); days < most {
			d := time.Duration(days * float64(24*time.Hour))
			s.Lasts = &d
		}
	}
	return s, nil
}

func withDisk(perHour billing.Amount, disk *billing.Amount) (billing.Amount, error) {
	if disk == nil {
		return perHour, nil
	}
	return perHour.Add(*disk)
}

// Saved is how many percent less after is than before; nil where before is nothing.
func Saved(before, after billing.Amount) (*big.Rat, error) {
	less, err := before.Sub(after)
	if err != nil || before.Sign() == 0 {
		return nil, err
	}
	share := new(big.Rat).Quo(value(less), value(before))
	return share.Mul(share, big.NewRat(100, 1)), nil
}

func value(a billing.Amount) *big.Rat {
	if a.Value == nil {
		return new(big.Rat)
	}
	return a.Value
}

func hours(d time.Duration) *big.Rat { return big.NewRat(int64(d), int64(time.Hour)) }

func times(a billing.Amount, by *big.Rat) billing.Amount {
	return billing.Amount{Value: new(big.Rat).Mul(value(a), by), Currency: a.Currency}
}
