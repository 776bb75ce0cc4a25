package billing

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAmountText(t *testing.T) {
	for _, tt := range []struct {
		value, currency, text, exact string
	}{
		{"25.61", "CNY", "¥25.61", "25.61"}, {"1.576458333333", "USD", "$1.58", "1.576458"}, {"25.605", "EUR", "25.61 EUR", "25.605"},
		{"27.875", "CNY", "¥27.88", "27.875"}, {"0.004", "USD", "$0.00", "0.004"}, {"-0.004", "USD", "$0.00", "-0.004"},
		{"-1.005", "CNY", "-¥1.01", "-1.005"}, {"-2", "EUR", "-2.00 EUR", "-2"}, {"100", "", "100.00", "100"}, {"0", "CNY", "¥0.00", "0"},
	} {
		a := Amount{dec(tt.value), tt.currency}
		if a.String() != tt.text || a.Exact(6) != tt.exact {
			t.Errorf("%s %s is %q and %q, want %q and %q", tt.value, tt.currency, a, a.Exact(6), tt.text, tt.exact)
		}
	}
	if s := (Amount{}).String(); s != "0.00" {
		t.Errorf("nothing is %q", s)
	}
}

func TestAmountArithmetic(t *testing.T) {
	a, b, other := Amount{dec("1.1"), "CNY"}, Amount{dec("2.2"), "CNY"}, Amount{dec("1"), "USD"}
	if s, err := a.Add(b); err != nil || s.Exact(6) != "3.3" || a.Exact(6) != "1.1" {
		t.Errorf("%v %v", s, err)
	}
	if s, err := a.Sub(b); err != nil || s.Exact(6) != "-1.1" {
		t.Errorf("%v %v", s, err)
	}
	if c, err := a.Cmp(b); err != nil || c != -1 {
		t.Errorf("%v %v", c, err)
	}
	if s, err := (Amount{}).Add(a); err != nil || s.Currency != "CNY" {
		t.Errorf("nothing and something: %v %v", s, err)
	}
	var want *CurrencyError
	for _, err := range []error{second(a.Add(other)), second(a.Sub(other)), second(a.Cmp(other)), second(a.Add(Amount{dec("1"), ""}))} {
		if !errors.As(err, &want) {
			t.Errorf("two currencies: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]string{
		"8/h": "8 ", "¥8/h": "8 CNY", "￥8/h": "8 CNY", "$0.69/hr": "0.69 USD", "8.00 CNY/h": "8 CNY", "1.97元/时": "1.97 CNY", "1.97元/小时": "1.97 CNY",
		"0.0002/s": "0.72 ", "730/month": "1 ", "576/month": "0.789041 ", "CNY 8/h": "8 CNY", "8 / hour": "8 ", "8/h CNY": "8 CNY", "8 cny/H": "8 CNY",
		"8 RMB/h": "8 CNY", "8 per hour": "8 ", "8元每小时": "8 CNY", "24/day": "1 ", "168/week": "1 ", "8760/year": "1 ", "60/min": "3600 ", "€1/h": "1 EUR", "US$2/h": "2 USD", "0/h": "0 ",
	} {
		r, c, err := ParsePrice(text)
		if got := (Amount{r, ""}).Exact(6) + " " + c; err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for text, tell := range map[string]string{
		"8": "per what", "": "per what", "/h": "missing", "-8/h": "negative", "8e3/h": "plain decimal", "8/fortnight": "no unit", "1/2/h": "no unit", "NaN/h": "missing",
		"Inf/h": "missing", "8,5/h": "plain decimal", "0x10/h": "plain decimal", "1_000/h": "plain decimal", ".5/h": "plain decimal", "5./h": "plain decimal",
		"8 dollars/h": "no currency", "8/h USD 9": "USD 9", "¥8/h USD": "USD", "8/m": "no unit", "+8/h": "plain decimal", strings.Repeat("9", 50) + "/h": "too long",
		strings.Repeat("9", 500) + "/h": "not a price", "\xff/h": "not a price",
	} {
		if r, c, err := ParsePrice(text); err == nil || !strings.Contains(err.Error(), tell) {
			t.Errorf("%q is %v %q, %v; want an error with %q", text, r, c, err, tell)
		}
	}
}

func TestExchangeIsDated(t *testing.T) {
	var x Exchange
	for _, r := range []Rate{{"USD", "CNY", dec("7.2"), secs(100)}, {"USD", "CNY", dec("7.1"), secs(0)}, {"CNY", "USD", dec("0.125"), secs(200)}} {
		if err := x.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[int64]string{-50: "71", 0: "71", 99: "71", 100: "72", 199: "72", 200: "80", 9999: "80"} {
		got, err := x.Convert(Amount{dec("10"), "USD"}, "CNY", secs(at))
		if err != nil || got.Exact(6) != want {
			t.Errorf("at %d: %v %v, want %s", at, got, err, want)
		}
	}
	for _, r := range []Rate{{"USD", "USD", dec("1"), t0}, {"", "CNY", dec("1"), t0}, {"USD", "CNY", nil, t0}, {"USD", "CNY", dec("0"), t0}, {"USD", "CNY", dec("-7"), t0}} {
		if x.Add(r) == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	if sum, err := (*Exchange)(nil).Sum([]Amount{{dec("1"), "CNY"}, {dec("2"), "CNY"}}, "CNY", t0); err != nil || sum.String() != "¥3.00" {
		t.Errorf("one currency needs no rate: %v %v", sum, err)
	}
}

func TestRunway(t *testing.T) {
	cny := func(s string) Amount { return Amount{dec(s), "CNY"} }
	for _, tt := range []struct {
		balance, burn Amount
		want          time.Duration
		lasts, bad    bool
	}{
		{cny("10"), cny("2"), 5 * time.Hour, true, false}, {cny("0"), cny("2"), 0, true, false}, {cny("-5"), cny("2"), 0, true, false},
		{cny("10"), cny("0"), 0, false, false}, {cny("10"), cny("-1"), 0, false, true}, {cny("10"), Amount{dec("1"), "USD"}, 0, false, true},
		{cny("999999999999999999"), cny("0.000001"), 9223372036 * time.Second, true, false},
	} {
		if d, lasts, err := Runway(tt.balance, tt.burn); d != tt.want || lasts != tt.lasts || (err != nil) != tt.bad {
			t.Errorf("%s at %s: %v %v %v", tt.balance, tt.burn, d, lasts, err)
		}
	}
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"8", "0.69", "-1.5", "1e9", "1/3", "NaN", ".5", "00.10", "٣", strings.Repeat("1", 60)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseDecimal(s)
		if err != nil {
			return
		}
		if strings.Trim(s, "-.0123456789") != "" || len(s) > maxDigits+2 {
			t.Errorf("%q was taken", s)
		}
		if back := (Amount{Value: r}).Exact(maxDigits); func() bool { again, err := ParseDecimal(back); return err != nil || again.Cmp(r) != 0 }() {
			t.Errorf("%q came back as %q", s, back)
		}
	})
}

func FuzzParsePrice(f *testing.F) {
	for _, s := range []string{"8/h", "¥8/h", "$0.69/hr", "8.00 CNY/h", "1.97元/时", "0.0002/s", "576/month", "8 per h", "8元每小时", "US$1/h CNY", "////", "h/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, c, err := ParsePrice(s)
		if err != nil {
			return
		}
		if r.Sign() < 0 || c != "" && len(c) != 3 {
			t.Errorf("%q is %s %q", s, r, c)
		}
	})
}
