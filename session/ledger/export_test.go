package ledger

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of these tests, wherever they run

	"rentop/remote/tmux"
)

// costly opens a ledger that holds one instance, its events being at.
func costly(t *testing.T, now time.Time, name string, events ...Event) *Ledger {
	t.Helper()
	l, err := Open(filepath.Join(t.TempDir(), "ledger.db"), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	uids, err := l.Ensure(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range events {
		events[n].Instance = uids[name]
	}
	if _, err := l.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	return l
}

func at(when time.Time, k Kind, data any) Event {
	e := NewEvent(k, "", "ssh", data)
	e.At = when
	return e
}

// table is a report as text.
func table(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		amount := "?"
		if r.Amount != nil {
			amount = r.Amount.String()
		}
		fmt.Fprintf(&b, "%s %s %s%s %v %s", r.Day.Format("01-02"), r.Instance, r.Kind, r.Job, r.To.Sub(r.From), amount)
		if len(r.Note) > 0 {
			b.WriteString(" (" + r.Note.String() + ")")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func wantTable(t *testing.T, l *Ledger, since, until time.Time, zone *time.Location, want string) {
	t.Helper()
	rows, err := l.Costs(t.Context(), since, until, zone)
	if err != nil {
		t.Fatal(err)
	}
	if got := table(rows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

var eight = PlanData{Currency: "CNY", PerHour: "8", WhileStopped: "0"}

func TestCostsByDayAndJob(t *testing.T) {
	zone := time.FixedZone("here", 8*3600)
	start := time.Date(2026, 11, 28, 20, 0, 0, 0, zone)
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, zone)
	job := tmux.Job{ID: "j1", Name: "train", StartedAt: start.Add(time.Hour)}
	other := tmux.Job{ID: "j2", StartedAt: start.Add(30 * time.Minute)}
	l := costly(t, now, "a100",
		at(start, PlanSet, eight),
		at(now, Observed, Observation{State: "running", StartedAt: start, Box: "x"}),
		at(job.StartedAt, JobStarted, job),
		at(job.StartedAt.Add(5*time.Hour), JobEnded, job),
		at(job.StartedAt.Add(9*time.Hour), JobEnded, job), // seen again by another rentop
		at(start.Add(time.Hour), JobEnded, other),         // started by another
		at(now.Add(-time.Hour), JobStarted, tmux.Job{ID: "j3", Name: "eval"}),
		at(now.Add(-time.Hour), JobStarted, "odd"))
	wantTable(t, l, time.Time{}, now, zone, `11-28 a100 day 4h0m0s ¥32.00
11-28 a100 jobtrain 5h0m0s ¥40.00
11-28 a100 jobj2 30m0s ¥4.00
11-29 a100 day 24h0m0s ¥192.00
11-30 a100 day 10h0m0s ¥80.00
11-30 a100 jobeval 1h0m0s ¥8.00 (still running, or its end was not seen)
`)
	wantTable(t, l, start.Add(5*time.Hour), start.Add(8*time.Hour), zone, `11-29 a100 day 3h0m0s ¥24.00
11-29 a100 jobtrain 1h0m0s ¥8.00
`)
}

func TestCostsOfWhatIsGoneOrUnknown(t *testing.T) {
	day := func(d, h int) time.Time { return time.Date(2026, 11, d, h, 0, 0, 0, time.UTC) }
	l := costly(t, day(20, 0), "a",
		at(day(1, 10), PlanSet, eight),
		at(day(1, 12), Observed, Observation{State: "running", StartedAt: day(1, 10), Box: "x"}),
		at(day(3, 12), Observed, Observation{State: "running", StartedAt: day(3, 10), Box: "y"}),
		at(day(3, 13), Observed, Observation{State: "gone"}))
	if err := l.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantTable(t, l, time.Time{}, day(20, 0), time.UTC, `11-01 a day 14h0m0s ? (not known: state (nobody looked))
11-02 a day 24h0m0s ? (not known: state (nobody looked))
11-03 a day 24h0m0s ? (not known: state (nobody looked); restarted or stopped at an unknown time between 2026-11-01 12:00 and 2026-11-03 10:00: its cost between is not known)
`)
	rows, err := l.Costs(t.Context(), time.Time{}, day(20, 0), time.UTC)
	if err != nil || rows[0].AtLeast.String() != "¥16.00" || rows[2].AtLeast.String() != "¥24.00" {
		t.Errorf("%+v %v", rows, err)
	}
}

// TestDaysOfOddLength bills days on which clocks change, also at midnight.
func TestDaysOfOddLength(t *testing.T) {
	for _, tt := range []struct {
		zone  string
		start string
		want  string
	}{
		{"Europe/Berlin", "2026-10-24", "10-24 a day 24h0m0s ¥192.00\n10-25 a day 25h0m0s ¥200.00\n10-26 a day 24h0m0s ¥192.00\n"},
		{"Europe/Berlin", "2026-03-28", "03-28 a day 24h0m0s ¥192.00\n03-29 a day 23h0m0s ¥184.00\n03-30 a day 24h0m0s ¥192.00\n"},
		{"America/Sao_Paulo", "2018-11-03", "11-03 a day 24h0m0s ¥192.00\n11-04 a day 23h0m0s ¥184.00\n11-05 a day 24h0m0s ¥192.00\n"},
		{"Asia/Shanghai", "2026-11-28", "11-28 a day 24h0m0s ¥192.00\n11-29 a day 24h0m0s ¥192.00\n11-30 a day 24h0m0s ¥192.00\n"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		start, err := time.ParseInLocation(time.DateOnly, tt.start, zone)
		if err != nil {
			t.Fatal(err)
		}
		end := midnight(start, zone, 3)
		l := costly(t, end, "a", at(start, PlanSet, eight), at(end, Observed, Observation{State: "running", StartedAt: start, Box: "x"}))
		wantTable(t, l, time.Time{}, end, zone, tt.want)
	}
}

func TestPrepaidBeforeTheFirstSight(t *testing.T) {
	day := func(d, h int) time.Time { return time.Date(2026, 11, d, h, 0, 0, 0, time.UTC) }
	plan := PlanData{Currency: "USD", PerHour: "1", WhileStopped: "0", Prepaid: &PrepaidData{Paid: "576", From: day(1, 0), To: day(30, 0)}}
	l := costly(t, day(4, 0), "a", at(day(2, 10), PlanSet, plan), at(day(4, 0), Observed, Observation{State: "running", StartedAt: day(3, 0), Box: "x"}))
	wantTable(t, l, time.Time{}, day(4, 0), time.UTC, "11-01 a day 24h0m0s $576.00\n11-03 a day 24h0m0s $0.00\n")
}
