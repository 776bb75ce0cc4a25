package provider

// Exact decimals of what providers write as JSON numbers, strings, cents or
// thousandths. Unknown is "".

import (
	"encoding/json"
	"math/big"
	"strings"
)

const (
	hoursInMonth = 730 // of price lists
	places       = 6
)

// amount is a JSON number or string as an exact rational; nil where it is none.
func amount(n json.Number) *big.Rat {
	s := strings.TrimSpace(string(n))
	if s == "" || len(s) > 40 || strings.ContainsAny(s, "/_xXpP") {
		return nil
	}
	if _, exp, ok := strings.Cut(strings.ToLower(s), "e"); ok && len(exp) > 3 {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r
}

// price is a positive amount as a decimal; "" for nothing and for 0: a price of 0
// is what providers write for a state in which they do not say it.
func price(r *big.Rat) string {
	if r == nil || r.Sign() <= 0 {
		return ""
	}
	if s := decimal(r); s != "0" {
		return s
	}
	return "" // less than can be written is not nothing
}

// decimal writes r without needless zeros.
func decimal(r *big.Rat) string {
	if r == nil {
		return ""
	}
	s := r.FloatString(places)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func times(r *big.Rat, n, of int64) *big.Rat {
	if r == nil {
		return nil
	}
	return new(big.Rat).Mul(r, big.NewRat(n, of))
}

// jsonNumber is text that may be an amount.
func jsonNumber(s string) json.Number { return json.Number(strings.ReplaceAll(s, ",", "")) }
