package provider

// What a provider itself charged, to set against what is reckoned from prices.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"time"
)

// Charger tells what was charged for an instance; it may be gone.
type Charger interface {
	// Charges covers at least [from, to), in whole units of the provider's own: the
	// Charge says which time it is for. ErrUnsupported where its API does not tell.
	Charges(ctx context.Context, id string, from, to time.Time) (Charge, error)
}

// Charge is money for a time.
type Charge struct {
	From, To time.Time
	Amount   string // decimal
	Currency string
}

// charger is a driver that can tell.
type charger interface {
	charges(ctx context.Context, id string, from, to time.Time) (Charge, error)
}

func (r *rented) Charges(ctx context.Context, id string, from, to time.Time) (Charge, error) {
	if why := r.d.checkID(id); why != "" {
		return Charge{}, fmt.Errorf("%s: charges: %s", r.Kind(), why)
	}
	d, ok := r.d.(charger)
	if !ok {
		return Charge{}, fmt.Errorf("%s: charges: %w", r.Kind(), ErrUnsupported)
	}
	c, err := d.charges(ctx, id, from, to)
	if err != nil {
		return Charge{}, fmt.Errorf("%s: charges: %w", r.Kind(), err)
	}
	return c, nil
}

// charges of a pod are by hours here: RunPod widens the time to whole ones.
func (r runPod) charges(ctx context.Context, id string, from, to time.Time) (Charge, error) {
	c := Charge{From: from.UTC().Truncate(time.Hour), To: to.UTC().Truncate(time.Hour), Currency: "USD"}
	if c.To.Before(to) {
		c.To = c.To.Add(time.Hour)
	}
	var got struct {
		Metadata struct {
			Totals struct {
				Total json.Number `json:"totalAmount"`
			} `json:"totals"`
		} `json:"metadata"`
	}
	query := url.Values{"podId": {id}, "startTime": {c.From.Format(time.RFC3339)}, "endTime": {c.To.Format(time.RFC3339)}, "bucketSize": {"hour"}}
	if err := r.do(ctx, call{method: http.MethodGet, path: "/v2/billing/pods", query: query}, &got); err != nil {
		return Charge{}, err
	}
	sum := amount(got.Metadata.Totals.Total)
	if sum == nil || sum.Sign() < 0 {
		return Charge{}, errors.New("its answer holds no total")
	}
	c.Amount = decimal(sum)
	return c, nil
}

// charges of a contract are by days of UTC at Vast.
func (v vast) charges(ctx context.Context, id string, from, to time.Time) (Charge, error) {
	const day = 24 * time.Hour
	c := Charge{From: from.UTC().Truncate(day), To: to.UTC().Truncate(day), Currency: "USD"}
	if c.To.Before(to) {
		c.To = c.To.Add(day)
	}
	query := url.Values{"limit": {"500"}, "select_filters": {fmt.Sprintf(`{"day":{"gte":%d,"lte":%d},"type":{"in":["instance"]}}`, c.From.Unix(), c.To.Unix()-1)}}
	sum, found := new(big.Rat), false
	for range maxPages {
		var page struct {
			Success *bool   `json:"success"`
			Next    *string `json:"next_token"`
			Results *[]struct {
				Source string      `json:"source"`
				Amount json.Number `json:"amount"`
			} `json:"results"`
		}
		if err := v.do(ctx, call{method: http.MethodGet, path: "/api/v0/charges", query: query}, &page); err != nil {
			return Charge{}, err
		}
		if page.Results == nil || page.Success != nil && !*page.Success {
			return Charge{}, errNoList
		}
		for _, one := range *page.Results {
			if one.Source != "instance-"+id {
				continue
			}
			a := amount(one.Amount)
			if a == nil || a.Sign() < 0 {
				return Charge{}, errors.New("a charge in its answer is no amount")
			}
			sum, found = sum.Add(sum, a), true
		}
		if page.Next == nil || *page.Next == "" {
			if !found {
				return Charge{}, errors.New("its list of charges does not name the instance")
			}
			c.Amount = decimal(sum)
			return c, nil
		}
		query.Set("after_token", *page.Next)
	}
	return Charge{}, errManyPages
}
