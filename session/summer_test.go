package session

import (
	"math/big"
	"testing"
	"time"

	"rentop/session/billing"
)

// TestSummer: a zero without a currency is no sum of its own.
func TestSummer(t *testing.T) {
	var s summer
	s.add(&billing.Amount{}, true)
	s.add(&billing.Amount{Value: big.NewRat(3, 2), Currency: "CNY"}, true)
	s.add(nil, true)
	got := s.sums(billing.Exchange{}, time.Time{})
	if len(got.Amounts) != 1 || got.Amounts[0].Currency != "CNY" || got.Unknown != 1 {
		t.Errorf("%+v", got)
	}
}
