package gpu

import (
	"strconv"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/gpu/vendors"
)

// otherPoll gathers one answer of another vendor's tool: by the letter of its
// part, what was printed.
type otherPoll struct {
	tool  string
	parts map[byte]*strings.Builder
}

const maxOther = 1 << 20 // bytes of one answer

// otherRecord takes a record of such a poll: its beginning, text, or its end.
func (a *assembly) otherRecord(r record, now time.Time) *Sample {
	switch {
	case r.kind == 'O':
		a.other = &otherPoll{tool: remote.Short(r.text, 20), parts: map[byte]*strings.Builder{}}
	case a.other == nil:
	case r.kind == 'o' && r.text != "":
		b := a.other.parts[r.text[0]]
		if b == nil && len(a.other.parts) < 4 {
			b = &strings.Builder{}
			a.other.parts[r.text[0]] = b
		}
		if b != nil && b.Len()+len(r.text) < maxOther {
			b.WriteString(r.text[1:] + "\n")
		}
	case r.kind == 'P':
		p := a.other
		a.other = nil
		rc, _ := strconv.Atoi(r.text)
		return a.otherEnd(p, rc, now)
	}
	return nil
}

// otherEnd makes a sample of what the tool told.
func (a *assembly) otherEnd(p *otherPoll, rc int, now time.Time) *Sample {
	text := func(part byte) string {
		if b := p.parts[part]; b != nil {
			return b.String()
		}
		return ""
	}
	got, ok := vendors.Read(p.tool, text)
	a.settled, a.heard = true, now
	a.source, a.driver, a.gpus, a.procs, a.fault = p.tool, got.Driver, got.GPUs, got.Procs, nil
	a.hidden = false
	if !ok {
		a.gpus, a.procs, a.fault = nil, nil, vendors.Problem(p.tool, rc, text(vendors.Metric))
	}
	if a.last == nil && now.Sub(a.began) < firstHost {
		return nil // the host's first figures come at once
	}
	return a.sample(now)
}
