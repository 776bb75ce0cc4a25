package ledger

// What instances are called and made of, for a bill by provider or tag, and what the
// provider itself charged.

import (
	"context"
	"encoding/json"
	"time"

	"rentop/session/billing"
)

// Description is the Data of Described: what the config says of an instance.
type Description struct {
	Provider string   `json:"provider,omitempty"` // "": plain SSH
	ID       string   `json:"id,omitempty"`       // the provider's own name for it
	Tags     []string `json:"tags,omitempty"`
}

// HardwareData is the Data of Hardware: the GPUs, by name.
type HardwareData struct {
	GPUs []string `json:"gpus"`
}

// ChargeData is the Data of Charged: what was charged for [From, To). A later one for the
// very same time replaces an earlier one, and so does a provider's that begins alike.
type ChargeData struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Amount   string    `json:"amount"` // decimal or fraction
	Currency string    `json:"currency"`
}

// Charge is what a provider charged for a time, as it said or as a person copied it.
type Charge struct {
	From, To time.Time
	Amount   billing.Amount
	Source   string    // "provider" or "user"
	Told     time.Time // when
}

// About is what the ledger knows of an instance beside its time.
type About struct {
	Description
	GPUs    []string
	Charges []Charge // in the order they were told
}

// About gives it for all instances, by uid.
func (l *Ledger) About(ctx context.Context) (map[string]*About, error) {
	events, err := l.Events(ctx, Filter{Kinds: []Kind{Described, Hardware, Charged}})
	if err != nil {
		return nil, err
	}
	all := map[string]*About{}
	for _, e := range events {
		a := all[e.Instance]
		if a == nil {
			a = &About{}
			all[e.Instance] = a
		}
		switch e.Kind {
		case Described:
			var d Description
			if json.Unmarshal(e.Data, &d) == nil {
				a.Description = d
			}
		case Hardware:
			var h HardwareData
			if json.Unmarshal(e.Data, &h) == nil && len(h.GPUs) > 0 {
				a.GPUs = h.GPUs
			}
		case Charged:
			a.charged(e)
		}
	}
	return all, nil
}

func (a *About) charged(e Event) {
	var d ChargeData
	if json.Unmarshal(e.Data, &d) != nil || !d.From.Before(d.To) || d.Currency == "" {
		return
	}
	c := Charge{From: d.From, To: d.To, Source: e.Source, Told: e.Recorded}
	if err := readRat(d.Amount, &c.Amount.Value); err != nil || c.Amount.Value == nil {
		return
	}
	c.Amount.Currency = d.Currency
	for n := range a.Charges {
		if old := &a.Charges[n]; old.From.Equal(c.From) && (old.To.Equal(c.To) || old.Source == "provider" && c.Source == "provider") {
			*old = c
			return
		}
	}
	a.Charges = append(a.Charges, c)
}
