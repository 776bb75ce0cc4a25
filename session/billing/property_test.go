package billing

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// randomPlan is any plan of one currency; some rates are unknown.
func randomPlan(r *rand.Rand) Plan {
	rate := func(most int) *big.Rat {
		if r.IntN(6) == 0 {
			return nil
		}
		return big.NewRat(r.Int64N(int64(most)), 100)
	}
	quanta := []Quantum{"", Second, Minute, MinuteExact, Hour, HourExact}
	p := Plan{Currency: "CNY", PerHour: rate(2000), Billed: quanta[r.IntN(len(quanta))], WhileStopped: rate(50),
		DiskGB: rate(50000), PerGBMonth: rate(100), MonthHours: []int{0, 720, 730}[r.IntN(3)], WhileHibernated: rate(20)}
	if r.IntN(3) == 0 {
		p.Floor, p.Settle = big.NewRat(r.Int64N(300), 100), []time.Duration{0, time.Hour, 5 * time.Minute}[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		p.Steps = []Step{{time.Duration(1+r.Int64N(7200)) * time.Second, big.NewRat(r.Int64N(900), 100)}, {3 * time.Hour, big.NewRat(r.Int64N(900), 100)}}
	}
	if r.IntN(3) == 0 {
		p.Also = []Meter{{"ip", rate(10), []State{Running, Stopped}}, {"volume", rate(10), []State{Stopped, Hibernated}}}
	}
	if r.IntN(3) == 0 {
		p.MinSeconds = r.Int64N(7200)
	}
	if r.IntN(4) == 0 {
		from := r.Int64N(40000)
		p.Prepaid = &Prepaid{Paid: rate(9000), From: secs(from), To: secs(from + 1 + r.Int64N(40000))}
	}
	return p
}

// randomLife is a list of adjacent or separate intervals, in order.
func randomLife(r *rand.Rand) []Interval {
	states := []State{Running, Running, Running, Stopped, Hibernated, Gone, Unknown}
	var list []Interval
	at := t0
	plan := randomPlan(r)
	for range 1 + r.IntN(6) {
		if r.IntN(3) == 0 {
			plan = randomPlan(r)
		}
		if r.IntN(4) == 0 {
			at = at.Add(time.Duration(r.Int64N(int64(time.Hour))))
		}
		i := Interval{State: states[r.IntN(len(states))], From: at, To: at.Add(time.Duration(1 + r.Int64N(int64(4*time.Hour)))), Plan: plan}
		i.NewStart = i.State == Running && r.IntN(3) == 0
		at = i.To
		list = append(list, i)
	}
	if r.IntN(2) == 0 {
		list[len(list)-1].To = time.Time{}
	}
	return list
}

// asText is a bill for comparison.
func asText(b Bill) string {
	s := ""
	for _, a := range []*Amount{b.Compute, b.Stopped, b.Disk, b.Other, b.Total, b.Known} {
		if a == nil {
			s += "? "
			continue
		}
		s += a.Value.RatString() + " "
	}
	return s + fmt.Sprint(b.Missing)
}

func forLives(t *testing.T, check func(t *testing.T, r *rand.Rand, list []Interval)) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := randomLife(r)
		check(t, r, list)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, list)
		}
	}
}

func TestCostNeverFalls(t *testing.T) {
	forLives(t, func(t *testing.T, r *rand.Rand, list []Interval) {
		before := new(big.Rat)
		for at := t0.Add(-time.Hour); at.Before(t0.Add(25 * time.Hour)); at = at.Add(time.Duration(1 + r.Int64N(int64(20*time.Minute)))) {
			b := bill(t, at, list...)
			if b.Known.Value.Cmp(before) < 0 {
				t.Errorf("at %v it fell from %s to %s", at, before.FloatString(4), b.Known.Exact(4))
			}
			if b.Total != nil && b.Total.Value.Cmp(b.Known.Value) != 0 {
				t.Errorf("total %s, known %s", b.Total.Exact(4), b.Known.Exact(4))
			}
			before = b.Known.Value
		}
	})
}

func TestCutsAndOrderChangeNothing(t *testing.T) {
	forLives(t, func(t *testing.T, r *rand.Rand, list []Interval) {
		at := t0.Add(26 * time.Hour)
		want := bill(t, at, list...)
		var cut []Interval
		for _, i := range list {
			end := i.To
			if end.IsZero() {
				end = at
			}
			for range r.IntN(4) {
				d := end.Sub(i.From)
				if d < 2 {
					break
				}
				first := i
				first.To = i.From.Add(time.Duration(1 + r.Int64N(int64(d)-1)))
				cut = append(cut, first)
				i.From, i.NewStart = first.To, false
			}
			cut = append(cut, i)
		}
		cut = append(cut, cut[r.IntN(len(cut))])                                                                   // told twice
		cut = append(cut, Interval{State: Running, From: t0, To: t0, Plan: list[0].Plan})                          // of no length
		cut = append(cut, Interval{State: Running, From: secs(900), To: secs(-900), Plan: list[len(list)-1].Plan}) // a clock was set back
		r.Shuffle(len(cut), func(i, j int) { cut[i], cut[j] = cut[j], cut[i] })
		if got := bill(t, at, cut...); asText(sorted(got)) != asText(sorted(want)) {
			t.Errorf("cut and shuffled: %s, want %s", asText(got), asText(want))
		}
	})
}

// sorted makes Missing comparable as a set.
func sorted(b Bill) Bill {
	set := map[string]bool{}
	for _, m := range b.Missing {
		set[m] = true
	}
	b.Missing = nil
	for _, m := range []string{MissingDisk, MissingDiskSize, MissingPrepaid, MissingPrice, MissingState, MissingStopped, MissingHibern, missingOther + "ip"} {
		if set[m] {
			b.Missing = append(b.Missing, m)
		}
	}
	return b
}

func TestPartsAddUp(t *testing.T) {
	forLives(t, func(t *testing.T, r *rand.Rand, list []Interval) {
		end := t0.Add(26 * time.Hour)
		sum := Amount{}
		missing := map[string]bool{}
		for from := t0.Add(-48 * time.Hour); from.Before(end); {
			to := from.Add(time.Duration(1 + r.Int64N(int64(8*time.Hour))))
			if to.After(end) {
				to = end
			}
			part, err := Between(list, from, to)
			if err != nil {
				t.Fatal(err)
			}
			if part.Known.Sign() < 0 {
				t.Errorf("from %v to %v it costs %s", from, to, part.Known.Exact(4))
			}
			for _, m := range part.Missing {
				missing[m] = true
			}
			if sum, err = sum.Add(*part.Known); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		whole := bill(t, end, list...)
		if c, err := sum.Cmp(*whole.Known); err != nil || c != 0 {
			t.Errorf("the parts are %s, the whole %s", sum.Exact(6), whole.Known.Exact(6))
		}
		if len(missing) != len(whole.Missing) {
			t.Errorf("the parts miss %v, the whole %v", missing, whole.Missing)
		}
	})
}

// TestExactQuantaAreRateTimesTime holds the walk against the plain formula.
func TestExactQuantaAreRateTimesTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		d := time.Duration(1 + r.Int64N(int64(100*time.Hour)))
		rate := big.NewRat(r.Int64N(9999), 1000)
		for _, q := range []Quantum{MinuteExact, HourExact} {
			b := bill(t, t0.Add(d), Interval{State: Running, From: t0, Plan: Plan{Currency: "USD", PerHour: rate, Billed: q}})
			want := new(big.Rat).Mul(rate, big.NewRat(int64(d), int64(time.Hour)))
			if b.Total.Value.Cmp(want) != 0 {
				t.Fatalf("%v at %s: %s, want %s", d, rate, b.Total.Value, want)
			}
		}
	}
}

// TestOverlapsNeverChargeTwice lays anything over anything.
func TestOverlapsNeverChargeTwice(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		var list []Interval
		for range 1 + r.IntN(8) {
			from := r.Int64N(1000)
			i := running(from, from+r.Int64N(1000)-100, Plan{Currency: "USD", PerHour: dec("3600"), Billed: HourExact})
			if r.IntN(8) == 0 {
				i.To = time.Time{}
			}
			list = append(list, i)
		}
		covered := 0
		for s := range int64(2000) {
			for _, i := range list {
				if !secs(s).Before(i.From) && (i.To.IsZero() || secs(s).Before(i.To)) {
					covered++
					break
				}
			}
		}
		b := bill(t, secs(2000), list...)
		wantAmount(t, "total", b.Total, 0, fmt.Sprint(covered))
		if t.Failed() {
			t.Fatalf("%+v", list)
		}
	}
}

func TestCostRefuses(t *testing.T) {
	usd, cny := Plan{Currency: "USD", PerHour: dec("1")}, Plan{Currency: "CNY", PerHour: dec("1")}
	for name, list := range map[string][]Interval{
		"two currencies":    {running(0, 10, usd), running(10, 20, cny)},
		"no currency":       {running(0, 10, Plan{PerHour: dec("1")})},
		"a negative price":  {running(0, 10, Plan{Currency: "CNY", PerHour: dec("-1")})},
		"a negative floor":  {running(0, 10, Plan{Currency: "CNY", Floor: dec("-1")})},
		"an odd settlement": {running(0, 10, Plan{Currency: "CNY", Settle: 7 * time.Minute})},
		"steps in disorder": {running(0, 10, Plan{Currency: "CNY", Steps: []Step{{2 * time.Hour, dec("1")}, {time.Hour, dec("1")}}})},
		"a step of nothing": {running(0, 10, Plan{Currency: "CNY", Steps: []Step{{time.Hour, nil}}})},
		"a meter for ever":  {running(0, 10, Plan{Currency: "CNY", Also: []Meter{{"ip", dec("1"), []State{Gone}}}})},
		"a negative disk":   {running(0, 10, Plan{Currency: "CNY", DiskGB: dec("-1")})},
		"an odd quantum":    {running(0, 10, Plan{Currency: "CNY", Billed: "fortnight"})},
		"a negative start":  {running(0, 10, Plan{Currency: "CNY", MinSeconds: -1})},
		"a long month":      {running(0, 10, Plan{Currency: "CNY", MonthHours: 7200})},
		"no beginning":      {{State: Running, To: t0, Plan: usd}},
		"a distant end":     {{State: Running, From: t0, To: t0.AddDate(900, 0, 0), Plan: usd}},
		"a prepaid of none": {running(0, 10, Plan{Currency: "CNY", Prepaid: &Prepaid{From: t0, To: t0}})},
	} {
		if b, err := Cost(list, secs(100)); err == nil {
			t.Errorf("%s: %s", name, asText(b))
		}
	}
	if b, err := Cost(nil, t0); err != nil || b.Total == nil || b.Total.Sign() != 0 {
		t.Errorf("nothing costs %v, %v", b.Total, err)
	}
}

func TestUnitsBelongToTheStart(t *testing.T) {
	hour := func(rate string) Plan { return Plan{Currency: "CNY", PerHour: dec(rate), Billed: Hour} }
	again := running(600, 1200, hour("5"))
	again.NewStart = true
	tests := []struct {
		name string
		list []Interval
		at   int64
		want string
	}{
		{"cut in three, one started hour", []Interval{running(0, 600, hour("5")), running(600, 1200, hour("5")), running(1200, 1800, hour("5"))}, 1800, "5"},
		{"two starts, two hours", []Interval{running(0, 600, hour("5")), again}, 1800, "10"},
		{"a gap is a start", []Interval{running(0, 600, hour("5")), running(601, 1200, hour("5"))}, 1800, "10"},
		{"an hour keeps the price it started at", []Interval{running(0, 600, hour("5")), running(600, 3601, hour("2"))}, 3601, "7"},
		{"the minimum is not paid again at a price change", []Interval{
			running(0, 10, Plan{Currency: "CNY", PerHour: dec("36"), MinSeconds: 60}), running(10, 100, Plan{Currency: "CNY", PerHour: dec("360"), MinSeconds: 60})}, 100, "4.6"},
		{"prepaid", []Interval{running(0, 10800, Plan{Currency: "CNY", PerHour: dec("1"), Prepaid: &Prepaid{Paid: dec("50"), From: secs(3600), To: secs(7200)}})}, 10800, "52"},
		{"prepaid, before it begins", []Interval{running(0, 10800, Plan{Currency: "CNY", PerHour: dec("1"), Prepaid: &Prepaid{Paid: dec("50"), From: secs(3600), To: secs(7200)}})}, 3599, "0.999722"},
		{"prepaid and stopped", []Interval{stopped(3600, 7200, Plan{Currency: "CNY", Prepaid: &Prepaid{Paid: dec("50"), From: secs(3600), To: secs(7200)}})}, 7200, "50"},
		{"a started second", []Interval{{State: Running, From: t0, To: t0.Add(1500 * time.Millisecond), Plan: Plan{Currency: "CNY", PerHour: dec("3600")}}}, 100, "2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := bill(t, secs(tt.at), tt.list...).Total; got == nil || got.Exact(6) != tt.want {
				t.Errorf("total %v, want %s", got, tt.want)
			}
		})
	}
}

func TestBurn(t *testing.T) {
	p := Plan{Currency: "CNY", PerHour: dec("8"), WhileStopped: dec("0.02"), DiskGB: dec("100"), PerGBMonth: dec("0.73")}
	wantAmount(t, "running", BurnPerHour(p, Running), 2, "8.10")
	wantAmount(t, "stopped", BurnPerHour(p, Stopped), 2, "0.12")
	wantAmount(t, "gone", BurnPerHour(p, Gone), 2, "0.00")
	p.Prepaid = &Prepaid{From: t0, To: secs(60)}
	wantAmount(t, "prepaid", BurnAt(p, Running, secs(59)), 2, "0.10")
	wantAmount(t, "after it", BurnAt(p, Running, secs(60)), 2, "8.10")
	for name, a := range map[string]*Amount{
		"an unknown state": BurnPerHour(p, Unknown), "no price": BurnPerHour(Plan{}, Running), "no price while stopped": BurnPerHour(Plan{PerHour: dec("1")}, Stopped),
		"no disk price": BurnPerHour(Plan{PerHour: dec("1"), DiskGB: dec("1")}, Running),
	} {
		if a != nil {
			t.Errorf("%s burns %s, want unknown", name, a)
		}
	}
}

func TestInputsAreNotChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	list := randomLife(r)
	list[0], list[len(list)-1] = list[len(list)-1], list[0]
	same := append([]Interval(nil), list...)
	bill(t, t0.Add(30*time.Hour), list...)
	if !reflect.DeepEqual(list, same) {
		t.Error("Cost changed its input")
	}
}

func BenchmarkCost(b *testing.B) {
	var list []Interval
	for n := range int64(1000) {
		list = append(list, running(n*100, n*100+90, Plan{Currency: "CNY", PerHour: dec("8"), DiskGB: dec("50"), PerGBMonth: dec("0.3")}))
	}
	for b.Loop() {
		if _, err := Cost(list, secs(1e6)); err != nil {
			b.Fatal(err)
		}
	}
}
