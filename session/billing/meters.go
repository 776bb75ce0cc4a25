package billing

// What is billed beside compute and the plan's own disk.

import (
	"fmt"
	"math/big"
	"slices"
	"time"
)

// exists says whether an instance in that state has a disk.
func (s State) exists() bool { return s == Running || s == Stopped || s == Hibernated }

// isDisk says what a meter is counted as.
func (m Meter) isDisk() bool { return m.Kind == "disk" || m.Kind == "volume" }

func (m Meter) into(t *tally) *[]rated {
	if m.isDisk() {
		return &t.disk
	}
	return &t.other
}

func (m Meter) missing() string {
	if m.isDisk() {
		return MissingDisk
	}
	return missingOther + m.Kind
}

// PerGBMonth is the price of an hour of so many GB at a price a GB and month of
// that many hours; 0 is 730.
func PerGBMonth(gb, price *big.Rat, hours int) *big.Rat {
	return Plan{DiskGB: gb, PerGBMonth: price, MonthHours: hours}.diskPerHour()
}

// check says what in the parts beside the plain rates cannot be billed.
func (p Plan) check() error {
	last := time.Duration(0)
	for _, s := range p.Steps {
		switch {
		case s.PerHour == nil || s.PerHour.Sign() < 0:
			return fmt.Errorf("the price after %s of a run must be 0 or more", s.After)
		case s.After <= last:
			return fmt.Errorf("the steps of the price must begin later and later, after more than 0 hours (%s)", s.After)
		}
		last = s.After
	}
	if p.Floor != nil && p.Floor.Sign() < 0 {
		return fmt.Errorf("the least amount of a settlement is negative (%s)", p.Floor.FloatString(2))
	}
	if p.Settle < 0 || p.Settle > 24*time.Hour || p.Settle > 0 && 24*time.Hour%p.Settle != 0 {
		return fmt.Errorf("a settlement each %s is not possible: use a part of a day, such as 1h", p.Settle)
	}
	for _, m := range p.Also {
		if m.PerHour != nil && m.PerHour.Sign() < 0 {
			return fmt.Errorf("the price of the %s is negative", clip(m.Kind))
		}
		if m.Kind == "" || len(m.In) == 0 || slices.ContainsFunc(m.In, func(s State) bool { return !s.exists() }) {
			return fmt.Errorf("what is billed beside the rate needs a name and the states in which it is: running, stopped, hibernated")
		}
	}
	return nil
}
