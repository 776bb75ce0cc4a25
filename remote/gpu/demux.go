package gpu

import "context"

// record is one line of the collector's output: ours by its first letter, or
// nvidia-smi's own with kind 0.
type record struct {
	kind byte
	text string
}

// maxLine bounds a line: longer ones are cut, not kept.
const maxLine = 16 << 10

// demux cuts the collector's output into records. Our lines are written at once, so
// one may stand inside a line of nvidia-smi that the pipe took in two parts; both
// come out whole.
type demux struct {
	ctx  context.Context
	out  chan<- record
	own  []byte // the tool's line so far
	ours []byte // our line so far
	in   bool   // within one of ours
}

const mark = 1

func (d *demux) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n' && d.in:
			d.in = false
			if len(d.ours) > 0 {
				text := d.ours[1:]
				if len(text) > 0 && text[0] == ' ' {
					text = text[1:]
				}
				if err := d.emit(record{d.ours[0], string(text)}); err != nil {
					return 0, err
				}
			}
			d.ours = d.ours[:0]
		case c == '\n':
			if err := d.emit(record{0, string(d.own)}); err != nil {
				return 0, err
			}
			d.own = d.own[:0]
		case c == mark:
			d.in, d.ours = true, d.ours[:0]
		case d.in && len(d.ours) < maxLine:
			d.ours = append(d.ours, c)
		case !d.in && len(d.own) < maxLine:
			d.own = append(d.own, c)
		}
	}
	return len(p), nil
}

func (d *demux) emit(r record) error {
	select {
	case d.out <- r:
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}
