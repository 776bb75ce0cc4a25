package billing

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// hoursPerMonth is what a month means where nothing else is said.
const hoursPerMonth = 730

// units are the words that may follow the slash, as hours: num/den.
var units = []struct {
	names    string
	num, den int64
}{
	{"s sec secs second seconds 秒", 1, 3600},
	{"min mins minute minutes 分 分钟", 1, 60},
	{"h hr hrs hour hours 时 小时", 1, 1},
	{"d day days 天 日", 24, 1},
	{"week weeks 周", 24 * 7, 1},
	{"mo month months 月", hoursPerMonth, 1},
	{"y yr year years 年", hoursPerMonth * 12, 1},
}

// signs are the marks of currencies. ¥ is the yuan, never the yen.
var signs = []struct{ sign, code string }{
	{"US$", "USD"}, {"$", "USD"}, {"¥", "CNY"}, {"￥", "CNY"}, {"元", "CNY"}, {"€", "EUR"}, {"£", "GBP"},
}

// ParsePrice reads a price with its unit, the way platforms write it: "8/h",
// "¥8/h", "$0.69/hr", "8.00 CNY/h", "1.97元/时", "0.0002/s", "576/month". It gives the
// price of an hour and the currency, "" where none was named. A month is 730 hours.
func ParsePrice(s string) (perHour *big.Rat, currency string, err error) {
	if len(s) > 100 || !utf8.ValidString(s) {
		return nil, "", errors.New("that is not a price: write it like 8/h, $0.69/hr or 576 CNY/month")
	}
	money, unit, ok := strings.Cut(s, "/")
	if !ok {
		money, unit, ok = strings.Cut(strings.Replace(s, "每", " per ", 1), " per ")
	}
	if !ok {
		return nil, "", fmt.Errorf("the price %q does not say per what: write it like 8/h or 576/month", s)
	}
	unit, after, _ := strings.Cut(strings.TrimSpace(unit), " ")
	number, before, err := splitCurrency(money)
	if err != nil {
		return nil, "", fmt.Errorf("the price %q: %w", s, err)
	}
	currency = before
	if after = strings.TrimSpace(after); after != "" { // "8/h CNY"
		rest, code, err := splitCurrency(after)
		if err != nil || rest != "" || code == "" || before != "" && before != code {
			return nil, "", fmt.Errorf("the price %q: what is %q? Write it like 8 CNY/h", s, after)
		}
		currency = code
	}
	r, err := ParseRate(number)
	if err != nil {
		return nil, "", fmt.Errorf("the price %q: %w", s, err)
	}
	hours, err := unitHours(unit)
	if err != nil {
		return nil, "", fmt.Errorf("the price %q: %w", s, err)
	}
	return r.Quo(r, hours), currency, nil
}

func unitHours(unit string) (*big.Rat, error) {
	for _, u := range units {
		for name := range strings.FieldsSeq(u.names) {
			if strings.EqualFold(unit, name) {
				return big.NewRat(u.num, u.den), nil
			}
		}
	}
	return nil, fmt.Errorf("%q is no unit of time: use s, min, h, day, month or year", unit)
}

// splitCurrency takes one sign or code off either end of a number.
func splitCurrency(s string) (number, code string, err error) {
	number = strings.TrimSpace(s)
	for _, c := range signs {
		for _, cut := range []func(string, string) (string, bool){strings.CutPrefix, strings.CutSuffix} {
			if rest, ok := cut(number, c.sign); ok {
				return strings.TrimSpace(rest), c.code, nil
			}
		}
	}
	head := strings.TrimRight(number, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	tail := strings.TrimLeft(number, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	switch {
	case len(head) < len(number):
		code, number = number[len(head):], head
	case len(tail) < len(number):
		code, number = number[:len(number)-len(tail)], tail
	default:
		return number, "", nil
	}
	code, err = ParseCurrency(code)
	return strings.TrimSpace(number), code, err
}

// ParseCurrency reads a currency's sign or three-letter code, in any case, and
// gives the code. RMB is CNY.
func ParseCurrency(s string) (string, error) {
	for _, c := range signs {
		if s == c.sign {
			return c.code, nil
		}
	}
	code := strings.ToUpper(s)
	if code == "RMB" {
		return "CNY", nil
	}
	if len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "", fmt.Errorf("%q is no currency: use a code such as CNY or USD", clip(s))
	}
	return code, nil
}
