package billing

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// ParseQuantum reads a unit of billing; "" is Second.
func ParseQuantum(s string) (Quantum, error) {
	switch q := Quantum(s); q {
	case "":
		return Second, nil
	case Second, Minute, MinuteExact, Hour, HourExact:
		return q, nil
	}
	return "", fmt.Errorf("%q is no unit of billing: use second, minute, minute-exact, hour or hour-exact", clip(s))
}

// unit is the length of a unit that is charged whole once started; 0 where
// fractions count.
func (q Quantum) unit() time.Duration {
	switch q {
	case Minute:
		return time.Minute
	case Hour:
		return time.Hour
	case MinuteExact, HourExact:
		return 0
	}
	return time.Second
}

// maxMinimum bounds MinSeconds: longer ones are prepaid periods.
const maxMinimum = 31 * 24 * 3600

// Validate says what in a plan cannot be billed.
func (p Plan) Validate() error {
	for _, r := range []struct {
		name string
		rate *big.Rat
	}{{"price", p.PerHour}, {"price while stopped", p.WhileStopped}, {"price while hibernated", p.WhileHibernated}, {"disk size", p.DiskGB}, {"disk price", p.PerGBMonth}} {
		if r.rate != nil && r.rate.Sign() < 0 {
			return fmt.Errorf("the %s is negative (%s): it must be 0 or more", r.name, r.rate.FloatString(2))
		}
	}
	if _, err := ParseQuantum(string(p.Billed)); err != nil {
		return err
	}
	if p.MinSeconds < 0 || p.MinSeconds > maxMinimum {
		return fmt.Errorf("a minimum of %d seconds for each start is not possible: use 0 to %d", p.MinSeconds, maxMinimum)
	}
	if p.MonthHours < 0 || p.MonthHours > 744 {
		return fmt.Errorf("a month of %d hours is not possible: use 720 or 730", p.MonthHours)
	}
	if pre := p.Prepaid; pre != nil {
		if pre.From.IsZero() || !pre.From.Before(pre.To) {
			return fmt.Errorf("the prepaid period must begin before it ends (%s to %s)", pre.From.Format(time.DateOnly), pre.To.Format(time.DateOnly))
		}
		if pre.Paid != nil && pre.Paid.Sign() < 0 {
			return fmt.Errorf("the price of the prepaid period is negative (%s)", pre.Paid.FloatString(2))
		}
	}
	if err := p.check(); err != nil {
		return err
	}
	if p.Currency == "" && p.priced() {
		return fmt.Errorf("a price without a currency: say which one, such as CNY or USD")
	}
	return nil
}

// priced says whether any rate of the plan is more than nothing.
func (p Plan) priced() bool {
	more := func(r *big.Rat) bool { return r != nil && r.Sign() > 0 }
	if slices.ContainsFunc([]*big.Rat{p.PerHour, p.WhileStopped, p.WhileHibernated, p.PerGBMonth, p.Floor}, more) ||
		slices.ContainsFunc(p.Steps, func(s Step) bool { return more(s.PerHour) }) ||
		slices.ContainsFunc(p.Also, func(m Meter) bool { return more(m.PerHour) }) {
		return true
	}
	return p.Prepaid != nil && p.Prepaid.Paid != nil && p.Prepaid.Paid.Sign() > 0
}

// diskMissing names what is not known about the disk. A plan that says nothing
// of a disk has none of its own price.
func (p Plan) diskMissing() string {
	zero := func(r *big.Rat) bool { return r != nil && r.Sign() == 0 }
	switch {
	case zero(p.DiskGB), zero(p.PerGBMonth):
		return ""
	case p.DiskGB != nil && p.PerGBMonth == nil:
		return MissingDisk
	case p.DiskGB == nil && p.PerGBMonth != nil:
		return MissingDiskSize
	}
	return ""
}

// diskPerHour is the disk's price of an hour; nil where there is none or it is
// not known.
func (p Plan) diskPerHour() *big.Rat {
	if p.DiskGB == nil || p.PerGBMonth == nil {
		return nil
	}
	hours := int64(p.MonthHours)
	if hours == 0 {
		hours = hoursPerMonth
	}
	r := new(big.Rat).Mul(p.DiskGB, p.PerGBMonth)
	return r.Quo(r, big.NewRat(hours, 1))
}

// key is a plan as text: equal for equal plans.
func (p Plan) key() string {
	var b strings.Builder
	rat := func(r *big.Rat) {
		if r == nil {
			b.WriteString("?|")
			return
		}
		b.WriteString(r.RatString() + "|")
	}
	rat(p.PerHour)
	rat(p.WhileStopped)
	rat(p.DiskGB)
	rat(p.PerGBMonth)
	fmt.Fprintf(&b, "%s|%s|%d|%d|", p.Currency, p.Billed, p.MinSeconds, p.MonthHours)
	if p.Prepaid != nil {
		rat(p.Prepaid.Paid)
		fmt.Fprintf(&b, "%d|%d", p.Prepaid.From.UnixNano(), p.Prepaid.To.UnixNano())
	}
	if p.WhileHibernated != nil || p.Floor != nil || p.Settle != 0 {
		b.WriteString("h")
		rat(p.WhileHibernated)
		rat(p.Floor)
		fmt.Fprintf(&b, "%d|", p.Settle)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "s%d|", s.After)
		rat(s.PerHour)
	}
	for _, m := range p.Also {
		fmt.Fprintf(&b, "m%q%v|", m.Kind, m.In)
		rat(m.PerHour)
	}
	return b.String()
}

// Equal says whether two plans bill alike; EffectiveFrom does not count.
func (p Plan) Equal(q Plan) bool { return p.key() == q.key() }

func (p *Prepaid) same(q *Prepaid) bool {
	return p == q || p.From.Equal(q.From) && p.To.Equal(q.To) && p.Paid.Cmp(q.Paid) == 0
}

// BurnPerHour is what an hour in a state costs, the disk with it; nil where it is
// not known. It leaves a prepaid period out of account: see BurnAt.
func BurnPerHour(p Plan, s State) *Amount {
	rate := new(big.Rat)
	switch s {
	case Gone:
		return &Amount{rate, p.Currency}
	case Running:
		if p.PerHour == nil {
			return nil
		}
		rate.Set(p.PerHour)
	case Stopped:
		if p.WhileStopped == nil {
			return nil
		}
		rate.Set(p.WhileStopped)
	case Hibernated:
		if p.WhileHibernated == nil {
			return nil
		}
		rate.Set(p.WhileHibernated)
	default:
		return nil
	}
	if p.diskMissing() != "" {
		return nil
	}
	if disk := p.diskPerHour(); disk != nil {
		rate.Add(rate, disk)
	}
	for _, m := range p.Also {
		if !slices.Contains(m.In, s) {
			continue
		}
		if m.PerHour == nil {
			return nil
		}
		rate.Add(rate, m.PerHour)
	}
	return &Amount{rate, p.Currency}
}

// BurnAt is BurnPerHour at a moment: inside a prepaid period only the disk costs.
func BurnAt(p Plan, s State, at time.Time) *Amount {
	if pre := p.Prepaid; pre != nil && !at.Before(pre.From) && at.Before(pre.To) {
		p.PerHour, p.WhileStopped, p.WhileHibernated = new(big.Rat), new(big.Rat), new(big.Rat)
	}
	return BurnPerHour(p, s)
}
