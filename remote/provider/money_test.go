package provider

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		in, price, decimal string
	}{
		{"0.44", "0.44", "0.44"}, {"0.00743999984115362", "0.00744", "0.00744"}, {"1e-2", "0.01", "0.01"}, {"0", "", "0"}, {"0.0", "", "0"},
		{"-1.50", "", "-1.5"}, {"6.74", "6.74", "6.74"}, {"100", "100", "100"}, {"0.0000000001", "", "0"}, {"", "", ""}, {"1/3", "", ""}, {"1e999999999", "", ""}, {"x", "", ""},
	} {
		r := amount(json.Number(c.in))
		if got := price(r); got != c.price {
			t.Errorf("price of %q is %q, want %q", c.in, got, c.price)
		}
		if got := decimal(r); got != c.decimal {
			t.Errorf("%q is %q, want %q", c.in, got, c.decimal)
		}
	}
	if got := decimal(times(big.NewRat(1970, 1), 1, 1000)); got != "1.97" {
		t.Error(got)
	}
}

// What a service says never becomes a word of a command line.
func FuzzAddress(f *testing.F) {
	f.Add("1.2.3.4", 22, "root")
	f.Add("-oProxyCommand=x", 22, "root")
	f.Add("h", 70000, "-l")
	f.Add("a b", 1, "u@x")
	f.Fuzz(func(t *testing.T, host string, port int, user string) {
		line := address(host, port, user).SSH()
		if strings.Count(line, "@") > 1 || strings.ContainsAny(line, "\n\x1b;$`'\"|&") || strings.Contains(line, " -") && !strings.HasPrefix(line, "ssh -p ") {
			t.Errorf("%q %d %q: %q", host, port, user, line)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Add([]byte("API requests too frequent"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if m := message(body); len([]rune(m)) > 200 || strings.ContainsAny(m, "\n\x1b") {
			t.Errorf("%q", m)
		}
	})
}
