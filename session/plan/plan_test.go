package plan

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/session/billing"
)

func dec(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

func cny(s string) billing.Amount { return billing.Amount{Value: dec(s), Currency: "CNY"} }

// seed are the figures of the renters' guides in the recorded cases.
func seed(t *testing.T) (out struct {
	OnDemand string `json:"on_demand"`
	Spot     string `json:"spot"`
	Before   string `json:"total_before"`
	After    string `json:"total_after"`
	SavedPct string `json:"saved_pct"`
}) {
	t.Helper()
	data, err := os.ReadFile(needtest.Shared(t, "cases", "billing.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID     int `json:"id"`
		Expect struct {
			Seed json.RawMessage `json:"seed_check"`
		} `json:"expect"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.ID == 13 {
			if err := json.Unmarshal(c.Expect.Seed, &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestSeed: 20 h at 20 with 100 for disk and traffic became 24 h at 8 with 68.
func TestSeed(t *testing.T) {
	want := seed(t)
	a, err := Spot{OnDemand: cny("20"), Price: cny("8"), Work: 20 * time.Hour, Took: 24 * time.Hour}.Ask()
	if err != nil || a.OnDemand.Decimal(2) != want.OnDemand || a.Expected.Decimal(2) != want.Spot || a.Loss.Decimal(2) != "32.00" {
		t.Errorf("%+v %v", a, err)
	}
	before, _ := a.OnDemand.Add(cny("100"))
	after, _ := a.Expected.Add(cny("68"))
	pct, err := Saved(before, after)
	if err != nil || before.Decimal(0) != want.Before || after.Decimal(0) != want.After || pct.FloatString(1) != want.SavedPct {
		t.Errorf("%s to %s saves %v, %v", before, after, pct, err)
	}
}

// TestBudget has the guides' figures: ¥800 at ¥2.5 is 320 h (some 13 days), at ¥9 88 h.
func TestBudget(t *testing.T) {
	disk := cny("0.10")
	for _, tt := range []struct {
		name, money, perHour string
		disk                 *billing.Amount
		perDay               time.Duration
		billed               billing.Quantum
		run                  time.Duration
		days                 float64
	}{
		{"cheap", "800", "2.5", nil, 24 * time.Hour, "", 320 * time.Hour, 13.33},
		{"dear", "800", "9", nil, 0, billing.Hour, 88 * time.Hour, -1},
		{"dear by the second", "800", "9", nil, 0, "", 88*time.Hour + 53*time.Minute + 20*time.Second, -1},
		{"the disk all day", "100", "1.9", &disk, 8 * time.Hour, "", 45*time.Hour + 27*time.Minute + 16*time.Second, 5.68}, // 1.9 + 24/8 × 0.1
		{"the disk while it runs", "100", "1.9", &disk, 0, "", 50 * time.Hour, -1},
		{"nothing left", "0", "5", nil, 0, "", 0, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Budget(cny(tt.money), cny(tt.perHour), tt.disk, tt.perDay, tt.billed)
			if err != nil || s.Run != tt.run || (s.Lasts == nil) != (tt.days < 0) {
				t.Fatalf("%+v %v, want %v", s, err, tt.run)
			}
			if s.Lasts != nil && math.Abs(s.Lasts.Hours()/24-tt.days) > 0.01 {
				t.Errorf("%.2f days, want %.2f", s.Lasts.Hours()/24, tt.days)
			}
		})
	}
	if s, err := Budget(cny("5"), cny("0"), nil, 0, ""); err != nil || !s.Forever {
		t.Errorf("a machine that costs nothing: %+v %v", s, err)
	}
	if _, err := Budget(cny("5"), billing.Amount{Value: dec("1"), Currency: "USD"}, nil, 0, ""); err == nil {
		t.Error("two currencies were divided")
	}
	if _, err := Budget(cny("5"), cny("1"), nil, 25*time.Hour, ""); err == nil {
		t.Error("a day of 25 hours")
	}
}

// TestCompare has the guides' month: ¥5 × 24 × 30 = ¥3600 against ¥1500 to ¥2500 flat.
func TestCompare(t *testing.T) {
	for flat, from := range map[string]string{"1500": "300", "2500": "500"} {
		per := cny(flat)
		r, err := Compare(cny("5"), dec("720"), 1, Purchase{PerMonth: &per})
		if err != nil || r.Rent.Decimal(0) != "3600" || r.Flat.Decimal(0) != flat || r.FlatFromHours.FloatString(0) != from || r.Buy != nil || len(r.Missing) > 0 {
			t.Errorf("%s: %+v %v", flat, r, err)
		}
	}
	price, kwh := cny("14000"), cny("0.60")
	p := Purchase{Price: &price}
	r, err := Compare(cny("2.5"), dec("200"), 12, p)
	if err != nil || r.Buy != nil || r.BuyFromHours != nil || r.BuyAtLeast.Decimal(0) != "14000" || len(r.Missing) != 2 || r.Rent.Decimal(0) != "6000" {
		t.Errorf("with much not known: %+v %v", r, err)
	}
	p.Rig, p.Watts, p.PerKWh, p.Resale = dec("0.4"), dec("500"), &kwh, dec("0.5")
	r, err = Compare(cny("2.5"), dec("200"), 12, p)
	if err != nil || r.Buy == nil || r.Buy.Decimal(0) != "10520" || r.BuyFromHours.FloatString(1) != "4454.5" || r.BuyFromMonths.FloatString(1) != "22.3" {
		t.Errorf("with all known: %+v %v", r, err)
	}
	r, _ = Compare(cny("0.2"), dec("200"), 12, p)
	if r.BuyFromHours != nil {
		t.Errorf("power alone is dearer than renting, and buying pays from %v h", r.BuyFromHours)
	}
	if _, err := Compare(billing.Amount{Value: dec("1"), Currency: "USD"}, dec("1"), 1, p); err == nil {
		t.Error("two currencies were compared")
	}
	if _, err := Compare(cny("1"), dec("0"), 1, p); err == nil {
		t.Error("no hours were compared")
	}
}

func TestSpotUnknownStaysUnknown(t *testing.T) {
	a, err := Spot{OnDemand: cny("20"), Price: cny("8"), Work: 20 * time.Hour}.Ask()
	if err != nil || a.Expected != nil || a.Took != nil || a.Reclaims != nil || a.Best.Decimal(2) != "160.00" || a.BreakEven == nil {
		t.Errorf("%+v %v", a, err)
	}
	// Without a checkpoint: M·(e^(20/M) − 1) = 50 h at M = 12.35 h.
	if h := a.BreakEven.Hours(); math.Abs(h-12.35) > 0.02 {
		t.Errorf("break even at %v", a.BreakEven)
	}
	total, _ := Spot{Work: 20 * time.Hour}.expected(*a.BreakEven)
	if math.Abs(total-50) > 0.1 {
		t.Errorf("at the break even it takes %v h", total)
	}
	if a, err := (Spot{OnDemand: cny("8"), Price: cny("9"), Work: time.Hour}).Ask(); err != nil || a.BreakEven != nil {
		t.Errorf("a dearer spot: %+v %v", a, err)
	}
	if a, err := (Spot{OnDemand: cny("20"), Price: cny("8"), Work: 100 * time.Hour, Every: time.Hour}).Ask(); err != nil || !a.Hopeless || a.Expected != nil {
		t.Errorf("work that never ends: %+v %v", a, err)
	}
	for _, s := range []Spot{{}, {Work: -1}, {Work: 1, Every: -1}, {Work: 1, Price: cny("-1")}, {Work: time.Hour, OnDemand: cny("1"), Price: billing.Amount{Value: dec("1"), Currency: "USD"}}} {
		if a, err := s.Ask(); err == nil {
			t.Errorf("%+v gave %+v", s, a)
		}
	}
}

// TestSpotAgainstChance plays the reclaims out and compares with the formula.
func TestSpotAgainstChance(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for _, s := range []Spot{
		{Work: 10 * time.Hour, Every: 6 * time.Hour, Save: time.Hour, SaveTakes: 2 * time.Minute, Restart: 10 * time.Minute},
		{Work: 3 * time.Hour, Every: 4 * time.Hour, Restart: 15 * time.Minute},
		{Work: 5*time.Hour + 30*time.Minute, Every: time.Hour, Save: 10 * time.Minute, SaveTakes: time.Minute},
	} {
		s.OnDemand, s.Price = cny("20"), cny("8")
		const rounds = 20000
		sum := 0.0
		for range rounds {
			for done := time.Duration(0); done < s.Work; {
				stretch := s.Work - done
				took := stretch
				if s.Save > 0 && s.Save < stretch {
					stretch, took = s.Save, s.Save+s.SaveTakes
				}
				if died := r.ExpFloat64() * s.Every.Hours(); died < took.Hours() {
					sum += died + s.Restart.Hours()
					continue
				}
				done += stretch
				sum += took.Hours()
			}
		}
		played := sum / rounds
		a, err := s.Ask()
		if err != nil || a.Took == nil || math.Abs(a.Took.Hours()-played)/played > 0.02 {
			t.Errorf("%+v: expected %v, played %v h, %v", s, a.Took, played, err)
		}
	}
}

// FuzzSpot: no input makes it hang, panic or give less than without a reclaim.
func FuzzSpot(f *testing.F) {
	f.Add(int64(20), int64(8), int64(72000), int64(3600), int64(600), int64(10), int64(60))
	f.Fuzz(func(t *testing.T, on, price, work, every, save, saves, restart int64) {
		sec := func(n int64) time.Duration { return time.Duration(n%1e8) * time.Second }
		a, err := Spot{OnDemand: billing.Amount{Value: big.NewRat(on, 1), Currency: "USD"}, Price: billing.Amount{Value: big.NewRat(price, 1), Currency: "USD"},
			Work: sec(work), Every: sec(every), Save: sec(save), SaveTakes: sec(saves), Restart: sec(restart)}.Ask()
		if err != nil || a.Loss == nil {
			return
		}
		if slack := a.Loss.Value; slack.Cmp(big.NewRat(-price-1, 1)) < 0 {
			t.Errorf("reclaims earn %s", a.Loss)
		}
	})
}
