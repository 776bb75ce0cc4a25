package command

// How results are written: aligned text for a person, JSON for a script.

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	lines "charm.land/lipgloss/v2/table"
	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session/billing"
)

// jsonFlag adds --json.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON")
}

// printJSON writes one value, indented. Texts stay readable: no HTML escapes.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// money is an exact decimal number in JSON; nil, null, where it is not known.
func money(a *billing.Amount, places int) *json.Number {
	if a == nil {
		return nil
	}
	n := json.Number(a.Decimal(places))
	return &n
}

// rate is an hourly price with all its digits.
func rate(a *billing.Amount) *json.Number {
	if a == nil {
		return nil
	}
	n := json.Number(a.Exact(6))
	return &n
}

// instant is a time in JSON: UTC; null where there is none.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}

// orUnknown shows an amount, or that it is not known.
func orUnknown(a *billing.Amount) string {
	if a == nil {
		return "?"
	}
	return a.String()
}

// table is rows of cells, aligned by the width that a terminal gives them.
type table struct {
	right map[int]bool // columns that end together
	rows  [][]string
}

func newTable(head ...string) *table { return &table{rows: [][]string{head}} }

// alignRight names the columns of numbers.
func (t *table) alignRight(cols ...int) *table {
	t.right = map[int]bool{}
	for _, c := range cols {
		t.right[c] = true
	}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	out := lines.New().Wrap(false).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderRow(false).BorderHeader(false).
		StyleFunc(func(_, col int) lipgloss.Style {
			style := lipgloss.NewStyle()
			if col > 0 {
				style = style.PaddingLeft(2)
			}
			if t.right[col] {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	for _, row := range t.rows {
		for i, c := range row {
			row[i] = remote.Clean(c)
		}
		out.Row(row...)
	}
	var b strings.Builder
	for line := range strings.Lines(out.String() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// span is a time in a person's words: 3d04h, 3h12m, 5m, 42s.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
