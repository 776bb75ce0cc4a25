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
		if err := r.more(&p); err != nil {
			return p, err
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

// more reads the parts of a rate that most plans do not have.
func (r *Rate) more(p *billing.Plan) (err error) {
	if p.WhileHibernated, err = price("rate.while_hibernated", r.WhileHibernated); err != nil {
		return err
	}
	if p.Floor, err = price("rate.floor", r.Floor); err != nil {
		return err
	}
	switch r.Settle {
	case "":
	case "hour":
		p.Settle = time.Hour
	default:
		return fmt.Errorf(`rate.settle is "hour" or left out, not %q`, remote.Clean(r.Settle))
	}
	for _, s := range r.Steps {
		after, err := time.ParseDuration(s.After)
		if err != nil || after <= 0 || after%time.Second != 0 {
			return fmt.Errorf("rate.steps: after is a time such as 96h, not %q", remote.Clean(s.After))
		}
		step := billing.Step{After: after}
		if step.PerHour, err = price("rate.steps.per_hour", s.PerHour); err != nil {
			return err
		}
		p.Steps = append(p.Steps, step)
	}
	for _, m := range r.Also {
		meter, err := m.meter()
		if err != nil {
			return err
		}
		p.Also = append(p.Also, meter)
	}
	return nil
}

func (m Meter) meter() (out billing.Meter, err error) {
	if CheckName(m.What) != "" {
		return out, fmt.Errorf(`rate.also: what is a word such as ip or volume, not %q`, remote.Clean(m.What))
	}
	out.Kind = m.What
	for _, s := range m.While {
		out.In = append(out.In, billing.State(s)) // checked with the plan
	}
	if len(m.While) == 0 {
		out.In = []billing.State{billing.Running, billing.Stopped, billing.Hibernated}
	}
	if out.PerHour, err = price("rate.also.per_hour", m.PerHour); err != nil {
		return out, err
	}
	gb, err := price("rate.also.per_gb_month", m.PerGBMonth)
	switch {
	case err != nil:
		return out, err
	case (gb == nil) == (out.PerHour == nil) || gb != nil && (m.GB < 1 || m.GB > maxDiskGB):
		return out, fmt.Errorf("rate.also: %s needs per_hour, or gb and per_gb_month", m.What)
	case m.MonthHours != 0 && m.MonthHours != 720 && m.MonthHours != 730:
		return out, fmt.Errorf("rate.also: month_hours is 720 or 730, not %d", m.MonthHours)
	case gb != nil:
		out.PerHour = billing.PerGBMonth(new(big.Rat).SetInt64(m.GB), gb, m.MonthHours)
	}
	return out, nil
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
