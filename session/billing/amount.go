package billing

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// CurrencyError says that two currencies met without an exchange rate.
type CurrencyError struct{ A, B string }

func (e *CurrencyError) Error() string {
	return fmt.Sprintf("%s and %s cannot be added without an exchange rate: give one first", e.A, e.B)
}

// rat is the value, never nil.
func (a Amount) rat() *big.Rat {
	if a.Value == nil {
		return new(big.Rat)
	}
	return a.Value
}

// common is the currency of both; a zero without a currency goes with any.
func (a Amount) common(b Amount) (string, error) {
	switch {
	case a.Currency == b.Currency, b.Currency == "" && b.rat().Sign() == 0:
		return a.Currency, nil
	case a.Currency == "" && a.rat().Sign() == 0:
		return b.Currency, nil
	}
	return "", &CurrencyError{a.Currency, b.Currency}
}

// Add returns a+b, or a *CurrencyError.
func (a Amount) Add(b Amount) (Amount, error) {
	c, err := a.common(b)
	if err != nil {
		return Amount{}, err
	}
	return Amount{new(big.Rat).Add(a.rat(), b.rat()), c}, nil
}

// Sub returns a-b, or a *CurrencyError.
func (a Amount) Sub(b Amount) (Amount, error) {
	return a.Add(Amount{new(big.Rat).Neg(b.rat()), b.Currency})
}

// Cmp is -1, 0 or 1 as a is less than, equal to or more than b.
func (a Amount) Cmp(b Amount) (int, error) {
	if _, err := a.common(b); err != nil {
		return 0, err
	}
	return a.rat().Cmp(b.rat()), nil
}

// Times is n of the amount.
func (a Amount) Times(n int64) Amount {
	return Amount{new(big.Rat).Mul(a.rat(), big.NewRat(n, 1)), a.Currency}
}

// TimesHours is the amount of an hour over so many hours, to the nanosecond. Hours
// beyond a century are taken as one.
func (a Amount) TimesHours(h float64) Amount {
	const century = 100 * 365.25 * 24
	return a.Over(time.Duration(max(-century, min(h, century)) * float64(time.Hour)))
}

// Per is the amount for one of n, which must not be 0. It is for what was measured: n
// is taken as a float has it.
func (a Amount) Per(n float64) Amount {
	r := new(big.Rat).SetFloat64(n)
	return Amount{r.Quo(a.rat(), r), a.Currency}
}

// Over is the amount of an hour over a time, exactly.
func (a Amount) Over(d time.Duration) Amount {
	hours := big.NewRat(int64(d), int64(time.Hour))
	return Amount{hours.Mul(hours, a.rat()), a.Currency}
}

// Sign is -1, 0 or 1.
func (a Amount) Sign() int { return a.rat().Sign() }

// Decimal is the value with exactly that many places, halves rounded away from
// zero, without its currency. A value that rounds to zero has no minus.
func (a Amount) Decimal(places int) string {
	s := a.rat().FloatString(places)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// Exact is Decimal without the zeros at its end: "8", "0.02", "1.576458". For
// files and JSON, where a rate must keep its small digits.
func (a Amount) Exact(places int) string {
	s := a.Decimal(places)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// String is the amount for a person, to the cent: "¥25.61", "$1.58", "25.61 EUR".
func (a Amount) String() string {
	s := a.Decimal(2)
	var sign string
	switch a.Currency {
	case "CNY":
		sign = "¥"
	case "USD":
		sign = "$"
	case "":
		return s
	default:
		return s + " " + a.Currency
	}
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		return "-" + sign + rest
	}
	return sign + s
}
