package billing

import (
	"errors"
	"math/big"
	"time"
)

// Refund is what comes back of a prepaid period that is cancelled at a moment: the
// part of what was paid for the time that is left, less the discount that was
// enjoyed until then (against perHour, the price without one) with a penalty on
// it, 0.05 for 5 %. It is never below 0. The rule is inferred from Vast.ai's own
// example; others may have another.
func (p Prepaid) Refund(at time.Time, perHour, penalty *big.Rat) (*big.Rat, error) {
	if p.Paid == nil || perHour == nil || penalty == nil || !p.From.Before(p.To) {
		return nil, errors.New("a refund needs what was paid, from when to when, the price without a discount and the penalty")
	}
	if at.Before(p.From) {
		at = p.From
	}
	if at.After(p.To) {
		at = p.To
	}
	hours := func(d time.Duration) *big.Rat { return big.NewRat(int64(d), int64(time.Hour)) }
	whole, used := hours(p.To.Sub(p.From)), hours(at.Sub(p.From))
	paidPerHour := new(big.Rat).Quo(p.Paid, whole)
	back := new(big.Rat).Mul(paidPerHour, new(big.Rat).Sub(whole, used))
	if enjoyed := new(big.Rat).Sub(perHour, paidPerHour); enjoyed.Sign() > 0 {
		enjoyed.Mul(enjoyed, used).Mul(enjoyed, new(big.Rat).Add(big.NewRat(1, 1), penalty))
		back.Sub(back, enjoyed)
	}
	if back.Sign() < 0 {
		back.SetInt64(0)
	}
	return back, nil
}
