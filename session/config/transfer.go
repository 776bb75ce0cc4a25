package config

import (
	"fmt"
	"math/big"

	"rentop/sync"
)

// Transfer is how files are moved, for all instances.
type Transfer struct {
	Limit string `toml:"limit,omitempty"` // bytes a second for all transfers together, each way: "20M"
	Agent *bool  `toml:"agent,omitempty"` // false: no helper of ours is ever put on an instance
}

// Rate is Limit in bytes a second, 0 for none.
func (t Transfer) Rate() int64 {
	n, _ := sync.ParseLimit(t.Limit) // checked when the config was read
	return n
}

// MayUseAgent says whether a helper may be put on an instance.
func (t Transfer) MayUseAgent() bool { return t.Agent == nil || *t.Agent }

func (t Transfer) check() string {
	if _, err := sync.ParseLimit(t.Limit); err != nil {
		return "transfer.limit: " + err.Error()
	}
	return ""
}

// Traffic is what moving bytes costs, in the rate's currency for a GB of 10⁹ bytes.
type Traffic struct {
	InPerGB  string `toml:"in_per_gb,omitempty"`  // to the instance
	OutPerGB string `toml:"out_per_gb,omitempty"` // from it
}

// Prices are the two decimals, nil where not given.
func (t *Traffic) Prices() (in, out *big.Rat, err error) {
	if t == nil {
		return nil, nil, nil
	}
	if in, err = price("traffic.in_per_gb", t.InPerGB); err != nil {
		return nil, nil, err
	}
	out, err = price("traffic.out_per_gb", t.OutPerGB)
	return in, out, err
}

func (in Instance) checkTraffic() string {
	if in.Traffic == nil {
		return ""
	}
	if _, _, err := in.Traffic.Prices(); err != nil {
		return err.Error()
	}
	if in.Rate == nil || in.Rate.Currency == "" {
		return fmt.Sprintf("traffic has a price but rate has no currency for it: rate = { currency = %q }", "CNY")
	}
	return ""
}
