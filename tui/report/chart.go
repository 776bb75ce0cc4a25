package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-analyze/charts"
)

const (
	width     = 920
	height    = 320
	perBar    = 30 // of a chart whose bars lie
	mostBars  = 400
	labelRoom = 40
	// micro is what values are drawn in: the library begins an axis of stacked bars 1
	// below the least of them, whatever Min says.
	micro = 1e6
)

// svg draws the chart.
func (c Chart) svg() (string, error) {
	n := min(len(c.Categories), mostBars)
	opt := charts.BarChartOption{Horizontal: c.Across, StackSeries: charts.Ptr(true), Theme: charts.GetTheme(charts.ThemeLight), Padding: charts.NewBox(10, 10, 20, 10)}
	opt.CategoryAxis.Labels = slices.Clone(c.Categories[:n])
	if c.Across {
		for i, name := range opt.CategoryAxis.Labels {
			opt.CategoryAxis.Labels[i] = name + room(name)
		}
	}
	opt.ValueFormatter = money
	sums := make([]float64, n)
	for _, s := range c.Series {
		values := make([]float64, n)
		for i := range values {
			if i < len(s.Values) && !math.IsNaN(s.Values[i]) && !math.IsInf(s.Values[i], 0) {
				values[i] = micro * s.Values[i]
			}
			sums[i] += values[i]
		}
		opt.SeriesList = append(opt.SeriesList, charts.BarSeries{Name: s.Name, Values: values})
		opt.Legend.SeriesNames = append(opt.Legend.SeriesNames, s.Name)
	}
	// A bar that begins anywhere but at 0 lies, and the library is free to choose.
	opt.ValueAxis = []charts.ValueAxisOption{{Min: charts.Ptr(0.0), Max: charts.Ptr(ceiling(sums)), LabelCount: steps + 1}}
	h := height
	if c.Across {
		h = labelRoom + labelRoom + perBar*max(n, 3)
	}
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: width, Height: h})
	if err := p.BarChart(opt); err != nil {
		return "", fmt.Errorf("draw the chart %q: %w", c.Title, err)
	}
	b, err := p.Bytes()
	if err != nil {
		return "", fmt.Errorf("draw the chart %q: %w", c.Title, err)
	}
	return string(b), nil
}

// room is blanks for what a name is wider in the reader's font than in the library's,
// which has no Chinese.
func room(name string) string {
	n := 1
	for i, r := range []rune(name) {
		switch {
		case r >= 0x1100:
			n += 2
		case i%3 == 0:
			n++
		}
	}
	return strings.Repeat("\u00a0", n)
}

// steps is how many parts the axis has.
const steps = 5

// ceiling is the least round number, in steps, that is above all of them.
func ceiling(values []float64) float64 {
	most := 0.01 * micro
	for _, v := range values {
		most = max(most, v)
	}
	unit := math.Pow10(int(math.Floor(math.Log10(most / steps))))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if unit*m*steps >= most {
			return unit * m * steps
		}
	}
	return unit * 10 * steps
}

// money is a label of the axis.
func money(v float64) string {
	switch v /= micro; {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
