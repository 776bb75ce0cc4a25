package tui

// What a transfer would do, before it does it.

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"rentop/session"
	"rentop/sync"
	"rentop/themes"
	"rentop/tui/cell"
	"rentop/tui/text"
)

type planDialog struct {
	a       *app
	name    string
	spec    session.TransferSpec
	p       *sync.Plan // nil while it is made
	outline session.Outline
	err     string
	turn    int
	off     int
	room    int
}

func (d *planDialog) title() string {
	from, to := d.spec.Local, d.spec.Remote
	if d.spec.Direction == sync.Pull {
		from, to = to, from
	}
	return d.a.T("plan.title."+string(d.spec.Direction), d.name) + "  " + from + " " + d.a.gl.Arrow + " " + to
}

func (d *planDialog) paste(string) {}

func (d *planDialog) size(w, h int) (int, int) {
	n := 6
	if d.p != nil {
		n = 6 + len(d.p.Actions) + len(d.p.Deletes)
	}
	return min(w, 110), min(max(n, 8), h)
}

// row is line i of the list: what is removed stands first, where it is seen.
func (d *planDialog) row(i int) (sync.Action, bool) {
	if i < len(d.p.Deletes) {
		return d.p.Deletes[i], true
	}
	return d.p.Actions[i-len(d.p.Deletes)], false
}

func (d *planDialog) draw(b cell.Area) {
	a := d.a
	long := ""
	if b.W < 100 {
		long = ".key"
	}
	opts := b.Pen(0, b.H-1)
	for _, o := range []struct {
		on bool
		id string
	}{{d.spec.Delete, "plan.delete"}, {d.spec.Verify, "plan.verify"}, {d.spec.Checksum, "plan.checksum"}} {
		st, box := a.th.Dim, "[ ] "
		if o.on {
			st, box = a.th.Accent, "["+a.gl.Yes+"] "
		}
		opts.Put(st, box+a.T(o.id+long)).Skip(3)
	}
	if d.p == nil {
		if d.err == "" {
			b.Put(0, 1, a.th.Dim, a.gl.Busy+" "+a.T("plan.busy"))
			return
		}
		for i, s := range cell.Wrap(d.err, b.W) {
			b.Put(0, 1+i, a.th.Bad, s)
		}
		return
	}
	p, o := d.p, &d.outline
	pen := b.Pen(0, 0).Put(a.th.Strong, a.T("plan.new", o.New)).Put(a.th.Strong, "   "+a.T("plan.changed", o.Changed)).Put(a.th.Text, "   "+size(float64(p.Bytes)))
	if o.Deleted > 0 {
		pen.Put(a.th.Bad, "   "+a.N("plan.deletes", o.Deleted))
	}
	if o.Skipped > 0 {
		pen.Put(a.th.Warn, "   "+a.N("plan.skips", o.Skipped))
	}
	pen.Put(a.th.Dim, "   "+a.T("plan.same", p.Unchanged))
	if p.Ignored > 0 {
		pen.Put(a.th.Dim, "   "+a.T("plan.ignored", p.Ignored))
	}
	b.Put(0, 1, a.th.Dim, a.takes(&o.Estimate))
	y := 3
	if p.Refused != nil {
		for _, s := range cell.Wrap(a.gl.Alert+" "+p.Refused.Error()+" "+a.T("plan.force"), b.W) {
			b.Put(0, y-1, a.th.Bad, s)
			y++
		}
	}
	n := len(p.Actions) + len(p.Deletes)
	d.room = max(b.H-y-2, 1)
	d.off = min(max(d.off, 0), max(n-d.room, 0))
	if n == 0 && p.Refused == nil {
		b.Put(0, y, a.th.Text, a.T("plan.nothing"))
	}
	for i := 0; i < d.room && d.off+i < n; i++ {
		x, gone := d.row(d.off + i)
		d.action(b.Row(y+i), x, gone)
	}
	if more := n - d.off - d.room; more > 0 {
		b.Right(0, b.H-1, b.W, a.th.Dim, a.gl.Down+a.T("more", more))
	}
}

// takes says how long at most, at which rate, and what for the traffic.
func (l *look) takes(e *session.Estimate) string {
	took, traffic := "?", money(e.Traffic)
	if e.Traffic != nil && e.Traffic.Sign() > 0 {
		traffic = l.T("plan.atmost", traffic)
	}
	switch {
	case e.Took != nil && e.Limited:
		took = l.T("plan.limited", l.T("plan.atmost", text.Dur(*e.Took)), speed(e.Rate))
	case e.Took != nil:
		took = l.T("plan.measured", l.T("plan.atmost", text.Dur(*e.Took)), speed(e.Rate))
	}
	return l.T("plan.takes", took, traffic)
}

func (d *planDialog) action(r cell.Area, x sync.Action, gone bool) {
	a := d.a
	sign, st := "+", a.th.Good
	switch {
	case gone || x.Op == sync.Delete:
		sign, st = "-", a.th.Bad
	case x.Op == sync.Skip:
		sign, st = a.gl.Alert, a.th.Warn
	case x.Op == sync.Attr:
		sign, st = "~", a.th.Dim
	case x.Why != "new":
		sign, st = "~", a.th.Accent
	}
	r.Put(0, 0, st, sign)
	bytes := ""
	if x.Op == sync.Send {
		bytes = size(float64(x.Entry.Size))
	}
	why := x.Why
	if a.tx.Has("plan.why." + why) {
		why = a.T("plan.why." + why)
	}
	w := min(max(r.W/3, 14), 30)
	path := x.Entry.Path
	if x.Entry.Mode.IsDir() {
		path += "/"
	}
	r.PutPath(2, 0, r.W-w-12, themes.Style{FG: st.FG}, path)
	r.Right(r.W-w-9, 0, 6, a.th.Text, bytes)
	r.PutIn(r.W-w, 0, w, a.th.Dim, why)
}

func (d *planDialog) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc", "q":
		d.turn++
		d.a.shut()
	case "j", "down":
		d.off++
	case "k", "up":
		d.off--
	case "pgdown", "space":
		d.off += d.room
	case "pgup":
		d.off -= d.room
	case "g", "home":
		d.off = 0
	case "G", "end":
		d.off = 1 << 20
	case "d":
		d.spec.Delete, d.spec.Force = !d.spec.Delete, false
		return d.make()
	case "v":
		d.spec.Verify = !d.spec.Verify
	case "c":
		d.spec.Checksum = !d.spec.Checksum
		return d.make()
	case "F":
		if d.p != nil && d.p.Refused != nil {
			d.spec.Force = true
			return d.make()
		}
	case "enter":
		return d.start()
	}
	return nil
}

// start moves what was shown. What is removed was listed above, and is asked for
// once more.
func (d *planDialog) start() tea.Cmd {
	a := d.a
	switch {
	case d.p == nil:
		return nil
	case d.p.Refused != nil:
		return nil // drawn with its reason; F is the way on
	case len(d.p.Actions)+len(d.p.Deletes) == 0 && !d.spec.Verify:
		a.shut()
		return nil
	}
	name, spec := d.name, d.spec
	if spec.Delete {
		spec.Shown = d.p.Removes()
	}
	run := func() tea.Cmd {
		a.shut()
		return a.act("", func(context.Context) error {
			_, err := a.fleet.StartTransfer(name, spec)
			return err
		})
	}
	if n := len(spec.Shown); n > 0 {
		where := a.T("plan.on.instance", name)
		if spec.Direction == sync.Pull {
			where = a.T("plan.on.here")
		}
		a.push(newConfirm(a, a.N("plan.deletes", n), a.T("plan.sure", where), run))
		return nil
	}
	return run()
}

func (d *planDialog) hints() []hint {
	a := d.a
	out := []hint{}
	if d.p != nil && d.p.Refused == nil {
		out = append(out, hint{a.gl.Enter, a.T("plan.start")})
	}
	if d.p != nil && d.p.Refused != nil {
		out = append(out, hint{"F", a.T("plan.force.key")})
	}
	return append(out, hint{"d", a.T("plan.delete.key")}, hint{"v", a.T("plan.verify.key")}, hint{"c", a.T("plan.checksum.key")}, hint{"Esc", a.T("cancel")})
}
