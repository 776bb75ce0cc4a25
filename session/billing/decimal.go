package billing

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// maxDigits bounds a decimal: no price needs more, and a hostile one would cost time.
const maxDigits = 30

// ParseDecimal reads a plain decimal such as "8", "0.69" or "-1.5": digits, at
// most one point with digits on both sides, an optional minus. No exponents,
// fractions, separators, signs of currency or spaces.
func ParseDecimal(s string) (*big.Rat, error) {
	body := strings.TrimPrefix(s, "-")
	whole, frac, point := strings.Cut(body, ".")
	switch {
	case s == "":
		return nil, errors.New("a number is missing")
	case len(body) > maxDigits+1:
		return nil, fmt.Errorf("the number %q is too long: write at most %d digits", clip(s), maxDigits)
	case !digits(whole), point && !digits(frac):
		return nil, fmt.Errorf("%q is not a plain decimal: write it like 8 or 0.69", clip(s))
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, fmt.Errorf("%q is not a plain decimal: write it like 8 or 0.69", clip(s))
	}
	return r, nil
}

// maxRate is above any price or size in any currency, and fits every column.
var maxRate = big.NewRat(1_000_000_000, 1)

// ParseRate is ParseDecimal for a price or a size: it refuses negative numbers
// and those of more than a billion.
func ParseRate(s string) (*big.Rat, error) {
	r, err := ParseDecimal(s)
	switch {
	case err == nil && r.Sign() < 0:
		return nil, fmt.Errorf("%q is negative: a price or a size is 0 or more", s)
	case err == nil && r.Cmp(maxRate) > 0:
		return nil, fmt.Errorf("%q is more than a billion: a slip of the key?", s)
	}
	return r, err
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// clip keeps an error's quotation short.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
