package tui

// What else is known of the cards: links, memory errors, what MIG made of them. Only
// the helper tells most of it, so it stands below and only where there is any.

import (
	"fmt"
	"strconv"

	"rentop/remote/gpu"
	"rentop/session"
	"rentop/themes"
	"rentop/tui/cell"
)

// moreOf are the figures of a card that this table shows.
func moreOf(g *gpu.GPU) []gpu.Value {
	return []gpu.Value{g.MemReserved, g.TempMargin, g.PCIeGen, g.PCIeRx, g.NVLinks, g.NVLinkRx, g.Encoder, g.Decoder, g.ECCErrors, g.ECCCorrected, g.RemappedRows}
}

// moreRows adds what else is known of the cards.
func (p *page) moreRows(l *look, s *session.View, w int) {
	if s.Sample == nil {
		return
	}
	any := false
	for i := range s.Sample.GPUs {
		g := &s.Sample.GPUs[i]
		any = any || len(g.Instances) > 0
		for _, v := range moreOf(g) {
			any = any || v.State == gpu.OK
		}
	}
	if !any {
		return
	}
	p.gap()
	t := fit(l.moreCols(), w)
	p.add(func(r cell.Area) { t.heading(r, l, "", false) })
	for i := range s.Sample.GPUs {
		g := &s.Sample.GPUs[i]
		p.add(func(r cell.Area) { t.row(r, g) })
		for _, in := range g.Instances {
			p.add(func(r cell.Area) { l.partRow(r, in) })
		}
	}
}

func (l *look) moreCols() []col[*gpu.GPU] {
	type pick func(*gpu.GPU) gpu.Value
	one := func(id string, w, prio int, of pick, write func(float64) string) col[*gpu.GPU] {
		return col[*gpu.GPU]{id: id, min: w, want: w, max: w, prio: prio, right: true, text: func(g *gpu.GPU) (string, themes.Style) {
			v := of(g)
			n, ok := v.Get()
			switch {
			case ok:
				return write(n), l.th.Text
			case v.State == gpu.Failed:
				return cellOf(v, ""), l.th.Bad
			}
			return cellOf(v, ""), l.th.Dim
		}}
	}
	count := func(n float64) string { return fmt.Sprintf("%.0f", n) }
	percent := func(n float64) string { return fmt.Sprintf("%.0f%%", n) }
	bad := one("gpu.ecc.bad", 5, 0, func(g *gpu.GPU) gpu.Value { return g.ECCErrors }, count)
	plain := bad.text
	bad.text = func(g *gpu.GPU) (string, themes.Style) {
		s, st := plain(g)
		if n, ok := g.ECCErrors.Get(); ok && n > 0 {
			st = l.th.Bad
		}
		return s, st
	}
	return []col[*gpu.GPU]{
		{id: "gpu.index", min: 3, want: 3, max: 3, right: true, text: func(g *gpu.GPU) (string, themes.Style) { return strconv.Itoa(g.Index), l.th.Strong }},
		one("gpu.reserved", 8, 3, func(g *gpu.GPU) gpu.Value { return g.MemReserved }, size),
		one("gpu.margin", 6, 1, func(g *gpu.GPU) gpu.Value { return g.TempMargin }, func(n float64) string { return count(n) + l.gl.Degree }),
		{id: "gpu.pcie", min: 9, want: 9, max: 9, prio: 1, right: true, text: l.cardPCIe},
		one("gpu.pcie.in", 5, 1, func(g *gpu.GPU) gpu.Value { return g.PCIeRx }, size),
		one("gpu.pcie.out", 5, 1, func(g *gpu.GPU) gpu.Value { return g.PCIeTx }, size),
		{id: "gpu.nvlink", min: 6, want: 6, max: 6, prio: 2, right: true, text: l.cardLinks},
		one("gpu.nvlink.in", 5, 2, func(g *gpu.GPU) gpu.Value { return g.NVLinkRx }, size),
		one("gpu.nvlink.out", 5, 2, func(g *gpu.GPU) gpu.Value { return g.NVLinkTx }, size),
		one("gpu.encoder", 4, 4, func(g *gpu.GPU) gpu.Value { return g.Encoder }, percent),
		one("gpu.decoder", 4, 4, func(g *gpu.GPU) gpu.Value { return g.Decoder }, percent),
		bad,
		one("gpu.ecc.mended", 6, 3, func(g *gpu.GPU) gpu.Value { return g.ECCCorrected }, count),
		{id: "gpu.rows", min: 8, want: 12, max: 12, prio: 1, right: true, text: l.cardRows},
	}
}

// cardPCIe is generation × width, with the most it could be where it is less.
func (l *look) cardPCIe(g *gpu.GPU) (string, themes.Style) {
	link := func(gen, width gpu.Value) string {
		n, ok := gen.Get()
		w, has := width.Get()
		if !ok || !has {
			return ""
		}
		return fmt.Sprintf("%.0f%s%.0f", n, l.gl.Times, w)
	}
	now, most := link(g.PCIeGen, g.PCIeWidth), link(g.PCIeGenMax, g.PCIeWidthMax)
	switch {
	case now == "":
		return cellOf(g.PCIeGen, "%.0f"), l.th.Dim
	case most == "" || now == most:
		return now, l.th.Text
	}
	return now + "/" + most, l.th.Text
}

// cardLinks is how many NVLinks are up, of those that were.
func (l *look) cardLinks(g *gpu.GPU) (string, themes.Style) {
	up, ok := g.NVLinks.Get()
	if !ok {
		return cellOf(g.NVLinks, ""), l.th.Dim
	}
	if down, _ := g.NVLinksDown.Get(); down > 0 {
		return fmt.Sprintf("%.0f/%.0f", up, up+down), l.th.Warn
	}
	return fmt.Sprintf("%.0f", up), l.th.Text
}

// cardRows is how many rows of the memory were replaced, and what is to be done.
func (l *look) cardRows(g *gpu.GPU) (string, themes.Style) {
	n := cellOf(g.RemappedRows, "%.0f")
	switch {
	case g.RemapFailed == gpu.Of(1):
		return l.T("gpu.rows.bad", n), l.th.Bad
	case g.RemapPending == gpu.Of(1):
		return l.T("gpu.rows.reset", n), l.th.Warn
	case g.RemappedRows.State != gpu.OK:
		return n, l.th.Dim
	}
	return n, l.th.Text
}

// partRow is one MIG instance of the card above.
func (l *look) partRow(r cell.Area, in gpu.Instance) {
	pen := r.Pen(5, 0).Put(l.th.Dim, l.T("gpu.part")).Skip(1).Put(l.th.Text, in.Profile)
	if in.GI >= 0 {
		pen.Skip(1).Put(l.th.Dim, fmt.Sprintf("GI %d CI %d", in.GI, in.CI))
	}
	pen.Skip(2).Put(l.th.Text, pair(in.MemUsed, in.MemTotal, gib)).Put(l.th.Dim, " GiB")
	if u, ok := in.Util.Get(); ok {
		pen.Skip(2).Put(l.th.Strong, fmt.Sprintf("%.0f%%", u))
	}
}
