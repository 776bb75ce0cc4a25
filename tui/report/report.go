// Package report writes the bill as one HTML file that needs nothing else: charts are
// SVG within it, it loads nothing and holds no script. Every name in it is hostile
// until the template has escaped it.
package report

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"rentop/session/billing"
)

// Line is one row of a table.
type Line struct {
	Name  string
	Cost  string // "?" and ">" as everywhere
	Parts []string
	Note  string
}

// Table is a list of lines under its heading.
type Table struct {
	Title string
	Head  []string
	Lines []Line
}

// Page is what the report shows; texts are in the person's language.
type Page struct {
	Lang   string // of the texts, as HTML names it
	Title  string
	Made   string
	Facts  []string // one sentence each
	Charts []Chart
	Tables []Table
	Foot   string
}

// Chart is stacked bars, one a category. All values are in one currency.
type Chart struct {
	Title      string
	Currency   string
	Categories []string
	Series     []Series
	Across     bool // bars lie: names are long
}

// Series is one part of each bar.
type Series struct {
	Name   string
	Values []float64
}

//go:embed report.html
var page string

// Write writes the page.
func Write(w io.Writer, p Page) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	type drawn struct {
		Title string
		SVG   template.HTML
	}
	var charts []drawn
	for _, c := range p.Charts {
		if len(c.Series) == 0 || len(c.Categories) == 0 {
			continue // nothing to draw
		}
		svg, err := c.svg()
		if err != nil {
			return err
		}
		charts = append(charts, drawn{c.Title, template.HTML(svg)}) // the library escapes the names in it; a test holds it to that
	}
	return t.Execute(w, struct {
		Page
		Drawn []drawn
	}{p, charts})
}

// Float is an amount for a bar: what is drawn need not be exact.
func Float(a *billing.Amount) float64 {
	if a == nil || a.Value == nil {
		return 0
	}
	f, _ := a.Value.Float64()
	return max(0, f)
}

// Day is a category's name.
func Day(t time.Time) string { return t.Format("01-02") }
