package ledger

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/session/billing"
)

// one is a ledger with one instance.
func one(t *testing.T, clock func() time.Time) (*Ledger, string) {
	t.Helper()
	l, err := Open(filepath.Join(t.TempDir(), "l.db"), clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	uids, err := l.Ensure(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return l, uids["a"]
}

func TestExtras(t *testing.T) {
	now := t0.AddDate(0, 0, 5)
	l, uid := one(t, func() time.Time { return now })
	day := func(n, hour int) time.Time { return time.Date(2026, 12, 1+n, hour, 0, 0, 0, time.UTC) }
	add := func(at time.Time, k Kind, data any) {
		t.Helper()
		e := NewEvent(k, uid, "rentop", data)
		e.At = at
		if _, err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	add(day(0, 1), Transferred, Traffic{Direction: "push", Wire: 2e9, PerGB: "1/10", Currency: "USD"})
	add(day(0, 2), Transferred, Traffic{Direction: "copy from", Wire: 1e9, PerGB: "1", Currency: "USD"})
	add(day(1, 1), Transferred, Traffic{Direction: "pull", Wire: 1e9})
	add(day(1, 2), Transferred, map[string]string{"wire": "much"}) // no rentop's
	add(day(0, 12), LeftBehind, LeftData{Items: []LeftItem{{"disk", "d", "730", "USD"}, {"ip", "i", "", ""}}})
	add(day(2, 0), LeftBehind, LeftData{})
	rows, err := l.Extras(t.Context(), time.Time{}, day(4, 0), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		amount := "?"
		if r.Amount != nil {
			amount = r.Amount.String()
		}
		got = append(got, strings.Join([]string{r.Day.Format("01-02"), r.Kind, amount, r.AtLeast.String(), r.Note.String()}, " "))
	}
	want := []string{
		"12-01 traffic $1.20 $1.20 2.00 GB in, 1.00 GB out", "12-01 left behind $12.00 $12.00 disk d", "12-01 left behind ? 0.00 ip i; not known: its price",
		"12-02 traffic ? 0.00 0.00 GB in, 1.00 GB out; not known: price of traffic", "12-02 left behind $24.00 $24.00 disk d", "12-02 left behind ? 0.00 ip i; not known: its price",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The parts of a day add up to it.
	sum := billing.Amount{}
	for h := range 48 {
		part, err := l.Extras(t.Context(), day(0, h), day(0, h+1), time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range part {
			if sum, err = sum.Add(*r.AtLeast); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sum.String() != "$37.20" {
		t.Errorf("hour by hour it is %s", sum)
	}
	events, err := l.Events(t.Context(), Filter{Instance: uid})
	if err != nil {
		t.Fatal(err)
	}
	if items, since := Left(events); len(items) != 0 || !since.Equal(day(2, 0)) {
		t.Errorf("%v since %v", items, since)
	}
}

// TestLeftIsCountedOnce: a volume that two gone instances left is one volume.
func TestLeftIsCountedOnce(t *testing.T) {
	list := func(h int, ids ...string) Event {
		d := LeftData{}
		for _, id := range ids {
			d.Items = append(d.Items, LeftItem{"volume", id, "730", "USD"})
		}
		e := NewEvent(LeftBehind, "", "provider", d)
		e.At = t0.Add(time.Duration(h) * time.Hour)
		return e
	}
	rows, err := leftRows(map[string]string{"a": "A", "b": "B"}, map[string][]Event{"a": {list(0, "v"), list(4)}, "b": {list(2, "v", "w"), list(6, "w")}},
		time.Time{}, t0.Add(8*time.Hour), time.UTC)
	if err != nil || len(rows) != 2 || rows[0].Amount.String() != "$4.00" || rows[1].Amount.String() != "$8.00" { // A: v 0–4; B: v 4–6, w 2–8
		t.Errorf("%+v %v", rows, err)
	}
}

func TestAbout(t *testing.T) {
	l, uid := one(t, nil)
	for _, e := range []Event{
		NewEvent(Described, uid, "user", Description{Provider: "runpod", Tags: []string{"x"}}), NewEvent(Described, uid, "user", Description{Provider: "vast", ID: "7"}),
		NewEvent(Hardware, uid, "ssh", HardwareData{GPUs: []string{"H100"}}), NewEvent(Hardware, uid, "ssh", HardwareData{}),
		NewEvent(Charged, uid, "user", ChargeData{t0, t0.Add(time.Hour), "1.5", "USD"}), NewEvent(Charged, uid, "provider", ChargeData{t0, t0.Add(time.Hour), "2", "USD"}),
		NewEvent(Charged, uid, "user", ChargeData{t0, t0, "9", "USD"}), NewEvent(Charged, uid, "user", ChargeData{t0, t0.Add(time.Hour), "1e9", "USD"}),
	} {
		if _, err := l.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.About(t.Context())
	if a := all[uid]; err != nil || a == nil || a.Provider != "vast" || len(a.Tags) != 0 || len(a.GPUs) != 1 || len(a.Charges) != 1 || a.Charges[0].Amount.String() != "$2.00" || a.Charges[0].Source != "provider" {
		t.Errorf("%+v %v", all[uid], err)
	}
}

// FuzzExtras feeds event data that no rentop wrote.
func FuzzExtras(f *testing.F) {
	f.Add(`{"wire":9223372036854775807,"per_gb":"999999999999","currency":"USD"}`, `{"items":[{"per_month":"-5","currency":"USD"},{"per_month":"1/0","currency":"USD"}]}`)
	f.Fuzz(func(t *testing.T, traffic, left string) {
		events := []Event{{At: t0, Kind: Transferred, Data: json.RawMessage(traffic)}, {At: t0, Kind: LeftBehind, Data: json.RawMessage(left)}}
		a, _ := trafficRows(Row{}, events, time.Time{}, t0.Add(time.Hour), time.UTC)
		b, _ := leftRows(nil, map[string][]Event{"a": events}, time.Time{}, t0.Add(time.Hour), time.UTC)
		for _, r := range append(a, b...) {
			if r.AtLeast == nil || r.AtLeast.Sign() < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
