package ledger

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"rentop/session/billing"
)

func TestPlanComesBackExactly(t *testing.T) {
	p := billing.Plan{Currency: "USD", PerHour: big.NewRat(288, 365), Billed: billing.Hour, MinSeconds: 60, WhileStopped: new(big.Rat), DiskGB: big.NewRat(100, 1),
		MonthHours: 720, Prepaid: &billing.Prepaid{Paid: big.NewRat(576, 1), From: t0, To: t0.AddDate(0, 1, 0)},
		WhileHibernated: big.NewRat(1, 3), Floor: big.NewRat(1, 100), Settle: time.Hour, Steps: []billing.Step{{After: 96 * time.Hour, PerHour: big.NewRat(1, 7)}},
		Also: []billing.Meter{{Kind: "ip", In: []billing.State{billing.Stopped}}, {Kind: "volume", PerHour: big.NewRat(2, 3), In: []billing.State{billing.Running}}}}
	text, err := json.Marshal(PlanDataOf(p))
	if err != nil {
		t.Fatal(err)
	}
	var d PlanData
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	got, err := d.Plan()
	if err != nil || !got.Equal(p) || got.PerGBMonth != nil {
		t.Errorf("%s came back as %+v, %v", text, got, err)
	}
}

func TestStartedAtByOurClock(t *testing.T) {
	theirs := t0.Add(3 * time.Hour) // ahead
	if got := StartedAt(theirs.Add(-time.Hour), theirs, t0); !got.Equal(t0.Add(-time.Hour)) {
		t.Errorf("got %v", got)
	}
	if got := StartedAt(time.Time{}, theirs, t0); !got.IsZero() {
		t.Errorf("an unreadable start became %v", got)
	}
}

// FuzzFold feeds event data that no rentop wrote.
func FuzzFold(f *testing.F) {
	f.Add(`{"currency":"CNY","per_hour":"8"}`, `{"state":"running","started_at":"2026-11-30T09:00:00Z","box":"x"}`, `{"state":"gone"}`)
	f.Add(`{"per_hour":"1e999999999"}`, `{"state":1}`, `null`)
	f.Add(`{"currency":"CNY","per_hour":"1/0","prepaid":{"from":"0001-01-01T00:00:00Z"}}`, `{"state":"running","started_at":"0001-01-01T00:00:01Z"}`, `{"state":"stopped","started_at":"9999-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, plan, first, second string) {
		events := []Event{
			{Seq: 1, At: t0, Recorded: t0, Kind: PlanSet, Data: json.RawMessage(plan)},
			{Seq: 2, At: t0.Add(time.Hour), Recorded: t0.Add(time.Hour), Kind: Observed, Data: json.RawMessage(first)},
			{Seq: 3, At: t0.Add(2 * time.Hour), Recorded: t0.Add(2 * time.Hour), Kind: Observed, Data: json.RawMessage(second)},
		}
		tl := Fold(events, t0.Add(3*time.Hour))
		adjacent(t, tl)
		if _, err := tl.Bill(t0.Add(3 * time.Hour)); err != nil {
			t.Errorf("it cannot be billed: %v", err)
		}
	})
}
