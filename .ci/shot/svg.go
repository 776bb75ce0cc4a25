package main

// A grid of cells to an SVG. Text is drawn in runs of one look, stretched to
// the cells that they cover, so that any monospace font keeps the columns; block
// elements, box lines and Braille are drawn as shapes, which meet without gaps.

import (
	"fmt"
	"html"
	"strings"
)

const (
	cellW, cellH = 8.4, 18.0
	barH, pad    = 34.0, 14.0
	ink, paper   = "#c8ccd4", "#14161b"
)

// draw returns the whole picture.
func draw(grid [][]cell, title string) string {
	w := cellW*float64(len(grid[0])) + 2*pad
	h := cellH*float64(len(grid)) + barH + pad
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Noto Sans Mono CJK SC',monospace" font-size="14">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="9" fill="%s"/>`+"\n", w, h, paper)
	for i, c := range []string{"#e06c75", "#e5c07b", "#98c379"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`, 20+18*i, c)
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="22" text-anchor="middle" fill="#7d8590" font-size="13">%s</text>`+"\n", w/2, html.EscapeString(title))
	for y, row := range grid {
		drawRow(&b, row, barH+cellH*float64(y))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawRow draws one row: backgrounds, then shapes and text.
func drawRow(b *strings.Builder, row []cell, top float64) {
	runs(row, func(x, n int, c cell) bool { return true }, func(x, n int, cells []cell) {
		if _, bg, _ := cells[0].look.colours(); bg != "" {
			fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="18" shape-rendering="crispEdges" fill="%s"/>`, num(left(x)), num(top), num(cellW*float64(n)), bg)
		}
	})
	for x, c := range row {
		fg, _, opacity := c.look.colours()
		if s := shape(c.text, left(x), top); s != "" {
			fmt.Fprintf(b, `<g fill="%s" stroke="%s" stroke-width="0"%s>%s</g>`, fg, fg, opacity, s)
		}
	}
	plain := func(x, n int, c cell) bool { return shape(c.text, 0, 0) == "" }
	runs(row, plain, func(x, n int, cells []cell) { drawText(b, x, top, cells) })
	b.WriteByte('\n')
}

// runs calls f for each stretch of cells with one look that all pass ok.
func runs(row []cell, ok func(x, n int, c cell) bool, f func(x, n int, cells []cell)) {
	for x := 0; x < len(row); {
		n := 1
		for ok(x, n, row[x]) && x+n < len(row) && row[x+n].look == row[x].look && ok(x, n, row[x+n]) {
			n++
		}
		if ok(x, n, row[x]) {
			f(x, n, row[x:x+n])
		}
		x += n
	}
}

// drawText draws the words of a run; two blanks or more are not drawn, since a
// renderer may squeeze them. Wide characters are runs of their own.
func drawText(b *strings.Builder, x int, top float64, cells []cell) {
	for i := 0; i < len(cells); {
		if cells[i].text == "" || cells[i].text == " " {
			i++
			continue
		}
		j, s := i, ""
		for j < len(cells) && cells[j].width == cells[i].width && cells[j].text != "" {
			if cells[j].text == " " && (j+1 >= len(cells) || cells[j+1].text == " " || cells[j+1].width != 1) {
				break
			}
			s += cells[j].text
			j++
			if cells[i].width == 2 {
				break
			}
		}
		drawRun(b, s, left(x+i), top, cellW*float64((j-i)*cells[i].width), cells[i].look)
		i = j
	}
}

func drawRun(b *strings.Builder, s string, x, top, width float64, l look) {
	fg, _, style := l.colours()
	if l.bold {
		style += ` font-weight="bold"`
	}
	if l.italic {
		style += ` font-style="italic"`
	}
	switch {
	case l.underline:
		style += ` text-decoration="underline"`
	case l.strike:
		style += ` text-decoration="line-through"`
	}
	fmt.Fprintf(b, `<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`,
		num(x), num(top+13.5), num(width), fg, style, html.EscapeString(s))
}

// colours resolves reverse and faint; bg is "" where the paper shows.
func (l look) colours() (fg, bg, opacity string) {
	fg, bg = l.fg, l.bg
	if fg == "" {
		fg = ink
	}
	if l.reverse {
		if bg == "" {
			bg = paper
		}
		fg, bg = bg, fg
	}
	if l.faint {
		opacity = ` opacity="0.6"`
	}
	return fg, bg, opacity
}

func left(x int) float64 { return pad + cellW*float64(x) }

// num writes a coordinate without needless digits.
func num(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", f), "0"), ".")
}
