package billing

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"time"
)

// Names in Bill.Missing.
const (
	MissingPrice    = "price"
	MissingStopped  = "price while stopped"
	MissingHibern   = "price while hibernated"
	MissingDisk     = "disk price"
	MissingDiskSize = "disk size"
	MissingPrepaid  = "price of the prepaid period"
	MissingState    = "state (nobody looked)"
	missingOther    = "price of the " // and a Meter's Kind
)

// Cost is what the intervals cost until at.
//
// Intervals may come in any order and cut in any way. An interval without an
// end goes on until at; one of no length, or that ends before it begins (a clock
// was set back), costs nothing. No moment is charged twice: where intervals
// overlap, the one that began last counts, and the other again after it.
//
// A run is a stretch of adjacent Running intervals without a NewStart. Its units
// are counted from its beginning; each started unit is charged whole, at the
// price in force when it started, so that a bill never falls. The minimum is
// charged at each run's beginning, the floor at that of each of its settlements. A prepaid period costs what was paid, at its
// beginning; in it compute costs nothing more, the disk still does. Disks are
// charged by exact time while running, stopped or hibernated, and so is what
// Plan.Also lists, in its states.
//
// What is not known makes its amounts and the total nil; Known is then the sum
// of the rest, and Missing says what is missing. Different currencies, negative
// rates and unknown quanta are errors.
func Cost(intervals []Interval, at time.Time) (Bill, error) {
	return Between(intervals, time.Time{}, at)
}

// Between is the part of the cost that arose in [from, to): the cost until to
// less the cost until from, so that parts always add up to the whole.
func Between(intervals []Interval, from, to time.Time) (Bill, error) {
	currency, err := check(intervals)
	if err != nil {
		return Bill{}, err
	}
	if !possible(to) {
		return Bill{}, fmt.Errorf("a bill until %s is not possible", to.Format(time.DateOnly))
	}
	list := flatten(intervals)
	var sum tally
	switch {
	case from.IsZero():
		sum.addPrepaid(list, to, 1)
		sum.add(list, to, 1)
	case from.Before(to):
		sum.addPrepaid(list, to, 1)
		sum.addPrepaid(list, from, -1)
		// What ended before the run that from lies in counts alike on both sides.
		open := list[runAt(list, from):]
		sum.add(open, to, 1)
		sum.add(open, from, -1)
	}
	missing := missingIn(list, from, to)
	return sum.bill(currency, missing), nil
}

// check validates the plans and finds their one currency.
func check(intervals []Interval) (string, error) {
	currency := ""
	for _, i := range intervals {
		p := i.Plan
		if err := p.Validate(); err != nil {
			return "", err
		}
		if i.From.IsZero() {
			return "", fmt.Errorf("an interval (%s) has no beginning", i.State)
		}
		if !possible(i.From) || !i.To.IsZero() && !possible(i.To) {
			return "", fmt.Errorf("an interval (%s) from %s to %s is not possible", i.State, i.From.Format(time.DateOnly), i.To.Format(time.DateOnly))
		}
		if p.Currency == "" || !p.priced() {
			continue
		}
		if currency != "" && currency != p.Currency {
			return "", &CurrencyError{currency, p.Currency}
		}
		currency = p.Currency
	}
	return currency, nil
}

// possible bounds times so that their differences fit a time.Duration.
func possible(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2200 }

// tally holds times by rate, multiplied out once at the end: exact and quick.
type tally struct {
	compute, stopped, disk, other []rated
	paid                          big.Rat
	floors                        big.Rat // what settlements cost more than their time
}

type rated struct {
	perHour *big.Rat
	ns      big.Int
}

// charge adds sign times d at a rate; an unknown rate adds nothing.
func charge(to *[]rated, perHour *big.Rat, d time.Duration, sign int64) {
	if perHour == nil || perHour.Sign() == 0 || d <= 0 {
		return
	}
	ns := big.NewInt(int64(d))
	if sign < 0 {
		ns.Neg(ns)
	}
	for i := range *to {
		if r := &(*to)[i]; r.perHour == perHour || r.perHour.Cmp(perHour) == 0 {
			r.ns.Add(&r.ns, ns)
			return
		}
	}
	*to = append(*to, rated{perHour: perHour, ns: *ns})
}

func total(list []rated) *big.Rat {
	sum := new(big.Rat)
	for i := range list {
		hours := new(big.Rat).SetFrac(&list[i].ns, big.NewInt(int64(time.Hour)))
		sum.Add(sum, hours.Mul(hours, list[i].perHour))
	}
	return sum
}

// add counts the flattened list until at, forwards or backwards.
func (t *tally) add(list []Interval, at time.Time, sign int64) {
	var r run
	defer func() { t.settle(&r, sign) }()
	var disk diskRate
	for n, i := range list {
		if !i.From.Before(at) {
			return
		}
		end := i.To
		if end.IsZero() || end.After(at) {
			end = at
		}
		if i.State.exists() {
			charge(&t.disk, disk.of(i.Plan), end.Sub(i.From), sign)
		}
		for _, m := range i.Plan.Also {
			if slices.Contains(m.In, i.State) {
				charge(m.into(t), m.PerHour, end.Sub(i.From), sign)
			}
		}
		if i.State == Running && startsRun(list, n) {
			t.settle(&r, sign)
			r = run{pos: i.From, fresh: true}
		}
		i.To = end
		for _, part := range splitPrepaid(i) {
			switch {
			case part.State == Running:
				from, d := r.advance(part)
				t.spend(&r, &part.Plan, from, d, sign)
			case part.State == Stopped && !part.covered:
				charge(&t.stopped, part.Plan.WhileStopped, part.To.Sub(part.From), sign)
			case part.State == Hibernated && !part.covered:
				charge(&t.stopped, part.Plan.WhileHibernated, part.To.Sub(part.From), sign)
			}
		}
	}
}

// startsRun says whether the running interval n of a flattened list begins a run.
func startsRun(list []Interval, n int) bool {
	return list[n].NewStart || n == 0 || list[n-1].State != Running || !list[n-1].To.Equal(list[n].From)
}

// runAt is the index of the interval in which at lies, or with which its run begins.
func runAt(list []Interval, at time.Time) int {
	n := sort.Search(len(list), func(n int) bool { return list[n].From.After(at) })
	if n == 0 {
		return 0
	}
	for n--; list[n].State == Running && !startsRun(list, n); n-- {
	}
	return n
}

// diskRate remembers the last disk's price: most intervals share their plan.
type diskRate struct {
	gb, perGB *big.Rat
	hours     int
	perHour   *big.Rat
}

func (d *diskRate) of(p Plan) *big.Rat {
	if p.DiskGB != d.gb || p.PerGBMonth != d.perGB || p.MonthHours != d.hours {
		*d = diskRate{p.DiskGB, p.PerGBMonth, p.MonthHours, p.diskPerHour()}
	}
	return d.perHour
}

// addPrepaid counts each prepaid period once, from its beginning on.
func (t *tally) addPrepaid(list []Interval, at time.Time, sign int64) {
	var seen []*Prepaid
	for _, i := range list {
		p := i.Plan.Prepaid
		if p == nil || p.Paid == nil || !p.From.Before(at) || slices.ContainsFunc(seen, p.same) {
			continue
		}
		seen = append(seen, p)
		paid := new(big.Rat).Set(p.Paid)
		if sign < 0 {
			paid.Neg(paid)
		}
		t.paid.Add(&t.paid, paid)
	}
}

// bill multiplies out.
func (t *tally) bill(currency string, missing []string) Bill {
	amount := func(r *big.Rat) *Amount { return &Amount{r, currency} }
	compute := total(t.compute)
	compute.Add(compute, &t.paid)
	compute.Add(compute, &t.floors)
	stopped, disk, other := total(t.stopped), total(t.disk), total(t.other)
	known := new(big.Rat).Add(compute, stopped)
	known.Add(known, disk).Add(known, other)
	b := Bill{Compute: amount(compute), Stopped: amount(stopped), Disk: amount(disk), Other: amount(other), Known: amount(known), Total: amount(new(big.Rat).Set(known)), Missing: missing}
	for _, m := range missing {
		b.Total = nil
		switch m {
		case MissingPrice, MissingPrepaid:
			b.Compute = nil
		case MissingStopped, MissingHibern:
			b.Stopped = nil
		case MissingDisk, MissingDiskSize:
			b.Disk = nil
		case MissingState:
			b.Compute, b.Stopped, b.Disk, b.Other = nil, nil, nil, nil
		default: // missingOther
			b.Other = nil
		}
	}
	return b
}

// missingIn names what is not known about the time in [from, to).
func missingIn(list []Interval, from, to time.Time) []string {
	var missing []string
	add := func(name string) {
		if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	for _, i := range list {
		if i.To.IsZero() || i.To.After(to) {
			i.To = to
		}
		if i.From.Before(from) {
			i.From = from
		}
		if p := i.Plan.Prepaid; p != nil && p.Paid == nil && !p.From.Before(from) && p.From.Before(to) {
			add(MissingPrepaid)
		}
		if !i.From.Before(i.To) {
			continue
		}
		switch i.State {
		case Gone:
			continue
		case Running, Stopped, Hibernated:
			for _, part := range splitPrepaid(i) {
				if part.covered {
					continue
				}
				if i.State == Running && i.Plan.PerHour == nil {
					add(MissingPrice)
				}
				if i.State == Stopped && i.Plan.WhileStopped == nil {
					add(MissingStopped)
				}
				if i.State == Hibernated && i.Plan.WhileHibernated == nil {
					add(MissingHibern)
				}
			}
			for _, m := range i.Plan.Also {
				if m.PerHour == nil && slices.Contains(m.In, i.State) {
					add(m.missing())
				}
			}
			if name := i.Plan.diskMissing(); name != "" {
				add(name)
			}
		default:
			add(MissingState)
		}
	}
	return missing
}
