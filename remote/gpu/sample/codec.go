package sample

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// A stream of samples is a row of messages: a whole one first, then what has
// changed since the one before. A message is
//
//	version, flags, number (mod 256), time,
//	sections that differ: count, then index and bytes of each,
//	cells that differ: count, then gap·4+state and the figure or the reason of each
//
// all in varints. Figures are whole steps of their kind, as the difference from
// the cell's last figure; reasons are numbered as they first appear. Eight busy
// GPUs take some 150 bytes a second.

const (
	wireVersion = 1
	flagWhole   = 1
	maxReasons  = 200
	wholeEvery  = 600 // messages: a table of reasons does not grow for ever
)

// Encoder writes one stream. The zero Encoder is ready; its first message is whole.
type Encoder struct {
	n        int
	at       int64
	sections [][]byte
	cells    []Value // V is the last figure in steps, also where there is none now
	reasons  map[string]uint64
}

// Append appends the next message to dst.
func (e *Encoder) Append(dst []byte, s Sample) []byte {
	s = bounded(s)
	sections, cells := s.sections(), s.cells()
	whole := e.n%wholeEvery == 0 || len(sections) != len(e.sections) || len(cells) != len(e.cells) || len(e.reasons) > maxReasons/2
	if whole {
		e.at, e.sections, e.cells, e.reasons = 0, make([][]byte, len(sections)), make([]Value, len(cells)), map[string]uint64{}
	}
	w := writer(dst)
	w = append(w, wireVersion, 0, byte(e.n))
	if whole {
		w[len(w)-2] = flagWhole
	}
	now := stamp(s.TakenAt)
	w.int(now - e.at)
	e.at = now
	e.n++

	changed := 0
	for i := range sections {
		if e.sections[i] == nil || !bytes.Equal(sections[i], e.sections[i]) {
			changed++
		}
	}
	w.uint(uint64(changed))
	for i, b := range sections {
		if e.sections[i] == nil || !bytes.Equal(b, e.sections[i]) {
			w.uint(uint64(i))
			w.uint(uint64(len(b)))
			w = append(w, b...)
		}
	}
	e.sections = sections
	return e.appendCells(w, cells)
}

func (e *Encoder) appendCells(w writer, cells []cell) []byte {
	var body writer
	changed, last := 0, -1
	for i, c := range cells {
		now, before := steps(c), &e.cells[i]
		if now.State != OK {
			now.V = before.V
		}
		if now == *before {
			continue
		}
		changed++
		body.uint(uint64(i-last-1)<<2 | uint64(now.State))
		last = i
		if now.State == OK {
			body.int(int64(now.V) - int64(before.V))
		} else {
			n, known := e.reasons[now.Why]
			if !known {
				n = uint64(len(e.reasons))
				e.reasons[now.Why] = n
			}
			if body.uint(n); !known {
				body.text(now.Why, longName)
			}
		}
		*before = now
	}
	w.uint(uint64(changed))
	return append(w, body...)
}

// steps is a cell's figure in whole steps, or why there is none.
func steps(c cell) Value {
	k := kinds[c.kind]
	switch {
	case c.State != OK:
		return Value{State: c.State, Why: c.Why}
	case !(c.V >= k.lowest && c.V <= k.highest):
		return Value{State: Failed, Why: "implausible"}
	}
	return Value{State: OK, V: math.Round(c.V * k.steps)}
}

// bounded cuts what would be more than a sample may hold.
func bounded(s Sample) Sample {
	s.GPUs = append([]GPU(nil), s.GPUs[:min(len(s.GPUs), MaxGPUs)]...)
	s.Processes = append([]Process(nil), s.Processes[:min(len(s.Processes), MaxProcesses)]...)
	s.Host.Disks = append([]Disk(nil), s.Host.Disks[:min(len(s.Host.Disks), MaxDisks)]...)
	for i := range s.GPUs {
		g := &s.GPUs[i]
		g.Instances = append([]Instance(nil), g.Instances[:min(len(g.Instances), MaxInstances)]...)
		g.XIDs = g.XIDs[max(0, len(g.XIDs)-MaxXIDs):]
	}
	return s
}

// Decoder reads one stream. The zero Decoder is ready.
type Decoder struct {
	begun    bool
	n        byte
	at       int64
	sections [][]byte
	cells    []Value
	reasons  []string
}

var errNotWhole = errors.New("sample: the stream does not begin with a whole message")

// Decode reads the next message. After an error the stream cannot be read on.
func (d *Decoder) Decode(b []byte) (Sample, error) {
	if len(b) < 3 {
		return Sample{}, errShort
	}
	version, flags, n := b[0], b[1], b[2]
	r := reader{b: b[3:]}
	switch {
	case version != wireVersion:
		return Sample{}, fmt.Errorf("sample: the helper speaks version %d of the samples' wire, rentop %d", version, wireVersion)
	case flags&flagWhole != 0:
		*d = Decoder{begun: true}
	case !d.begun:
		return Sample{}, errNotWhole
	case n != d.n:
		return Sample{}, errors.New("sample: a message is missing from the stream")
	}
	d.n = n + 1
	d.at += r.int()
	s, err := d.readSections(&r)
	if err != nil {
		return Sample{}, err
	}
	s.TakenAt = moment(d.at)
	if err := d.readCells(&r, s.cells()); err != nil {
		return Sample{}, err
	}
	if len(r.b) > 0 {
		return Sample{}, errors.New("sample: more bytes than the message says")
	}
	return s, nil
}

func (d *Decoder) readSections(r *reader) (s Sample, err error) {
	for range r.count(2 + 2*MaxGPUs) {
		i, b := r.count(1+2*MaxGPUs), r.bytes()
		if r.err != nil {
			return s, r.err
		}
		for len(d.sections) <= i {
			d.sections = append(d.sections, nil)
		}
		d.sections[i] = bytes.Clone(b)
	}
	if r.err != nil {
		return s, r.err
	}
	if len(d.sections) < 2 {
		return s, errNotWhole
	}
	if err := s.readHead(d.sections[0]); err != nil {
		return s, err
	}
	if err := s.readProcesses(d.sections[1]); err != nil {
		return s, err
	}
	if len(d.sections) != 2+2*len(s.GPUs) {
		return s, errors.New("sample: the message does not describe each GPU")
	}
	for i := range s.GPUs {
		if err := s.GPUs[i].readFixed(d.sections[2+2*i]); err != nil {
			return s, err
		}
		if err := s.GPUs[i].readState(d.sections[3+2*i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (d *Decoder) readCells(r *reader, cells []cell) error {
	if d.cells == nil {
		d.cells = make([]Value, len(cells))
	}
	if len(d.cells) != len(cells) {
		return errors.New("sample: the message changes the number of figures without being whole")
	}
	i := -1
	for range r.count(len(cells)) {
		head := r.uint()
		if head>>2 > uint64(len(cells)) {
			r.fail(errors.New("sample: a figure beyond the last"))
		}
		if i += 1 + int(head>>2); r.err != nil || i >= len(cells) {
			r.fail(errors.New("sample: a figure beyond the last"))
			return r.err
		}
		v := &d.cells[i]
		switch state := ValueState(head & 3); state {
		case OK:
			v.V, v.State, v.Why = float64(int64(v.V)+r.int()), OK, ""
			if math.Abs(v.V) > 1<<53 {
				return errors.New("sample: a figure that is too large")
			}
		case NA, Failed:
			n := r.count(maxReasons)
			if n == len(d.reasons) && n < maxReasons {
				d.reasons = append(d.reasons, r.text(longName))
			}
			if n >= len(d.reasons) {
				r.fail(errors.New("sample: a reason that was never given"))
				return r.err
			}
			v.State, v.Why = state, d.reasons[n]
		default:
			return errors.New("sample: a figure in no known state")
		}
	}
	for i, c := range cells {
		*c.Value = plausible(d.cells[i], kinds[c.kind].steps, kinds[c.kind].lowest, kinds[c.kind].highest)
	}
	return r.err
}

func plausible(v Value, steps, lowest, highest float64) Value {
	if v.State != OK {
		return Value{State: v.State, Why: v.Why}
	}
	if v.V /= steps; !(v.V >= lowest && v.V <= highest) {
		return Value{State: Failed, Why: "implausible"}
	}
	return v
}
