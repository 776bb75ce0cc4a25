// Package usage adds up what an instance's GPUs did over a time: hours, utilisation,
// memory and energy, of a job or of the instance. It is pure.
//
// Only what was watched is counted, and how much that is stands beside it. Segments
// are what is written down; Merge makes one receipt of them, whoever watched and
// however often the same time was told.
package usage

import (
	"time"

	"rentop/remote/gpu/sample"
)

const (
	// maxGap is the longest time between two samples that counts as watched.
	maxGap = 30 * time.Second
	// quiet is the utilisation in percent below which a GPU is idle.
	quiet = 5
)

// Segment is what was watched of one stretch of time, in the ledger's JSON. Names
// are added, never changed.
type Segment struct {
	Job     string    `json:"job,omitempty"` // its id; "" is the instance
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Watched float64   `json:"watched_s"`        // seconds with samples
	Known   float64   `json:"known_s"`          // of these, with a utilisation
	Idle    float64   `json:"idle_s,omitempty"` // of these, with every GPU idle
	GPUs    []GPU     `json:"gpus,omitempty"`
}

// GPU is what one GPU did. A seconds field says for how long its figure was known.
type GPU struct {
	Name     string  `json:"name,omitempty"`
	Busy     float64 `json:"busy_s"` // seconds times utilisation
	BusyFor  float64 `json:"busy_of_s"`
	Peak     float64 `json:"peak,omitempty"` // utilisation, percent
	Mem      float64 `json:"mem,omitempty"`  // most bytes in use
	MemKnown bool    `json:"mem_known,omitempty"`
	MemTotal float64 `json:"mem_total,omitempty"`
	Joules   float64 `json:"joules,omitempty"`
	PowerFor float64 `json:"power_of_s,omitempty"`
}

// Meter adds samples up. The zero Meter is ready.
type Meter struct {
	seg  Segment
	last time.Time // of the last sample
}

// Add takes the next sample in. The time since the one before is counted as the
// sample has it; a sample that is not later than the last is left out.
func (m *Meter) Add(s *sample.Sample) {
	at := s.TakenAt.Round(0)
	if m.last.IsZero() {
		m.seg.From = at
	} else if !at.After(m.last) {
		return
	}
	d := 0.0
	if gap := at.Sub(m.last); !m.last.IsZero() && gap <= maxGap {
		d = gap.Seconds()
	}
	m.last, m.seg.To = at, at
	m.seg.Watched += d
	for len(m.seg.GPUs) < len(s.GPUs) {
		m.seg.GPUs = append(m.seg.GPUs, GPU{})
	}
	known, idle := len(s.GPUs) > 0, true
	for i := range s.GPUs {
		util, ok := s.GPUs[i].Util.Get()
		known, idle = known && ok, idle && ok && util < quiet
		m.seg.GPUs[i].add(&s.GPUs[i], d)
	}
	if known {
		m.seg.Known += d
		if idle {
			m.seg.Idle += d
		}
	}
}

func (g *GPU) add(s *sample.GPU, d float64) {
	if s.Name != "" {
		g.Name = s.Name
	}
	if util, ok := s.Util.Get(); ok {
		g.Busy += d * util / 100
		g.BusyFor += d
		g.Peak = max(g.Peak, util)
	}
	if used, ok := s.MemUsed.Get(); ok {
		g.Mem, g.MemKnown = max(g.Mem, used), true
	}
	if total, ok := s.MemTotal.Get(); ok {
		g.MemTotal = max(g.MemTotal, total)
	}
	if watts, ok := s.Power.Get(); ok {
		g.Joules += d * watts
		g.PowerFor += d
	}
}

// Last is when the last sample was taken; zero before the first.
func (m *Meter) Last() time.Time { return m.last }

// Clone is a meter that goes on apart.
func (m *Meter) Clone() *Meter {
	c := *m
	c.seg.GPUs = append([]GPU(nil), m.seg.GPUs...)
	return &c
}

// Peek is what was added since the last Cut; ok is false where that is nothing.
func (m *Meter) Peek() (s Segment, ok bool) {
	s = m.seg
	s.GPUs = append([]GPU(nil), m.seg.GPUs...)
	return s, m.seg.Watched > 0
}

// Cut ends a segment. The next begins with the last sample, so that no second is
// lost between the two.
func (m *Meter) Cut() (Segment, bool) {
	s, ok := m.Peek()
	m.seg = Segment{From: m.last}
	return s, ok
}
