package billing

import (
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
)

var t0 = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

// dec is a decimal that the test wrote itself.
func dec(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

func secs(n int64) time.Time { return t0.Add(time.Duration(n) * time.Second) }

func bill(t *testing.T, at time.Time, list ...Interval) Bill {
	t.Helper()
	b, err := Cost(list, at)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantAmount(t *testing.T, what string, a *Amount, places int, want string) {
	t.Helper()
	if a == nil {
		t.Errorf("%s is unknown, want %s", what, want)
	} else if got := a.Decimal(places); got != want {
		t.Errorf("%s = %s, want %s", what, got, want)
	}
}

// cases reads the recorded billing cases; only the inputs that a test needs as
// data are decoded, the rest is spelled out beside each expectation.
func cases(t *testing.T) map[int]map[string]json.RawMessage {
	t.Helper()
	data, err := os.ReadFile(needtest.Shared(t, "cases", "billing.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID     int                        `json:"id"`
		Expect map[string]json.RawMessage `json:"expect"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	byID := map[int]map[string]json.RawMessage{}
	for _, c := range list {
		byID[c.ID] = c.Expect
	}
	return byID
}

// text is one expected string of a case.
func text(t *testing.T, c map[string]json.RawMessage, key string) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(c[key], &s); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return s
}

func texts(t *testing.T, c map[string]json.RawMessage, key string) (list []string) {
	t.Helper()
	if err := json.Unmarshal(c[key], &list); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return list
}

func running(from, to int64, p Plan) Interval {
	return Interval{State: Running, From: secs(from), To: secs(to), Plan: p}
}

func stopped(from, to int64, p Plan) Interval {
	return Interval{State: Stopped, From: secs(from), To: secs(to), Plan: p}
}

func TestRecordedCases(t *testing.T) {
	recorded := cases(t)
	for id, check := range map[int]func(*testing.T, map[string]json.RawMessage){
		1: func(t *testing.T, c map[string]json.RawMessage) {
			b := bill(t, secs(8225), running(0, 8225, Plan{Currency: "USD", PerHour: dec("0.69")}))
			wantAmount(t, "total", b.Total, 6, text(t, c, "exact"))
			wantAmount(t, "total", b.Total, 2, text(t, c, "rounded"))
		},
		3: func(t *testing.T, c map[string]json.RawMessage) {
			for i, want := range texts(t, c, "amounts") {
				s := []int64{600, 3600, 3660}[i]
				wantAmount(t, "total", bill(t, secs(s), running(0, s, Plan{Currency: "CNY", PerHour: dec("5"), Billed: Hour})).Total, 2, want)
			}
		},
		4: func(t *testing.T, c map[string]json.RawMessage) {
			b := bill(t, secs(5410), running(0, 5410, Plan{Currency: "USD", PerHour: dec("1.29"), Billed: Minute}))
			wantAmount(t, "total", b.Total, 6, text(t, c, "exact"))
			wantAmount(t, "total", b.Total, 2, text(t, c, "rounded"))
		},
		5: func(t *testing.T, c map[string]json.RawMessage) {
			p := Plan{Currency: "USD", WhileStopped: new(big.Rat), DiskGB: dec("1000"), PerGBMonth: dec("0.20"), MonthHours: 720}
			for i, want := range texts(t, c, "amounts") {
				s := []int64{720, 24}[i] * 3600
				wantAmount(t, "total", bill(t, secs(s), stopped(0, s, p)).Total, 2, want)
			}
		},
		6: func(t *testing.T, c map[string]json.RawMessage) {
			p := Plan{Currency: "USD", PerHour: dec("3.06"), MinSeconds: 60}
			b := bill(t, secs(1000), running(0, 20, p), running(100, 120, p), running(200, 220, p))
			wantAmount(t, "total", b.Total, 6, text(t, c, "exact"))
			wantAmount(t, "total", b.Total, 2, text(t, c, "rounded"))
		},
		7: func(t *testing.T, c map[string]json.RawMessage) {
			p := Plan{Currency: "USD", PerHour: dec("1"), WhileStopped: dec("0.005"), DiskGB: dec("100"), PerGBMonth: dec("0.08"), MonthHours: 730}
			b := bill(t, secs(48*3600), stopped(0, 48*3600, p))
			wantAmount(t, "compute", b.Compute, 0, text(t, c, "compute"))
			wantAmount(t, "disk", b.Disk, 6, text(t, c, "disk"))
			wantAmount(t, "address", b.Stopped, 6, text(t, c, "ip"))
			wantAmount(t, "total", b.Total, 2, text(t, c, "total"))
		},
		8: func(t *testing.T, c map[string]json.RawMessage) {
			p := Plan{Currency: "USD", PerHour: dec("0.76"), WhileStopped: dec("0.76")}
			a := bill(t, secs(45), running(0, 45, p))
			wantAmount(t, "a without the minimum", a.Total, 6, "0.009500")
			p.MinSeconds = 60
			a = bill(t, secs(45), running(0, 45, p))
			wantAmount(t, "a", a.Total, 6, text(t, c, "a"))
			wantAmount(t, "a", a.Total, 2, text(t, c, "a_rounded"))
			wantAmount(t, "b", bill(t, secs(36000), stopped(0, 36000, p)).Total, 2, text(t, c, "b"))
		},
		11: func(t *testing.T, c map[string]json.RawMessage) {
			p := Plan{Currency: "CNY", PerHour: dec("10"), WhileStopped: new(big.Rat), DiskGB: dec("200"), PerGBMonth: dec("0.72"), MonthHours: 720}
			run := func() *Amount {
				return bill(t, secs(23*3600+1800), running(0, 12600, p), stopped(12600, 12600+72000, p)).Total
			}
			wantAmount(t, "StopCharging", run(), 2, text(t, c, "StopCharging"))
			p.WhileStopped = p.PerHour
			wantAmount(t, "KeepCharging", run(), 2, text(t, c, "KeepCharging_or_unsupported"))
		},
		13: func(t *testing.T, c map[string]json.RawMessage) {
			at := func(rate string) Plan { return Plan{Currency: "CNY", PerHour: dec(rate)} }
			b := bill(t, secs(13500), running(0, 7200, at("8.00")), running(7200, 12600, at("6.40")), running(12600, 13500, at("9.10")))
			wantAmount(t, "total", b.Total, 6, text(t, c, "exact"))
			wantAmount(t, "total", b.Total, 2, text(t, c, "rounded"))
			wantAmount(t, "20 h at 20", bill(t, secs(72000), running(0, 72000, at("20"))).Total, 2, "400.00")
			wantAmount(t, "24 h at 8", bill(t, secs(86400), running(0, 86400, at("8"))).Total, 2, "192.00")
		},
		15: func(t *testing.T, c map[string]json.RawMessage) {
			p := Plan{Currency: "CNY", PerHour: dec("2.58"), DiskGB: dec("50"), PerGBMonth: dec("0.198"), MonthHours: 720} // 0.0066 a day
			burn := BurnPerHour(p, Running)
			wantAmount(t, "burn", burn, 6, text(t, c, "burn_per_h"))
			d, lasts, err := Runway(Amount{dec("37.50"), "CNY"}, *burn)
			if want := "52048"; err != nil || !lasts || string(c["runway_s"]) != want || d != 52048*time.Second {
				t.Errorf("runway = %v %v %v, want %s s", d, lasts, err, c["runway_s"])
			}
			mixed := []Amount{{dec("100"), "CNY"}, {dec("10"), "USD"}}
			var x Exchange
			if sum, err := x.Sum(mixed, "CNY", t0); err == nil {
				t.Errorf("two currencies without a rate came to %s", sum)
			}
			if err := x.Add(Rate{"USD", "CNY", dec("7.10"), t0}); err != nil {
				t.Fatal(err)
			}
			sum, err := x.Sum(mixed, "CNY", t0)
			if err != nil {
				t.Fatal(err)
			}
			wantAmount(t, "sum", &sum, 2, text(t, c, "sum_cny"))
		},
	} {
		t.Run("case "+big.NewInt(int64(id)).String(), func(t *testing.T) {
			c, ok := recorded[id]
			if !ok {
				t.Fatalf("case %d is not in the file", id)
			}
			delete(recorded, id)
			check(t, c)
		})
	}
	for id := range recorded {
		t.Errorf("case %d is recorded but not tested", id)
	}
}

func TestUnknownIsNeverZero(t *testing.T) {
	known := Plan{Currency: "CNY", PerHour: dec("8"), WhileStopped: dec("0.02")}
	tests := []struct {
		name    string
		list    []Interval
		missing string
		known   string
	}{
		{"no price", []Interval{running(0, 3600, Plan{Currency: "CNY"})}, MissingPrice, "0.00"},
		{"no price while stopped", []Interval{running(0, 3600, Plan{Currency: "CNY", PerHour: dec("8")}), stopped(3600, 7200, Plan{Currency: "CNY", PerHour: dec("8")})}, MissingStopped, "8.00"},
		{"no disk price", []Interval{running(0, 3600, Plan{Currency: "CNY", PerHour: dec("8"), DiskGB: dec("10")})}, MissingDisk, "8.00"},
		{"no disk size", []Interval{running(0, 3600, Plan{Currency: "CNY", PerHour: dec("8"), PerGBMonth: dec("10")})}, MissingDiskSize, "8.00"},
		{"nobody looked", []Interval{running(0, 3600, known), {State: Unknown, From: secs(3600), To: secs(7200), Plan: known}}, MissingState, "8.00"},
		{"no price of a prepaid period", []Interval{running(0, 3600, Plan{Currency: "CNY", Prepaid: &Prepaid{From: t0, To: secs(9999)}})}, MissingPrepaid, "0.00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := bill(t, secs(7200), tt.list...)
			if b.Total != nil || strings.Join(b.Missing, ",") != tt.missing {
				t.Errorf("total %v missing %q, want nil and %q", b.Total, b.Missing, tt.missing)
			}
			wantAmount(t, "known", b.Known, 2, tt.known)
			if later, err := Between(tt.list, secs(7200), secs(9000)); err != nil || later.Total == nil || later.Total.Sign() != 0 {
				t.Errorf("after it all: %v %v, want a known zero", later.Total, err)
			}
		})
	}
}
