package billing

// The ways of billing of facts/rent.md §5 that need more than an hourly price: the
// numbers of the cases are those of that list.

import (
	"math/big"
	"testing"
	"time"
)

const hour = int64(3600)

// TestClockHours is case 9: settled at each full hour, at least 0.01 each.
func TestClockHours(t *testing.T) {
	p := Plan{Currency: "CNY", PerHour: dec("1.97"), Floor: dec("0.01"), Settle: time.Hour}
	wantAmount(t, "over a full hour", bill(t, secs(hour+10), running(hour-10, hour+10, p)).Total, 4, "0.0200")
	wantAmount(t, "in one hour", bill(t, secs(30), running(10, 30, p)).Total, 2, "0.01")
	wantAmount(t, "a long run", bill(t, secs(3*hour), running(0, 3*hour, p)).Total, 4, "5.9100")
	p.Settle = 0
	wantAmount(t, "one session", bill(t, secs(hour+10), running(hour-10, hour+10, p)).Total, 2, "0.01")
	wantAmount(t, "one second", bill(t, secs(1), running(0, 1, p)).Total, 4, "0.0100")
	again := running(100, 101, p)
	again.NewStart = true
	wantAmount(t, "two sessions", bill(t, secs(200), running(0, 1, p), again).Total, 4, "0.0200")
}

// TestSteps is case 10.
func TestSteps(t *testing.T) {
	p := Plan{Currency: "CNY", PerHour: dec("0.29"), Steps: []Step{{96 * time.Hour, dec("0.20")}, {360 * time.Hour, dec("0.10")}}}
	flat := p
	flat.Steps = nil
	for _, tt := range []struct {
		hours int64
		plan  Plan
		want  string
	}{{24, p, "6.96"}, {96, p, "27.84"}, {100, p, "28.64"}, {360, p, "80.64"}, {720, p, "116.64"}, {720, flat, "208.80"}} {
		wantAmount(t, "total", bill(t, secs(tt.hours*hour), running(0, tt.hours*hour, tt.plan)).Total, 2, tt.want)
	}
	again := running(100*hour, 110*hour, p)
	again.NewStart = true
	wantAmount(t, "a new start begins at the first step", bill(t, secs(200*hour), running(0, 100*hour, p), again).Total, 2, "31.54")
	for d, want := range map[time.Duration]string{0: "0.29", 96*time.Hour - 1: "0.29", 96 * time.Hour: "0.20", 1000 * time.Hour: "0.10"} {
		wantAmount(t, "burn", BurnPerHour(p.After(d), Running), 2, want)
	}
}

// TestHibernation is case 12: powered off is charged in full, hibernated only the
// root disk and the address.
func TestHibernation(t *testing.T) {
	idle := []State{Hibernated}
	p := Plan{Currency: "USD", PerHour: dec("1.35"), Billed: Minute, WhileStopped: dec("1.35"), WhileHibernated: new(big.Rat),
		Also: []Meter{{"disk", PerGBMonth(dec("100"), dec("0.07"), 730), idle}, {"ip", dec("0.005"), idle}}}
	on, off := int64(123*60), int64(123*60)+5*hour
	b := bill(t, secs(off+10*hour), running(0, on, p), stopped(on, off, p), Interval{State: Hibernated, From: secs(off), To: secs(off + 10*hour), Plan: p})
	wantAmount(t, "active", b.Compute, 4, "2.7675")
	wantAmount(t, "off", b.Stopped, 2, "6.75")
	wantAmount(t, "disk", b.Disk, 5, "0.09589")
	wantAmount(t, "address", b.Other, 3, "0.050")
	wantAmount(t, "total", b.Total, 2, "9.66")
	wantAmount(t, "burn", BurnPerHour(p, Hibernated), 6, "0.014589")
	p.Also[1].PerHour = nil
	b = bill(t, secs(off+10*hour), Interval{State: Hibernated, From: secs(off), Plan: p})
	if b.Total != nil || b.Other != nil || b.Disk == nil || len(b.Missing) != 1 || b.Missing[0] != "price of the ip" || BurnPerHour(p, Hibernated) != nil {
		t.Errorf("an address of unknown price: %s", asText(b))
	}
}

// TestDearerDisk is case 2: two disks, one of them dearer while stopped and the
// other wiped by the stop.
func TestDearerDisk(t *testing.T) {
	disk := func(gb, price string, s State) Meter {
		return Meter{"disk", PerGBMonth(dec(gb), dec(price), 720), []State{s}}
	}
	p := Plan{Currency: "USD", PerHour: dec("0.69"), WhileStopped: new(big.Rat), Also: []Meter{
		disk("20", "0.10", Running), disk("100", "0.10", Running), disk("100", "0.20", Stopped)}}
	b := bill(t, secs(8225+22*hour), running(0, 8225, p), stopped(8225, 8225+22*hour, p))
	wantAmount(t, "compute", b.Compute, 6, "1.576458")
	wantAmount(t, "disks", b.Disk, 6, "0.649190") // 0.006346 + 0.642843, each rounded
	wantAmount(t, "total", b.Total, 2, "2.23")
}

// TestRefund is case 14.
func TestRefund(t *testing.T) {
	p := Prepaid{Paid: dec("576"), From: t0, To: t0.Add(720 * time.Hour)}
	for h, want := range map[int]string{-5: "576.00", 0: "576.00", 360: "212.40", 720: "0.00", 900: "0.00"} {
		got, err := p.Refund(t0.Add(time.Duration(h)*time.Hour), dec("1"), dec("0.05"))
		if err != nil || got.FloatString(2) != want {
			t.Errorf("after %d h: %v %v, want %s", h, got, err, want)
		}
	}
	if _, err := (Prepaid{From: t0, To: secs(1)}).Refund(t0, dec("1"), dec("0")); err == nil {
		t.Error("what was paid is not known, and it is refunded")
	}
}
