package command

import (
	"encoding/json"
	"fmt"
	"math"

	"rentop/session"
)

// receipt is a job's receipt in JSON. Names are added, never changed; null is not known.
type receipt struct {
	Watched     float64      `json:"watched"` // the part of its time that was watched, 0 to 1
	Partial     bool         `json:"partial"` // the figures below are of the watched part, but gpu_hours and cost
	GPUs        *int         `json:"gpus"`
	GPUHours    *float64     `json:"gpu_hours"`
	BusyHours   *float64     `json:"busy_gpu_hours"` // hours times utilisation
	Mean        *float64     `json:"util_mean"`
	Peak        *float64     `json:"util_peak"`
	Memory      []*float64   `json:"memory_peak"` // bytes, by GPU
	KWh         *float64     `json:"energy_kwh"`
	Cost        *json.Number `json:"cost"` // of the whole instance while it ran
	AtLeast     *json.Number `json:"cost_at_least"`
	Currency    *string      `json:"currency"`
	PerBusyHour *json.Number `json:"cost_per_busy_gpu_hour"`

	of session.Receipt
}

func receiptOf(r session.Receipt) *receipt {
	u := &receipt{
		Watched: round(r.Watched, 4), Partial: r.Partial, GPUHours: rounded(r.GPUHours), BusyHours: rounded(r.Busy), Mean: rounded(r.Mean), Peak: rounded(r.Peak),
		Memory: append([]*float64{}, r.Mem...), KWh: rounded(r.KWh()), Cost: money(r.Cost, 4), AtLeast: money(r.AtLeast, 4), PerBusyHour: money(r.PerBusyHour(), 4),
	}
	u.of = r
	if r.GPUs > 0 {
		u.GPUs = &r.GPUs
	}
	if r.AtLeast != nil && r.AtLeast.Currency != "" {
		u.Currency = &r.AtLeast.Currency
	}
	return u
}

func rounded(v *float64) *float64 {
	if v == nil {
		return nil
	}
	x := round(*v, 4)
	return &x
}

func round(v float64, places int) float64 {
	p := math.Pow10(places)
	return math.Round(v*p) / p
}

// util is the mean for a person; ~ says that not all of the time was watched.
func (u *receipt) util() string {
	switch {
	case u == nil || u.Mean == nil:
		return "?"
	case u.Partial:
		return fmt.Sprintf("~%.0f%%", *u.Mean)
	}
	return fmt.Sprintf("%.0f%%", *u.Mean)
}

func (u *receipt) cost() string {
	switch {
	case u == nil || u.of.AtLeast == nil:
		return "?"
	case u.of.Cost == nil && u.of.AtLeast.Sign() == 0:
		return "?"
	case u.of.Cost == nil:
		return ">" + u.of.AtLeast.String()
	}
	return u.of.Cost.String()
}
