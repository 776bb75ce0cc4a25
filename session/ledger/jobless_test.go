package ledger

import (
	"strings"
	"testing"
	"time"

	"rentop/remote/tmux"
	"rentop/session/billing"
)

// The jobs, the time without jobs and what jobs at once count twice add up to the days.
func TestJoblessAddsUp(t *testing.T) {
	start := time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)
	now := start.Add(20 * time.Hour)
	job := func(id string, from, hours int) []Event {
		j := tmux.Job{ID: id, Name: "train"}
		return []Event{at(start.Add(time.Duration(from)*time.Hour), JobStarted, j), at(start.Add(time.Duration(from+hours)*time.Hour), JobEnded, j)}
	}
	meter := []Event{at(start, PlanSet, eight), at(now, Observed, Observation{State: "running", StartedAt: start, Box: "x"})}
	for _, c := range []struct {
		name   string
		events [][]Event
		want   string
	}{
		{"none", nil, "11-28 a100 no job 20h0m0s ¥160.00 (while no job ran)\n"},
		{"one after another", [][]Event{job("j1", 1, 2), job("j2", 3, 4)}, "11-28 a100 no job 20h0m0s ¥112.00 (while no job ran)\n"},
		{"at once", [][]Event{job("j1", 1, 4), job("j2", 3, 4), job("j3", 10, 1)}, "11-28 a100 no job 20h0m0s ¥104.00 (while no job ran)\n11-28 a100 at once 20h0m0s -¥16.00 (jobs that ran at once: each counts the whole instance)\n"},
	} {
		events := append([]Event{}, meter...)
		for _, e := range c.events {
			events = append(events, e...)
		}
		l := costly(t, now, "a100", events...)
		rows, err := l.Costs(t.Context(), time.Time{}, now, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := l.Jobless(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		if got := table(rest); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
		var days, jobs billing.Amount
		for _, r := range append(rows, rest...) {
			to := &jobs
			if r.Kind == RowDay {
				to = &days
			}
			if *to, err = to.Add(*r.Amount); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := days.Cmp(jobs); n != 0 || err != nil {
			t.Errorf("%s: the days cost %s, by jobs %s", c.name, days, jobs)
		}
	}
}

// What is not known stays unknown in the rest.
func TestJoblessUnknown(t *testing.T) {
	start := time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)
	l := costly(t, start.Add(time.Hour), "a", at(start, Observed, Observation{State: "running", StartedAt: start, Box: "x"}))
	rows, err := l.Costs(t.Context(), time.Time{}, start.Add(time.Hour), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := l.Jobless(t.Context(), rows)
	if err != nil || len(rest) != 1 || rest[0].Amount != nil || !strings.Contains(rest[0].Note.String(), "not known: ") {
		t.Errorf("%+v, %v", rest, err)
	}
}
