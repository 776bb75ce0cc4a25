package record

// What is different between two views, and how it is put together again.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"rentop/session"
)

// marshal gives an object's fields. The wire types hold nothing that JSON cannot.
func marshal(v any) (fields, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var f fields
	return f, json.Unmarshal(b, &f)
}

// changed is what makes f of was; nil where they are equal.
func changed(was, f fields) fields {
	var out fields
	set := func(k string, v json.RawMessage) {
		if out == nil {
			out = fields{}
		}
		out[k] = v
	}
	for k, v := range f {
		if old, had := was[k]; !had || !bytes.Equal(old, v) {
			set(k, v)
		}
	}
	for k := range was {
		if _, still := f[k]; !still {
			set(k, json.RawMessage("null"))
		}
	}
	return out
}

// maxFields is how many fields an object may have: more than the format's.
const maxFields = 64

// merge applies a change; it says by how many bytes f has grown.
func (f fields) merge(change fields) (grown int, err error) {
	for k, v := range change {
		grown -= len(f[k])
		if string(v) == "null" {
			delete(f, k)
			continue
		}
		f[k] = v
		grown += len(v)
		if len(f) > maxFields || len(k) > 40 {
			return grown, fmt.Errorf("an object with more fields than the format has: it is %w", errDamaged)
		}
	}
	return grown, nil
}

// into decodes the fields.
func (f fields) into(v any) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// The bounds of a history: an hour in steps of two seconds, and a machine's cards.
const (
	maxSteps = 2000
	maxCards = 128
)

// moved is what makes h of was: nil where they are equal.
func moved(was *session.History, h *session.History) *tail {
	n, old := len(h.CPU), len(was.CPU)
	t := &tail{Step: h.Step, GPUs: len(h.Util), Drop: -1}
	from := 0
	if was.Step == h.Step && len(was.Util) == len(h.Util) {
		for drop := 0; drop <= min(old, 32); drop++ {
			if keep := old - drop; keep <= n && same(was, h, drop, keep) {
				t.Drop, from = drop, keep
				break
			}
		}
	}
	if t.Drop == 0 && from == n {
		return nil
	}
	for i := max(from, n-maxSteps); i < n; i++ {
		row := []int16{tenths(h.CPU[i]), tenths(h.Mean[i])}
		for g := range h.Util {
			row = append(row, tenths(h.Util[g][i]), tenths(h.Mem[g][i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// evened is a history whose rows are equally long, whoever made it: none in front.
func evened(h session.History) session.History {
	n := max(len(h.CPU), len(h.Mean))
	for g := range h.Util {
		n = max(n, len(h.Util[g]))
	}
	even := func(row []float64) []float64 {
		if len(row) == n {
			return row
		}
		out := make([]float64, n)
		for i := range out {
			if out[i] = math.NaN(); i >= n-len(row) {
				out[i] = row[len(row)-n+i]
			}
		}
		return out
	}
	out := session.History{Step: h.Step, CPU: even(h.CPU), Mean: even(h.Mean)}
	for g := range h.Util {
		var mem []float64
		if g < len(h.Mem) {
			mem = h.Mem[g][max(0, len(h.Mem[g])-n):]
		}
		out.Util, out.Mem = append(out.Util, even(h.Util[g])), append(out.Mem, even(mem))
	}
	return out
}

// same says whether keep steps of was, from drop on, are h's first.
func same(was, h *session.History, drop, keep int) bool {
	equal := func(a, b []float64) bool {
		return slices.EqualFunc(a[drop:drop+keep], b[:keep], func(x, y float64) bool { return x == y || x != x && y != y })
	}
	if !equal(was.CPU, h.CPU) || !equal(was.Mean, h.Mean) {
		return false
	}
	for g := range h.Util {
		if !equal(was.Util[g], h.Util[g]) || !equal(was.Mem[g], h.Mem[g]) {
			return false
		}
	}
	return true
}

func tenths(v float64) int16 {
	if !(v >= 0) {
		return -1
	}
	return int16(math.Round(min(v, 1000) * 10))
}

func percent(t int16) float64 {
	if t < 0 {
		return math.NaN()
	}
	return float64(t) / 10
}

// apply moves a history on. The slices of h are never changed: a view has them.
func (t *tail) apply(h session.History) (session.History, error) {
	bad := fmt.Errorf("a history that cannot be: it is %w", errDamaged)
	if t.GPUs < 0 || t.GPUs > maxCards || t.Step <= 0 || t.Step > time.Hour || t.Drop < -1 {
		return h, bad
	}
	drop := t.Drop
	if drop < 0 || len(h.Util) != t.GPUs {
		h, drop = session.History{Util: make([][]float64, t.GPUs), Mem: make([][]float64, t.GPUs)}, 0
	}
	if drop > len(h.CPU) || len(h.CPU)-drop+len(t.Rows) > maxSteps {
		return h, bad
	}
	for _, row := range t.Rows {
		if len(row) != 2+2*t.GPUs {
			return h, bad
		}
	}
	more := func(old []float64, col int) []float64 {
		out := slices.Clone(old[drop:])
		for _, row := range t.Rows {
			out = append(out, percent(row[col]))
		}
		return out
	}
	out := session.History{Step: t.Step, CPU: more(h.CPU, 0), Mean: more(h.Mean, 1), Util: make([][]float64, t.GPUs), Mem: make([][]float64, t.GPUs)}
	for g := range t.GPUs {
		out.Util[g], out.Mem[g] = more(h.Util[g], 2+2*g), more(h.Mem[g], 3+2*g)
	}
	return out, nil
}
