package guard

// The history's way to rentop: points as messages, thinned to what a screen shows.
// They say how long ago they were, because the clocks of both ends may differ.

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"rentop/remote/agent/link"
	"rentop/remote/clean"
	"rentop/remote/gpu/ring"
	"rentop/remote/gpu/sample"
)

const (
	messageArm     byte = 1 // a Spec as JSON
	messageDone    byte = 2 // the end of an answer: empty, or why it failed
	messageHistory byte = 3 // historyWanted as JSON
	messagePoint   byte = 4 // seconds ago, then a sample of the stream
)

type historyWanted struct {
	Back int64 `json:"back"` // seconds
	Step int64 `json:"step"` // seconds of a point
}

// Arm has the guard at the other end of l watch for spec. Whether it does, ReadScript
// tells.
func Arm(l link.Link, spec Spec) error {
	b, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if len(b) > maxSpec {
		return fmt.Errorf("the guard's commands have %d bytes, at most %d are allowed: put them into a file there and call that", len(b), maxSpec)
	}
	if err := l.Send(messageArm, b); err != nil {
		return err
	}
	return end(l.Recv())
}

func end(m link.Message, err error) error {
	switch {
	case err != nil:
		return err
	case m.Kind != messageDone:
		return errors.New("the guard's answer is none")
	case len(m.Payload) > 0:
		return errors.New(clean.Short(strings.TrimSpace(string(m.Payload)), 600))
	}
	return nil
}

// Past is one point of the history.
type Past struct {
	Ago    time.Duration
	Sample sample.Sample // utilisation, power and CPU are means
}

const maxPast = 20_000

// History gives the points of the last time back, oldest first, one a step.
func History(l link.Link, back, step time.Duration) ([]Past, error) {
	b, err := json.Marshal(historyWanted{int64(back / time.Second), int64(step / time.Second)})
	if err != nil {
		return nil, err
	}
	if err := l.Send(messageHistory, b); err != nil {
		return nil, err
	}
	var out []Past
	var d sample.Decoder
	for {
		m, err := l.Recv()
		if err != nil || m.Kind != messagePoint {
			return out, end(m, err)
		}
		ago, n := binary.Uvarint(m.Payload)
		if n <= 0 || ago > maxSeconds || len(out) >= maxPast {
			return nil, errors.New("the guard's history cannot be read")
		}
		s, err := d.Decode(m.Payload[n:])
		if err != nil {
			return nil, err
		}
		out = append(out, Past{time.Duration(ago) * time.Second, s})
	}
}

// sender encodes points.
type sender struct {
	l   link.Link
	now time.Time
	e   sample.Encoder
	buf []byte
}

func newSender(l link.Link, now time.Time) *sender { return &sender{l: l, now: now} }

func (s *sender) point(p ring.Point) error {
	ago := max(s.now.Sub(p.TakenAt), 0)
	s.buf = s.e.Append(binary.AppendUvarint(s.buf[:0], uint64(ago/time.Second)), p.Sample)
	return s.l.Send(messagePoint, s.buf)
}

// thin gives one point a step: the last one, with the means of the rest. What is of
// an uncertain time is left out: it would be a false history.
func thin(points []ring.Point, from time.Time, step time.Duration) []ring.Point {
	var out []ring.Point
	var sum mean
	var last *ring.Point
	flush := func() {
		if last != nil {
			out = append(out, sum.take(*last))
		}
		last = nil
	}
	for i := range points {
		p := &points[i]
		if !p.Sure || p.TakenAt.Before(from) {
			continue
		}
		if last != nil && !p.TakenAt.Truncate(step).Equal(last.TakenAt.Truncate(step)) {
			flush()
		}
		last = p
		sum.add(p)
	}
	flush()
	return out
}

// mean gathers what a thinned point is the mean of, by how long each stands for.
type mean struct {
	util []weighed
	cpu  weighed
}

type weighed struct{ sum, n float64 }

func (w *weighed) add(v sample.Value, over time.Duration) {
	if x, ok := v.Get(); ok {
		w.sum, w.n = w.sum+x*over.Seconds(), w.n+over.Seconds()
	}
}

func (w weighed) value() sample.Value {
	if w.n == 0 {
		return sample.Value{Why: "not known in this time"}
	}
	return sample.Of(w.sum / w.n)
}

func (m *mean) add(p *ring.Point) {
	for len(m.util) < len(p.GPUs) {
		m.util = append(m.util, weighed{})
	}
	for i := range p.GPUs {
		m.util[i].add(p.GPUs[i].Util, p.Over)
	}
	m.cpu.add(p.Host.CPU, p.Over)
}

func (m *mean) take(p ring.Point) ring.Point {
	p.GPUs = append([]sample.GPU(nil), p.GPUs...)
	for i := range p.GPUs {
		p.GPUs[i].Util = m.util[i].value()
	}
	p.Host.CPU = m.cpu.value()
	*m = mean{}
	return p
}
