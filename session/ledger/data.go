package ledger

import (
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"rentop/session/billing"
)

// NewEvent makes an event of a value for its Data; nil is none. At is set by
// Append to now unless the caller sets it. The value must be one that JSON can hold:
// where it cannot, Append refuses the event.
func NewEvent(k Kind, instance, source string, data any) Event {
	e := Event{Kind: k, Instance: instance, Source: source}
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil {
			b = json.RawMessage("unwritable") // no JSON: refused by Append
		}
		e.Data = b
	}
	return e
}

// PlanData is the Data of PlanSet. Numbers are decimals or fractions ("8/3"), ""
// where not known.
type PlanData struct {
	Currency     string       `json:"currency,omitempty"`
	PerHour      string       `json:"per_hour,omitempty"`
	Billed       string       `json:"billed,omitempty"`
	MinSeconds   int64        `json:"min_seconds,omitempty"`
	WhileStopped string       `json:"while_stopped,omitempty"`
	DiskGB       string       `json:"disk_gb,omitempty"`
	PerGBMonth   string       `json:"per_gb_month,omitempty"`
	MonthHours   int          `json:"month_hours,omitempty"`
	Prepaid      *PrepaidData `json:"prepaid,omitempty"`

	WhileHibernated string      `json:"while_hibernated,omitempty"`
	Steps           []StepData  `json:"steps,omitempty"`
	Floor           string      `json:"floor,omitempty"`
	SettleSeconds   int64       `json:"settle_seconds,omitempty"`
	Also            []MeterData `json:"also,omitempty"`
}

// StepData is a billing.Step.
type StepData struct {
	AfterSeconds int64  `json:"after_seconds"`
	PerHour      string `json:"per_hour"`
}

// MeterData is a billing.Meter.
type MeterData struct {
	Kind    string          `json:"kind"`
	PerHour string          `json:"per_hour,omitempty"`
	In      []billing.State `json:"in"`
}

// PrepaidData is a billing.Prepaid.
type PrepaidData struct {
	Paid string    `json:"paid,omitempty"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// PlanDataOf writes a plan down exactly. Its EffectiveFrom is the event's At.
func PlanDataOf(p billing.Plan) PlanData {
	d := PlanData{
		Currency: p.Currency, PerHour: ratText(p.PerHour), Billed: string(p.Billed), MinSeconds: p.MinSeconds,
		WhileStopped: ratText(p.WhileStopped), DiskGB: ratText(p.DiskGB), PerGBMonth: ratText(p.PerGBMonth), MonthHours: p.MonthHours,
	}
	if p.Prepaid != nil {
		d.Prepaid = &PrepaidData{Paid: ratText(p.Prepaid.Paid), From: p.Prepaid.From, To: p.Prepaid.To}
	}
	d.WhileHibernated, d.Floor, d.SettleSeconds = ratText(p.WhileHibernated), ratText(p.Floor), int64(p.Settle/time.Second)
	for _, s := range p.Steps {
		d.Steps = append(d.Steps, StepData{AfterSeconds: int64(s.After / time.Second), PerHour: ratText(s.PerHour)})
	}
	for _, m := range p.Also {
		d.Also = append(d.Also, MeterData{Kind: m.Kind, PerHour: ratText(m.PerHour), In: m.In})
	}
	return d
}

// Plan reads it back.
func (d PlanData) Plan() (billing.Plan, error) {
	p := billing.Plan{Currency: d.Currency, Billed: billing.Quantum(d.Billed), MinSeconds: d.MinSeconds, MonthHours: d.MonthHours}
	if d.Prepaid != nil {
		p.Prepaid = &billing.Prepaid{From: d.Prepaid.From, To: d.Prepaid.To}
	}
	type field struct {
		text string
		to   **big.Rat
	}
	fields := []field{{d.PerHour, &p.PerHour}, {d.WhileStopped, &p.WhileStopped}, {d.DiskGB, &p.DiskGB}, {d.PerGBMonth, &p.PerGBMonth},
		{d.WhileHibernated, &p.WhileHibernated}, {d.Floor, &p.Floor}}
	if d.Prepaid != nil {
		fields = append(fields, field{d.Prepaid.Paid, &p.Prepaid.Paid})
	}
	p.Settle = time.Duration(d.SettleSeconds) * time.Second
	p.Steps, p.Also = make([]billing.Step, len(d.Steps)), make([]billing.Meter, len(d.Also))
	for i, s := range d.Steps {
		p.Steps[i].After = time.Duration(s.AfterSeconds) * time.Second
		fields = append(fields, field{s.PerHour, &p.Steps[i].PerHour})
	}
	for i, m := range d.Also {
		p.Also[i].Kind, p.Also[i].In = m.Kind, m.In
		fields = append(fields, field{m.PerHour, &p.Also[i].PerHour})
	}
	for _, f := range fields {
		if err := readRat(f.text, f.to); err != nil {
			return billing.Plan{}, err
		}
	}
	return p, p.Validate()
}

// StartedAt is a box's start by our clock: what the instance's clock said, less
// what that clock is ahead of ours. Zero where the start could not be read.
func StartedAt(boxStart, instanceClock, ourClock time.Time) time.Time {
	if boxStart.IsZero() || instanceClock.IsZero() {
		return time.Time{}
	}
	return ourClock.Add(-instanceClock.Sub(boxStart))
}

func ratText(r *big.Rat) string {
	if r == nil {
		return ""
	}
	return r.RatString()
}

// readRat reads what ratText wrote; an exponent or a monster is refused.
func readRat(s string, to **big.Rat) error {
	if s == "" {
		return nil
	}
	for _, c := range s {
		if (c < '0' || c > '9') && c != '/' && c != '.' && c != '-' {
			return fmt.Errorf("%q is not a number", s)
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > 200 {
		return fmt.Errorf("%.50q is not a number", s)
	}
	*to = r
	return nil
}
