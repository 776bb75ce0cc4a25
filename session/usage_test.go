package session

import (
	"context"
	"math"
	"os"
	"path/filepath"
	stdsync "sync"
	"testing"
	"time"

	"rentop/remote/gpu"
	"rentop/remote/gpu/guard"
	"rentop/remote/gpu/sample"
	"rentop/remote/tmux"
	"rentop/session/ledger"
)

// hand is a clock that a test sets, while a session looks at it.
type hand struct {
	mu stdsync.Mutex
	at time.Time
}

func handAt(t time.Time) *hand { return &hand{at: t} }

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hand) set(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = t
}

func (h *hand) add(d time.Duration) { h.set(h.now().Add(d)) }

// offline is a fleet of what a config says, which is never connected, at a time that
// the test sets.
func offline(t *testing.T, now *hand, config string) *Fleet {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), Options{Dirs: Dirs{Config: dir, State: filepath.Join(dir, "s")}, Secrets: noKeyring{}, Now: now.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// write puts events into the ledger as the instance's session would.
func write(t *testing.T, s *Session, at time.Time, k ledger.Kind, data any) {
	t.Helper()
	e := ledger.NewEvent(k, s.uid, "ssh", data)
	e.At = at
	if _, err := s.f.ledger.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

const box = "[instance.box]\nssh = \"root@192.0.2.1\"\nrate = { per_hour = \"8\", currency = \"CNY\", while_stopped = \"0\" }\n"

func shot(at time.Time, util float64) *gpu.Sample {
	return &gpu.Sample{TakenAt: at, GPUs: []sample.GPU{{Name: "A100", Util: sample.Of(util), MemUsed: sample.Of(1e9 * util), MemTotal: sample.Of(80e9), Power: sample.Of(300)}}}
}

// TestReceiptOfAJob: it is heard of late at both ends, and is charged what is its own.
func TestReceiptOfAJob(t *testing.T) {
	t.Parallel()
	now := handAt(noon)
	f := offline(t, now, box)
	s := session(t, f, "box")
	write(t, s, now.now(), ledger.Observed, ledger.Observation{State: "running", StartedAt: now.now()})
	begin, end := noon.Add(10*time.Second), noon.Add(10*time.Second+10*time.Minute)
	job := tmux.Job{ID: "train-1", Name: "train", Command: "python train.py", State: tmux.Running, StartedAt: begin}
	write(t, s, begin, ledger.JobStarted, job)
	for i := range 640 {
		now.set(noon.Add(time.Duration(i) * time.Second))
		util := 0.0
		if !now.now().Before(begin) && now.now().Before(end.Add(time.Second)) {
			util = 80
		}
		s.usage.add(shot(now.now(), util))
		if i == 20 {
			s.usage.follow([]tmux.Job{job})
		}
		if i == 300 {
			s.keepUsage(t.Context()) // as each connection's end does
		}
		if i == 400 {
			live, err := s.Receipts(t.Context(), []tmux.Job{job})
			if r := live["train-1"]; err != nil || !r.Running || r.Partial || r.Mean == nil || *r.Mean < 79.9 || r.Cost == nil {
				t.Errorf("while it runs: %+v %v", r, err)
			}
		}
	}
	job.State, job.EndedAt = tmux.Done, end
	write(t, s, end, ledger.JobEnded, job)
	s.keepJobUsage(job)
	got, err := s.Receipts(t.Context(), []tmux.Job{job})
	r := got["train-1"]
	if err != nil || r.Running || r.Partial || r.Mean == nil || *r.Mean < 79.9 || *r.Mean > 80.001 || r.GPUs != 1 || r.Took() != 10*time.Minute {
		t.Errorf("%+v %v", r, err)
	}
	if r.Cost == nil || r.Cost.Exact(4) != "1.3333" || r.PerBusyHour() == nil || r.PerBusyHour().Decimal(1) != "10.0" {
		t.Errorf("it cost %v, %v for an hour at work", r.Cost, r.PerBusyHour())
	}
	if k := r.KWh(); k == nil || math.Abs(*k-0.05) > 1e-6 {
		t.Errorf("energy %v", *k)
	}
}

// TestGuardPast: a guard's points, told by how long ago they were, fill a gap by our clock.
func TestGuardPast(t *testing.T) {
	t.Parallel()
	now := handAt(noon.Add(time.Hour))
	f := offline(t, now, box)
	s := session(t, f, "box")
	write(t, s, noon, ledger.Observed, ledger.Observation{State: "running", StartedAt: noon})
	job := tmux.Job{ID: "night", Name: "night", State: tmux.Done, StartedAt: noon, EndedAt: noon.Add(30 * time.Minute)}
	write(t, s, job.StartedAt, ledger.JobStarted, job)
	write(t, s, job.EndedAt, ledger.JobEnded, job)
	var points []guard.Past
	for ago := time.Hour; ago >= 0; ago -= 10 * time.Second {
		util := 70.0
		if ago < 30*time.Minute {
			util = 0
		}
		points = append(points, guard.Past{Ago: ago, Sample: *shot(time.Time{}, util)})
	}
	if err := s.MergeUsage(t.Context(), pastOf(points, now.now()), noon, now.now()); err != nil {
		t.Fatal(err)
	}
	got, err := s.Receipts(t.Context(), []tmux.Job{job})
	if r := got["night"]; err != nil || r.Partial || r.Mean == nil || math.Abs(*r.Mean-70) > 0.5 {
		t.Errorf("%+v %v", r, err)
	}
	r, err := f.Review(t.Context(), "box")
	if err != nil || r.Idle < 29*time.Minute || r.Idle > 31*time.Minute || r.Watched < 0.95 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestUsageAtTheEnd: where a connection ends, a job's newest seconds are not lost.
func TestUsageAtTheEnd(t *testing.T) {
	t.Parallel()
	now := handAt(noon)
	f := offline(t, now, box)
	s := session(t, f, "box")
	job := tmux.Job{ID: "j", Name: "j", State: tmux.Running, StartedAt: noon}
	s.usage.follow([]tmux.Job{job})
	for i := range 31 {
		now.set(noon.Add(time.Duration(i) * time.Second))
		s.usage.add(shot(now.now(), 50))
	}
	s.endUsage(t.Context())
	got, err := s.Receipts(t.Context(), []tmux.Job{job})
	if r := got["j"]; err != nil || r.Partial || r.Watched < 0.99 {
		t.Errorf("%+v %v", r, err)
	}
}

// ring is a guard's record of all seconds at 40 %.
type ring struct{ asked [][2]time.Time }

func (r *ring) Samples(_ context.Context, from, to time.Time, each func(*sample.Sample)) error {
	r.asked = append(r.asked, [2]time.Time{from, to})
	for at := from; at.Before(to); at = at.Add(10 * time.Second) {
		each(shot(at, 40))
	}
	return nil
}

// TestMergeUsage: what a guard has seen fills the hours that nobody watched, once.
func TestMergeUsage(t *testing.T) {
	t.Parallel()
	now := handAt(noon)
	f := offline(t, now, box)
	s := session(t, f, "box")
	write(t, s, now.now(), ledger.Observed, ledger.Observation{State: "running", StartedAt: now.now()})
	job := tmux.Job{ID: "night", Name: "night", State: tmux.Done, StartedAt: noon, EndedAt: noon.Add(2 * time.Hour)}
	write(t, s, job.StartedAt, ledger.JobStarted, job)
	s.usage.follow([]tmux.Job{{ID: "night", State: tmux.Running, StartedAt: noon}})
	for i := range 1800 {
		s.usage.add(shot(noon.Add(time.Duration(i)*time.Second), 80))
	}
	now.set(job.EndedAt)
	s.keepUsage(t.Context())
	write(t, s, job.EndedAt, ledger.JobEnded, job)
	got, _ := s.Receipts(t.Context(), []tmux.Job{job})
	if r := got["night"]; !r.Partial || r.Watched > 0.26 {
		t.Errorf("before: %+v", r)
	}
	past := &ring{}
	if err := s.MergeUsage(t.Context(), past, noon, now.now()); err != nil {
		t.Fatal(err)
	}
	got, _ = s.Receipts(t.Context(), []tmux.Job{job})
	if r := got["night"]; r.Partial || r.Mean == nil || *r.Mean < 49 || *r.Mean > 51 {
		t.Errorf("after: %+v", r)
	}
	asked := len(past.asked)
	if err := s.MergeUsage(t.Context(), past, noon, now.now()); err != nil || len(past.asked) != asked {
		t.Errorf("asked again: %v %v", past.asked, err)
	}
}
