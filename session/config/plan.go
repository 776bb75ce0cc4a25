package config

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/billing"
)

const maxDiskGB = 1_000_000_000

// Plan is how the instance is billed; parts that the config does not give are nil.
func (in Instance) Plan() (billing.Plan, error) {
	var p billing.Plan
	var err error
	if r := in.Rate; r != nil {
		if r.Currency == "" {
			return p, fmt.Errorf(`rate needs currency = "CNY" or another`)
		}
		if p.Currency, err = billing.ParseCurrency(strings.TrimSpace(r.Currency)); err != nil {
			return p, fmt.Errorf("rate.currency: %w", err)
		}
		if p.PerHour, err = price("rate.per_hour", r.PerHour); err != nil {
			return p, err
		}
		if p.WhileStopped, err = price("rate.while_stopped", r.WhileStopped); err != nil {
			return p, err
		}
		if p.Billed, err = billing.ParseQuantum(r.Billed); err != nil {
			return p, fmt.Errorf("rate.billed: %w", err)
		}
		if r.Minimum != "" {
			d, err := time.ParseDuration(r.Minimum)
			if err != nil || d < 0 || d%time.Second != 0 {
				return p, fmt.Errorf("rate.minimum is a time such as 60s, not %q", remote.Clean(r.Minimum))
			}
			p.MinSeconds = int64(d / time.Second)
		}
		if r.Prepaid != nil {
			if p.Prepaid, err = r.Prepaid.plan(); err != nil {
				return p, err
			}
		}
	}
	if d := in.Disk; d != nil {
		if p.Currency == "" {
			return p, fmt.Errorf("disk has a price but rate has no currency for it")
		}
		if d.MonthHours != 0 && d.MonthHours != 720 && d.MonthHours != 730 {
			return p, fmt.Errorf("disk.month_hours is 720 or 730, not %d", d.MonthHours)
		}
		if d.GB > maxDiskGB {
			return p, fmt.Errorf("disk.gb is %d: more than a billion GB, a slip of the key?", d.GB)
		}
		p.DiskGB, p.MonthHours = new(big.Rat).SetInt64(d.GB), d.MonthHours
		if p.PerGBMonth, err = price("disk.per_gb_month", d.PerGBMonth); err != nil {
			return p, err
		}
	}
	return p, p.Validate()
}

func (p Prepaid) plan() (*billing.Prepaid, error) {
	paid, err := price("rate.prepaid.paid", p.Paid)
	if err != nil {
		return nil, err
	}
	from, err1 := when(p.From)
	to, err2 := when(p.To)
	if paid == nil || err1 != nil || err2 != nil || !from.Before(to) {
		return nil, fmt.Errorf(`rate.prepaid needs paid, from and to: { paid = "576", from = "2026-11-01", to = "2026-12-01" }`)
	}
	return &billing.Prepaid{Paid: paid, From: from, To: to}, nil
}

// when reads RFC 3339, or a date as its local midnight.
func when(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.ParseInLocation(time.DateOnly, s, time.Local)
}

// price reads a decimal that may be absent (nil) but not negative.
func price(key, s string) (*big.Rat, error) {
	if s == "" {
		return nil, nil
	}
	r, err := billing.ParseRate(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return r, nil
}
