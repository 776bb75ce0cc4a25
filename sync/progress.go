package sync

import (
	stdsync "sync"
	"sync/atomic"
	"time"

	"rentop/remote"
)

// This file counts what moves and reports it at most ten times a second.

const (
	reportEvery = 100 * time.Millisecond
	rateOver    = 5 * time.Second // the rate is over the last seconds
)

// tracker is the Meter of a transfer.
type tracker struct {
	report func(Progress)
	now    func() time.Time

	bytes, wire, files, failed, kept, reused, seen atomic.Int64

	mu      stdsync.Mutex // protects p, samples; never held while reporting
	p       Progress
	samples []rateSample

	end     chan struct{}
	ended   stdsync.WaitGroup
	stopped stdsync.Once
}

type rateSample struct {
	at    time.Time
	bytes int64
}

func newTracker(t Transport, now func() time.Time, report func(Progress)) *tracker {
	tr := &tracker{report: report, now: now, end: make(chan struct{})}
	tr.p.Started = now()
	tr.p.Left = -1
	tr.p.Transport, tr.p.WhySlower = t.Name()
	if report != nil {
		tr.ended.Go(tr.loop)
	}
	return tr
}

func (t *tracker) loop() {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var last Progress
	for {
		select {
		case <-t.end:
			return
		case <-tick.C:
			if p := t.snapshot(); p != last {
				t.report(p)
				last = p
			}
		}
	}
}

// stop ends the reports; the last state is reported.
func (t *tracker) stop() {
	t.stopped.Do(func() {
		close(t.end)
		t.ended.Wait()
		if t.report != nil {
			t.report(t.snapshot())
		}
	})
}

func (t *tracker) stage(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.Stage = name
	t.p.Current = ""
	t.samples = nil
}

func (t *tracker) total(files, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.FilesAll, t.p.BytesAll = files, bytes
}

// more adds to what is to be done, while it is not known how much that is.
func (t *tracker) more(files, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.FilesAll += files
	t.p.BytesAll = max(t.p.BytesAll+bytes, t.p.BytesAll)
}

// growing says whether more is called.
func (t *tracker) growing(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.Growing = is
}

// reset forgets what was counted while planning.
func (t *tracker) reset() {
	t.bytes.Store(0)
	t.files.Store(0)
}

func (t *tracker) scanned(n int64) { t.seen.Add(n) }
func (t *tracker) Content(n int64) { t.bytes.Add(n) }
func (t *tracker) Wire(n int64)    { t.wire.Add(n) }
func (t *tracker) Kept(n int64)    { t.kept.Add(n) }
func (t *tracker) Reused(n int64)  { t.reused.Add(n) }
func (t *tracker) Current(p string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p.Current = remote.Clean(p)
}

// keep tells a Meter that counts it how much of an unfinished file a later run
// finds again.
func keep(m Meter, n int64) {
	if k, counts := m.(interface{ Kept(n int64) }); counts && n > 0 {
		k.Kept(n)
	}
}

// reuse tells a Meter that counts it how much of a file's content was not sent,
// since the destination has it. The same bytes are told to Content too.
func reuse(m Meter, n int64) {
	if r, counts := m.(interface{ Reused(n int64) }); counts && n > 0 {
		r.Reused(n)
	}
}

// reading tells a Meter that counts it how much was read here, which counts as moved
// only once it is there.
func reading(m Meter, n int64) {
	if r, counts := m.(interface{ Reading(n int64) }); counts {
		r.Reading(n)
	}
}

func (t *tracker) snapshot() Progress {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.p
	p.Files, p.Bytes, p.Wire, p.Reused = t.files.Load(), t.bytes.Load(), t.wire.Load(), t.reused.Load()
	if p.Stage == "scan" || p.Stage == "plan" {
		p.Files = t.seen.Load()
	}
	p.FailedSoon = int(t.failed.Load())
	if p.BytesAll > 0 && p.Bytes > p.BytesAll {
		p.Bytes = p.BytesAll // a file that changed is sent twice
	}
	t.samples = append(t.samples, rateSample{now, p.Bytes})
	for len(t.samples) > 2 && now.Sub(t.samples[0].at) > rateOver {
		t.samples = t.samples[1:]
	}
	first := t.samples[0]
	if d := now.Sub(first.at); d >= 2*reportEvery && p.Bytes > first.bytes {
		p.Rate = float64(p.Bytes-first.bytes) / d.Seconds()
		if !p.Growing {
			p.Left = time.Duration(float64(p.BytesAll-p.Bytes) / p.Rate * float64(time.Second)).Round(time.Second)
		}
	}
	return p
}
