package tui

// A transfer in a line or three: what moves, how far it is, what crosses the wire.

import (
	"fmt"
	"strings"

	"rentop/session"
	"rentop/sync"
	"rentop/themes"
	"rentop/tui/cell"
	"rentop/tui/text"
)

func moving(t *session.TransferView) bool { return t.Result == nil && t.Err == "" && !t.Cancelled }

// begun says whether there is a bar to show.
func begun(t *session.TransferView) bool {
	return moving(t) && (t.Progress.Stage != "queued" || t.Progress.BytesAll > 0)
}

// inOrder is first what has not ended, in the order in which it runs, then what has,
// newest first.
func inOrder(all []session.TransferView) []*session.TransferView {
	var out []*session.TransferView
	for i := range all {
		if moving(&all[i]) {
			out = append(out, &all[i])
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if !moving(&all[i]) {
			out = append(out, &all[i])
		}
	}
	return out
}

// transferRows adds an instance's transfers to its page: those that move, and the last.
func (p *page) transferRows(l *look, s *session.View, w int) {
	for i, t := range inOrder(s.Transfer) {
		if i == 4 || i > 0 && !moving(t) {
			break
		}
		label := ""
		if i == 0 {
			label = l.T("act.sync")
		}
		p.add(func(r cell.Area) {
			r.PutIn(0, 0, gutter-1, l.th.Heading, label)
			l.transferLine(r.Sub(gutter, 0, r.W-gutter, 1), t)
		})
		if begun(t) {
			p.add(func(r cell.Area) { l.transferDetail(r.Sub(gutter+2, 0, r.W-gutter-2, 1), t) })
		}
	}
}

// transferLine is one transfer: what, how far, how fast.
func (l *look) transferLine(r cell.Area, t *session.TransferView) {
	sign, from, to := l.gl.Up, t.Local, t.Remote
	if t.Direction == sync.Pull {
		sign, from, to = l.gl.Down, t.Remote, t.Local
	}
	state, st := l.transferState(t)
	r.Put(0, 0, l.th.Accent, sign)
	w := cell.Width(state)
	r.Right(0, 0, r.W, st, state)
	r.PutIn(2, 0, r.W-w-5, l.th.Text, from+" "+l.gl.Arrow+" "+to)
}

func (l *look) transferState(t *session.TransferView) (string, themes.Style) {
	switch {
	case t.Cancelled:
		return l.gl.No + " " + l.T("transfer.cancelled"), l.th.Dim
	case t.Err != "":
		return l.gl.No + " " + l.T("transfer.failed"), l.th.Bad
	case t.Result != nil && t.Result.FailedAll > 0:
		return l.gl.No + " " + l.N("transfer.failures", int(t.Result.FailedAll)), l.th.Bad
	case t.Result != nil:
		s := l.gl.Yes + " " + l.N("transfer.done", int(t.Result.Files), size(float64(t.Result.Bytes)), text.Dur(t.Result.Took))
		if t.Result.Verified {
			s += " " + l.gl.Dot + " " + l.T("transfer.verified")
		}
		return s, l.th.Good
	case t.Paused:
		return l.T("transfer.paused"), l.th.Warn
	}
	return l.stage(t.Progress.Stage), l.th.Text
}

func (l *look) stage(s string) string {
	if l.tx.Has("stage." + s) {
		return l.T("stage." + s)
	}
	return s
}

// transferDetail is the bar with its numbers, or the error.
func (l *look) transferDetail(r cell.Area, t *session.TransferView) {
	if t.Err != "" {
		r.Put(0, 0, l.th.Bad, t.Err)
		return
	}
	p := &t.Progress
	words := fmt.Sprintf("%s/%s", size(float64(p.Bytes)), size(float64(p.BytesAll)))
	if p.Growing {
		words += "+" // found so far
	}
	if p.Rate > 0 {
		words += "  " + speed(p.Rate)
	}
	if p.Left >= 0 && p.BytesAll > 0 && !p.Growing {
		words += "  " + l.T("transfer.left", text.Dur(p.Left))
	}
	words += "  " + l.N("transfer.files", int(p.FilesAll), p.Files)
	if p.Transport != "" {
		words += "  " + p.Transport
	}
	n := min(max(r.W/4, 8), 40)
	done := 0.0
	if p.BytesAll > 0 {
		done = float64(p.Bytes) / float64(p.BytesAll)
	}
	r.Bar(0, 0, n, l.th.Accent, l.th.Faint, &l.gl, done)
	x := n + 2 + r.Put(n+2, 0, l.th.Dim, words)
	if p.FailedSoon > 0 {
		x += 2 + r.Put(x+2, 0, l.th.Bad, l.N("transfer.failures", p.FailedSoon))
	}
	if left := r.W - x - 3; left > 12 && p.Current != "" {
		r.PutIn(x+3, 0, left, l.th.Faint, p.Current)
	}
}

// transferWire says what crossed the connection and what was saved, and below it why
// it is no quicker; nothing where there is nothing to say.
func (l *look) transferWire(t *session.TransferView) []string {
	bytes, wire, reused, slower := t.Progress.Bytes, t.Progress.Wire, t.Progress.Reused, t.Progress.WhySlower
	if t.Result != nil {
		bytes, wire, reused, slower = t.Result.Bytes, t.Result.Wire, t.Result.Reused, ""
	}
	var parts []string
	if wire > 0 && bytes > 0 {
		parts = append(parts, l.T("transfer.wire", size(float64(wire)), int(100*float64(wire)/float64(bytes)+0.5)))
		if reused > 0 {
			parts = append(parts, l.T("transfer.reused", size(float64(reused))))
		}
		if packed := bytes - reused - wire; packed > 0 {
			parts = append(parts, l.T("transfer.packed", size(float64(packed))))
		}
	}
	var out []string
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, " "+l.gl.Dot+" "))
	}
	if slower != "" && moving(t) {
		out = append(out, l.T("transfer.slower", slower))
	}
	return out
}
