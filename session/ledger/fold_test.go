package ledger

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/session/billing"
)

// script builds events as rentop would have written them: each line at its own
// time, one Seq after the other.
type script struct {
	events []Event
}

// clock reads "10:30" of the test's day, or "2 10:30" of the second day after it.
func clock(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	day := 0
	if d, rest, ok := strings.Cut(s, " "); ok {
		fmt.Sscan(d, &day)
		s = rest
	}
	t, err := time.Parse("15:04", s)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 11, 30+day, t.Hour(), t.Minute(), 0, 0, time.UTC)
}

func (s *script) add(at, recorded, source string, k Kind, data any) *script {
	e := NewEvent(k, "a", source, data)
	e.Seq, e.At, e.Recorded = int64(len(s.events)+1), clock(at), clock(recorded)
	s.events = append(s.events, e)
	return s
}

func (s *script) running(at, started, box string) *script {
	return s.add(at, at, "ssh", Observed, Observation{State: "running", StartedAt: clock(started), Box: box})
}

func (s *script) told(at, recorded, state string) *script {
	return s.add(at, recorded, "provider", Observed, Observation{State: state})
}

func (s *script) plan(at, perHour string) *script {
	return s.add(at, at, "user", PlanSet, PlanData{Currency: "CNY", PerHour: perHour, WhileStopped: "0"})
}

// show is a timeline on one line: "running 10:00-12:00 @8 | stopped 12:00-".
func show(t Timeline) string {
	var parts []string
	day := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		s := at.Format("15:04")
		if d := int(at.Sub(clock("00:00")) / (24 * time.Hour)); d > 0 {
			s = fmt.Sprint(d, " ", s)
		}
		return s
	}
	for _, i := range t.Intervals {
		s := fmt.Sprintf("%s %s-%s", i.State, day(i.From), day(i.To))
		if i.NewStart {
			s = "*" + s
		}
		if i.Plan.PerHour != nil {
			s += " @" + i.Plan.PerHour.RatString()
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " | ")
}

// TestFoldHibernated: it ends the running and has a price of its own.
func TestFoldHibernated(t *testing.T) {
	s := (&script{}).add("10:00", "10:00", "user", PlanSet, PlanData{Currency: "USD", PerHour: "1", WhileStopped: "1", WhileHibernated: "1/100", Steps: []StepData{{7200, "1/2"}}})
	s.running("10:00", "10:00", "a").told("12:00", "12:00", "hibernated")
	tl := Fold(s.events, clock("13:00"))
	if got := show(tl); got != "*running 10:00-12:00 @1 | hibernated 12:00- @1" {
		t.Error(got)
	}
	if b, err := tl.Bill(clock("13:00")); err != nil || b.Total == nil || b.Total.Exact(4) != "2.01" {
		t.Errorf("%+v %v", b.Total, err)
	}
	s.running("13:00", "13:00", "b")
	tl = Fold(s.events, clock("14:00"))
	for at, want := range map[string]string{"14:00": "1", "15:00": "0.5"} {
		if got := tl.PerHour(clock(at)); got == nil || got.Exact(4) != want {
			t.Errorf("at %s an hour costs %v, want %s", at, got, want)
		}
	}
}

func TestFold(t *testing.T) {
	tests := []struct {
		name   string
		events *script
		now    string
		want   string
		note   string // in one of the notes; "": no note at all
	}{
		{"nothing", new(script), "12:00", "", ""},
		{"a start that was read counts from there", new(script).running("11:00", "10:00", "x"), "11:05",
			"*running 10:00-", ""},
		{"no start: from first contact", new(script).running("11:00", "", ""), "11:05",
			"*running 11:00-", "counted from first contact at 2026-11-30 11:00"},
		{"a start that is read later", new(script).running("11:00", "", "").running("11:05", "10:00", "x"), "11:06",
			"*running 10:00-", ""},
		{"rentop was away, the same box", new(script).running("11:00", "10:00", "x").running("20:00", "10:00", "x"), "20:01",
			"*running 10:00-", ""},
		{"the same box though its clock stepped", new(script).running("11:00", "10:00", "x").running("20:00", "13:00", "x"), "20:01",
			"*running 10:00-", ""},
		{"no box, but a start before the last sight", new(script).running("11:00", "", "").running("20:00", "10:30", ""), "20:01",
			"*running 10:30-", ""},
		{"no evidence at all", new(script).running("11:00", "", "").running("20:00", "", ""), "20:01",
			"*running 11:00-", "nobody looked from 2026-11-30 11:00 to 2026-11-30 20:00"},
		{"another box: what was between is unknown", new(script).running("11:00", "10:00", "x").running("20:00", "19:00", "y"), "20:01",
			"*running 10:00-11:00 | unknown 11:00-19:00 | *running 19:00-", "at an unknown time between 2026-11-30 11:00 and 2026-11-30 19:00"},
		{"another box without a start", new(script).running("11:00", "10:00", "x").running("20:00", "", "y"), "20:01",
			"*running 10:00-11:00 | unknown 11:00-20:00 | *running 20:00-", "unknown time"},
		{"no box, a start after the last sight", new(script).running("11:00", "10:00", "").running("20:00", "19:00", ""), "20:01",
			"*running 10:00-11:00 | unknown 11:00-19:00 | *running 19:00-", "unknown time"},
		{"a quick restart counts as running", new(script).running("11:00", "10:00", "x").running("11:04", "11:03", "y"), "11:05",
			"*running 10:00-11:03 | *running 11:03-", "at most"},
		{"stopped at the time told", new(script).running("11:00", "10:00", "x").told("12:00", "20:00", "stopped"), "20:01",
			"*running 10:00-12:00 | stopped 12:00-", ""},
		{"stopped, noticed later", new(script).running("11:00", "10:00", "x").told("20:00", "20:00", "gone"), "20:01",
			"*running 10:00-20:00 | gone 20:00-", "at most"},
		{"stop and start", new(script).running("11:00", "10:00", "x").told("11:02", "11:02", "stopped").running("13:00", "12:30", "y"), "13:01",
			"*running 10:00-11:02 | stopped 11:02-12:30 | *running 12:30-", ""},
		{"a start is not before a stop that was seen", new(script).running("11:00", "10:00", "x").told("11:02", "11:02", "stopped").told("12:00", "12:00", "stopped").running("13:00", "11:30", "y"), "13:01",
			"*running 10:00-11:02 | stopped 11:02-12:00 | *running 12:00-", ""},
		{"a stop without effect", new(script).running("11:00", "10:00", "x").told("11:02", "11:02", "stopped").running("13:00", "10:00", "x"), "13:01",
			"*running 10:00-", "counted as running throughout"},
		{"running again, nobody knows since when", new(script).running("11:00", "10:00", "x").told("11:02", "11:02", "stopped").running("13:00", "", ""), "13:01",
			"*running 10:00-11:02 | unknown 11:02-13:00 | *running 13:00-", "started at an unknown time"},
		{"a stop that was told later than a sight after it", new(script).running("11:00", "10:00", "x").running("12:03", "10:00", "x").told("12:00", "12:10", "stopped"), "12:11",
			"*running 10:00-12:03 | stopped 12:03-", ""},
		{"a correction by the person", new(script).running("11:00", "10:00", "x").running("20:00", "19:00", "y").add("15:00", "20:05", "user", Observed, Observation{State: "stopped"}), "20:06",
			"*running 10:00-15:00 | stopped 15:00-19:00 | *running 19:00-", ""},
		{"unknown is no evidence", new(script).running("11:00", "10:00", "x").told("11:05", "11:05", "unknown"), "11:10",
			"*running 10:00-", ""},
		{"nobody looks any more", new(script).running("11:00", "10:00", "x"), "2 11:00",
			"*running 10:00-", "not seen since 2026-11-30 11:00: counted as still running"},
		{"first seen is a sight", new(script).add("11:00", "11:00", "ssh", FirstSeen, FirstSeenData{InstanceClock: clock("13:00"), BoxStartedAt: clock("12:00"), Box: "x"}), "11:01",
			"*running 10:00-", ""},
		{"its clock is ahead", new(script).running("11:00", "15:00", "x"), "11:01",
			"*running 11:00-", ""},
		{"removed while running", new(script).running("11:00", "10:00", "x").add("11:10", "11:10", "user", Removed, nil), "20:00",
			"*running 10:00-11:10 | gone 11:10-", "is not counted"},
		{"the first plan counts back", new(script).running("11:00", "10:00", "x").plan("11:00", "8"), "11:01",
			"*running 10:00- @8", ""},
		{"a price change", new(script).plan("10:00", "8").running("11:00", "10:00", "x").plan("12:00", "9").running("13:00", "10:00", "x"), "13:01",
			"*running 10:00-12:00 @8 | running 12:00- @9", ""},
		{"a price corrected from an earlier time on", new(script).plan("10:00", "8").running("11:00", "10:00", "x").plan("12:00", "9").add("11:00", "13:00", "user", PlanSet, PlanData{Currency: "CNY", PerHour: "7"}).running("13:00", "10:00", "x"), "13:01",
			"*running 10:00-11:00 @8 | running 11:00- @7", ""},
		{"two prices at one moment, told twice", new(script).plan("10:00", "8").plan("10:00", "9").plan("10:00", "8").running("11:00", "10:00", "x"), "11:01",
			"*running 10:00- @9", ""},
		{"a price told ahead", new(script).plan("10:00", "8").running("11:00", "10:00", "x").add("18:00", "11:00", "user", PlanSet, PlanData{Currency: "CNY", PerHour: "7"}), "11:01",
			"*running 10:00-18:00 @8 | running 18:00- @7", ""},
		{"an unreadable price", new(script).add("10:00", "10:00", "user", PlanSet, PlanData{PerHour: "-8", Currency: "CNY"}), "10:01",
			"", "is unreadable"},
		{"an unreadable sight", new(script).add("10:00", "10:00", "user", Observed, "what"), "10:01",
			"", "is unreadable"},
		{"our clock was ahead once", new(script).running("11:00", "10:00", "x").running("2 11:00", "10:00", "x").told("12:00", "12:00", "stopped").told("12:10", "12:10", "stopped"), "12:11",
			"*running 10:00-12:00 | stopped 12:00-", ""},
		{"our clock was ahead when it stopped", new(script).running("11:00", "10:00", "x").told("2 11:00", "2 11:00", "stopped").running("13:00", "12:30", "y").running("13:10", "12:30", "y"), "13:11",
			"*running 10:00-13:00 | *running 13:00-", "at most"},
		{"our clock was behind once", new(script).running("11:00", "10:00", "x").add("-9000 10:00", "-9000 10:00", "ssh", Observed, Observation{State: "running", Box: "x"}).running("13:00", "10:00", "x"), "13:01",
			"*running 10:00-", ""},
		{"now is behind: time does not run back", new(script).running("11:00", "10:00", "x").running("11:01", "10:00", "x").running("11:02", "10:00", "x"), "09:00",
			"*running 10:00-", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Fold(tt.events.events, clock(tt.now))
			if !strings.HasPrefix(show(got), tt.want) || tt.want == "" && show(got) != "" {
				t.Errorf("got  %s\nwant %s", show(got), tt.want)
			}
			all := strings.Trim(fmt.Sprint(got.Notes), "[]")
			if tt.note == "" && all != "" || !strings.Contains(all, tt.note) {
				t.Errorf("notes %q, want one with %q", got.Notes, tt.note)
			}
			adjacent(t, got)
			anyOrder(t, tt.events.events, clock(tt.now), got)
		})
	}
}

// adjacent checks what every timeline keeps.
func adjacent(t *testing.T, got Timeline) {
	t.Helper()
	for n, i := range got.Intervals {
		last := n == len(got.Intervals)-1
		if i.To.IsZero() != last || !last && (!i.From.Before(i.To) || !i.To.Equal(got.Intervals[n+1].From)) {
			t.Errorf("interval %d is not well formed: %s", n, show(got))
		}
	}
}

// anyOrder folds the events again, shuffled and told twice.
func anyOrder(t *testing.T, events []Event, now time.Time, want Timeline) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		again := slices.Concat(events, events)
		for _, e := range events { // written once more by another rentop
			e.Seq += int64(len(events))
			again = append(again, e)
		}
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		got := Fold(again, now)
		if show(got) != show(want) || fmt.Sprint(got.Notes) != fmt.Sprint(want.Notes) || got.State != want.State || !got.Since.Equal(want.Since) {
			t.Fatalf("in another order: %s %q\nwant              %s %q", show(got), got.Notes, show(want), want.Notes)
		}
	}
}

func TestTimelineBills(t *testing.T) {
	s := new(script).plan("10:00", "8").running("11:00", "10:00", "x").told("12:00", "12:00", "stopped").running("14:00", "13:00", "y")
	tl := Fold(s.events, clock("14:00"))
	b, err := tl.Bill(clock("14:00"))
	if err != nil || b.Total.String() != "¥24.00" {
		t.Errorf("bill %v %v, want ¥24.00", b.Total, err)
	}
	if b, err = tl.Between(clock("11:30"), clock("13:30")); err != nil || b.Total.String() != "¥8.00" {
		t.Errorf("between %v %v, want ¥8.00", b.Total, err)
	}
	if a := tl.PerHour(clock("14:00")); a == nil || a.Value.Cmp(big.NewRat(8, 1)) != 0 {
		t.Errorf("per hour %v", a)
	}
	if tl.State != billing.Running || !tl.Since.Equal(clock("13:00")) || !tl.Begin().Equal(clock("10:00")) || !tl.LastObserved.Equal(clock("14:00")) {
		t.Errorf("timeline %+v", tl)
	}
	// A cost that cannot be known is no number.
	s.running("23:00", "22:00", "z")
	if b, err = Fold(s.events, clock("23:00")).Bill(clock("23:00")); err != nil || b.Total != nil || b.Known.String() != "¥32.00" {
		t.Errorf("bill %v known %v %v, want none, at least ¥32.00", b.Total, b.Known, err)
	}
}

// TestFoldOfAnything folds random events: whatever they say, time and money
// neither run backwards nor depend on the order of telling.
func TestFoldOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	states := []string{"running", "running", "running", "stopped", "gone", "unknown", "odd"}
	at := func() time.Time { return clock("00:00").Add(time.Duration(r.IntN(48*60)) * time.Minute) }
	for range 500 {
		var s script
		for range r.IntN(12) {
			o := Observation{State: states[r.IntN(len(states))], Box: []string{"", "x", "y"}[r.IntN(3)]}
			if r.IntN(2) == 0 {
				o.StartedAt = at()
			}
			e := NewEvent(Observed, "a", []string{"ssh", "provider"}[r.IntN(2)], o)
			if r.IntN(5) == 0 {
				e = NewEvent(PlanSet, "a", "user", PlanData{Currency: "CNY", PerHour: fmt.Sprint(r.IntN(9)), WhileStopped: "1"})
			}
			e.Seq, e.At, e.Recorded = int64(len(s.events)+1), at(), at()
			s.events = append(s.events, e)
		}
		now := at()
		tl := Fold(s.events, now)
		adjacent(t, tl)
		anyOrder(t, s.events, now, tl)
		known := new(big.Rat)
		for h := range 60 {
			b, err := tl.Bill(clock("00:00").Add(time.Duration(h) * time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if b.Known.Value.Cmp(known) < 0 {
				t.Fatalf("the cost fell: %s", show(tl))
			}
			known = b.Known.Value
		}
	}
}

func BenchmarkFold10000(b *testing.B) {
	var s script
	s.plan("10:00", "8")
	for n := range 10_000 {
		e := NewEvent(Observed, "a", "ssh", Observation{State: "running", StartedAt: clock("10:00").Add(time.Duration(n/500) * 48 * time.Hour), Box: fmt.Sprint("box", n/500)})
		e.Seq, e.At = int64(n+2), clock("10:00").Add(time.Duration(n/500)*48*time.Hour+time.Duration(n%500)*time.Minute)
		e.Recorded = e.At
		s.events = append(s.events, e)
	}
	now := s.events[len(s.events)-1].At
	for b.Loop() {
		if tl := Fold(s.events, now); len(tl.Intervals) < 20 {
			b.Fatal(show(tl))
		}
	}
}
