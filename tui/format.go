package tui

// How values are written: short, of steady width, and "?" for what is not known.

import (
	"fmt"
	"math"
	"strings"
	"time"

	"rentop/remote/gpu"
	"rentop/session"
	"rentop/session/billing"
	"rentop/tui/text"
)

// money is an amount as billing writes it; nil is not known.
func money(a *billing.Amount) string {
	if a == nil {
		return "?"
	}
	return a.String()
}

// perHour is money with its unit.
func perHour(a *billing.Amount) string {
	if a == nil {
		return "?/h"
	}
	return a.String() + "/h"
}

// cost is a meter's cost: where only a part is known, at least that.
func cost(m *session.Meter) string {
	if m.Cost == nil && m.AtLeast != nil {
		return ">" + m.AtLeast.String()
	}
	return money(m.Cost)
}

// sums writes money in several currencies side by side; they are never added.
func sums(s session.Sums, unit string) string {
	var parts []string
	for i := range s.Amounts {
		parts = append(parts, s.Amounts[i].String()+unit)
	}
	if s.Unknown > 0 {
		parts = append(parts, "?"+unit)
	}
	return strings.Join(parts, " + ")
}

// size is a count of bytes in at most five cells, in powers of 1024 as ls -h does.
func size(n float64) string {
	if n < 0 || math.IsNaN(n) {
		return "?"
	}
	units := "BKMGTPE"
	i := 0
	for n >= 999.5 && i < len(units)-1 {
		n /= 1024
		i++
	}
	if i == 0 || n >= 99.95 {
		return fmt.Sprintf("%.0f%c", n, units[i])
	}
	return fmt.Sprintf("%.1f%c", n, units[i])
}

// thousands is a count in at most four cells: 999, 1.3k, 12k, 1.2M.
func thousands(n int) string {
	f := float64(n)
	for _, unit := range []string{"", "k", "M", "G"} {
		switch {
		case unit == "" && n < 1000:
			return itoa(n)
		case unit != "" && f < 9.95:
			return fmt.Sprintf("%.1f%s", f, unit)
		case unit != "" && f < 999.5:
			return fmt.Sprintf("%.0f%s", f, unit)
		}
		f /= 1000
	}
	return ">1T"
}

func speed(bytesPerSecond float64) string { return size(bytesPerSecond) + "/s" }

// gib is bytes as GiB with one decimal, without a unit: for used/total pairs.
func gib(n float64) string { return fmt.Sprintf("%.1f", n/(1<<30)) }

// cellOf writes a measured value, or why there is none: "–" not available, "err".
func cellOf(v gpu.Value, format string) string {
	switch v.State {
	case gpu.OK:
		return fmt.Sprintf(format, v.V)
	case gpu.Failed:
		return "err"
	}
	return "–"
}

// pair is used/total, each or both perhaps missing.
func pair(used, total gpu.Value, f func(float64) string) string {
	u, uok := used.Get()
	t, tok := total.Get()
	switch {
	case uok && tok:
		return f(u) + "/" + f(t)
	case uok:
		return f(u)
	case used.State == gpu.Failed:
		return "err"
	}
	return "–"
}

// part is used/total, NaN where either is missing.
func part(used, total gpu.Value) float64 {
	u, uok := used.Get()
	t, tok := total.Get()
	if !uok || !tok || t <= 0 {
		return math.NaN()
	}
	return u / t
}

// percent of a value that may be NaN.
func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", v)
}

// since is the time between two instants; "" where the first is not known.
func since(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	return text.Dur(to.Sub(from))
}

// clock is an instant on the person's clock: the hour today, else the day too.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("01-02 15:04")
}

// shortGPU makes "A100 80G" of "A100-SXM4-80GB", "RTX 4090" of "NVIDIA GeForce
// RTX 4090": what tells cards apart in ten cells.
func shortGPU(name string) string {
	var out []string
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '-' }) {
		up := strings.ToUpper(w)
		switch {
		case up == "NVIDIA", up == "AMD", up == "GEFORCE", up == "TESLA", up == "QUADRO", up == "GRAPHICS", up == "DEVICE",
			strings.HasPrefix(up, "SXM"), strings.HasPrefix(up, "PCIE"), strings.HasPrefix(up, "HBM"), up == "NVL", up == "NVLINK":
		case strings.HasSuffix(up, "GB") && len(up) > 2 && up[0] >= '0' && up[0] <= '9':
			out = append(out, up[:len(up)-1])
		default:
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return name
	}
	return strings.Join(out, " ")
}

// gpusOf is "2×RTX 4090", or each kind of a mixed machine.
func gpusOf(names []string, times string) string {
	var kinds []string
	count := map[string]int{}
	for _, n := range names {
		s := shortGPU(n)
		if count[s] == 0 {
			kinds = append(kinds, s)
		}
		count[s]++
	}
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%d%s%s", count[k], times, k)
	}
	return strings.Join(kinds, " + ")
}
