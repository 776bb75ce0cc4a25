package session

import (
	stdsync "sync"
	"sync/atomic"
	"time"

	"rentop/remote"
	"rentop/sync"
)

// meter counts what moves outside of a transfer of sync, and reports it at most ten
// times a second.
type meter struct {
	report      func(sync.Progress)
	now         func() time.Time
	bytes, wire atomic.Int64
	files       atomic.Int64

	mu   stdsync.Mutex // protects what follows; never held while reporting
	p    sync.Progress
	last time.Time
}

func newMeter(report func(sync.Progress), now func() time.Time) *meter {
	if report == nil {
		report = func(sync.Progress) {}
	}
	return &meter{report: report, now: now, p: sync.Progress{Started: now(), Left: -1}}
}

// begin is a new stage with so much to do.
func (m *meter) begin(stage string, files int, bytes int64) {
	m.bytes.Store(0)
	m.files.Store(0)
	m.mu.Lock()
	m.p.Stage, m.p.FilesAll, m.p.BytesAll, m.p.Current = stage, int64(files), bytes, ""
	m.last = time.Time{}
	m.mu.Unlock()
	m.tell()
}

func (m *meter) stage(name string) { m.begin(name, 0, 0) }

// counted is one thing more.
func (m *meter) counted(int) { m.files.Add(1); m.tell() }

func (m *meter) Content(n int64) { m.bytes.Add(n); m.tell() }
func (m *meter) Wire(n int64)    { m.wire.Add(n) }
func (m *meter) Current(p string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.Current = remote.Clean(p)
}

func (m *meter) tell() {
	m.mu.Lock()
	now := m.now()
	if now.Sub(m.last) < 100*time.Millisecond {
		m.mu.Unlock()
		return
	}
	m.last = now
	p := m.p
	m.mu.Unlock()
	p.Files, p.Bytes, p.Wire = m.files.Load(), m.bytes.Load(), m.wire.Load()
	if p.BytesAll > 0 {
		p.Bytes = min(p.Bytes, p.BytesAll)
	}
	m.report(p)
}
