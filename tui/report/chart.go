package report

import (
	"fmt"
	"math"

	"github.com/go-analyze/charts"
)

const (
	width     = 920
	height    = 320
	perBar    = 30 // of a chart whose bars lie
	mostBars  = 400
	labelRoom = 40
)

// svg draws the chart.
func (c Chart) svg() (string, error) {
	n := min(len(c.Categories), mostBars)
	opt := charts.BarChartOption{Horizontal: c.Across, StackSeries: charts.Ptr(true), Theme: charts.GetTheme(charts.ThemeLight), Padding: charts.NewBox(10, 10, 20, 10)}
	opt.CategoryAxis.Labels = c.Categories[:n]
	opt.ValueAxis = []charts.ValueAxisOption{{Min: charts.Ptr(0.0)}} // a bar that begins elsewhere lies
	opt.ValueFormatter = money
	for _, s := range c.Series {
		values := make([]float64, n)
		for i := range values {
			if i < len(s.Values) && !math.IsNaN(s.Values[i]) && !math.IsInf(s.Values[i], 0) {
				values[i] = s.Values[i]
			}
		}
		opt.SeriesList = append(opt.SeriesList, charts.BarSeries{Name: s.Name, Values: values})
		opt.Legend.SeriesNames = append(opt.Legend.SeriesNames, s.Name)
	}
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

// money is a label of the axis.
func money(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
