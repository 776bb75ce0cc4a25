// Package metrics writes what the fleet's sessions show in Prometheus' exposition
// format, text version 0.0.4: under dcgm-exporter's names where they mean the same,
// and under rentop_… otherwise. A figure that is missing is absent, never 0.
package metrics

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"rentop/remote"
)

// ContentType is that of the format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// maxLabel bounds a label's value, in characters.
const maxLabel = 200

// kind is what a Prometheus may do with a family's figures.
type kind string

const (
	gauge   kind = "gauge"
	counter kind = "counter"
)

// label is a name and a value, which is whatever an instance said.
type label struct{ name, value string }

// labels are written in the order in which they are given.
type labels []label

// with is a copy with more of them.
func (l labels) with(more ...label) labels { return append(slices.Clone(l), more...) }

// family is one metric with all its series.
type family struct {
	name, help string
	kind       kind
	lines      strings.Builder
	seen       map[string]bool // a series that is there twice spoils the whole page
}

// page collects families in the order in which they first had a figure.
type page struct {
	order []*family
	by    map[string]*family
}

// add takes one figure. Of two series with equal labels the first stays.
func (p *page) add(name string, k kind, help string, l labels, v float64) {
	p.put(name, k, help, l, strconv.FormatFloat(v, 'g', -1, 64))
}

// put is add for a figure that is a decimal already: money.
func (p *page) put(name string, k kind, help string, l labels, v string) {
	f := p.by[name]
	if f == nil {
		f = &family{name: name, help: help, kind: k, seen: map[string]bool{}}
		if p.by == nil {
			p.by = map[string]*family{}
		}
		p.by[name] = f
		p.order = append(p.order, f)
	}
	series := f.name + l.String()
	if f.seen[series] {
		return
	}
	f.seen[series] = true
	f.lines.WriteString(series + " " + v + "\n")
}

// String is {a="b",c="d"}, or nothing without labels.
func (l labels) String() string {
	if len(l) == 0 {
		return ""
	}
	var b strings.Builder
	for i, x := range l {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(x.name + `="` + escape(x.value) + `"`)
	}
	b.WriteByte('}')
	return b.String()
}

// escaper is the format's own rule for label values.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// escape makes a label's value of any text: clean, bounded, on one line.
func escape(s string) string { return escaper.Replace(remote.Short(s, maxLabel)) }

// write gives the families one after the other, each with its help and kind.
func (p *page) write(w io.Writer) error {
	for _, f := range p.order {
		head := "# HELP " + f.name + " " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.help) + "\n# TYPE " + f.name + " " + string(f.kind) + "\n"
		if _, err := io.WriteString(w, head+f.lines.String()); err != nil {
			return err
		}
	}
	return nil
}
