package command

// The bill as a page, and a review as JSON.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rentop/session"
	"rentop/session/ledger"
	"rentop/tui/report"
)

// reviewed is a review in JSON. Names are added, never changed; null is not known.
type reviewed struct {
	Instance string       `json:"instance"`
	Provider string       `json:"provider"`
	GPUs     []string     `json:"gpus"`
	From     *time.Time   `json:"from"`
	To       *time.Time   `json:"to"`
	Ran      int64        `json:"running_seconds"`
	Lay      int64        `json:"stopped_seconds"`
	Cost     *json.Number `json:"cost"`
	Currency string       `json:"currency"`
	Watched  float64      `json:"watched"` // the part of its running time, 0 to 1; the figures below are of it
	Util     *float64     `json:"util_mean"`
	Busy     *float64     `json:"busy_gpu_hours"`
	PerBusy  *json.Number `json:"cost_per_busy_gpu_hour"`
	Idle     int64        `json:"idle_seconds"`
	Wasted   *json.Number `json:"idle_cost"`
	Saving   *string      `json:"saving"` // idle, stopped, rounding, left; null: nothing stands out
	Saved    *json.Number `json:"saving_amount"`
	Lines    []string     `json:"lines"`
}

func reviewOf(r session.Review) reviewed {
	out := reviewed{
		Instance: r.Instance, Provider: r.Provider, GPUs: append([]string{}, r.GPUs...), From: instant(r.From), To: instant(r.To),
		Ran: int64(r.Ran / time.Second), Lay: int64(r.Lay / time.Second), Cost: money(r.Bill.Total, 2), Watched: round(r.Watched, 4),
		Util: rounded(r.Util), Busy: rounded(r.BusyHours), PerBusy: money(r.PerBusy, 4), Idle: int64(r.Idle / time.Second), Wasted: money(r.Wasted, 2),
	}
	if r.Bill.Known != nil {
		out.Currency = r.Bill.Known.Currency
	}
	if what := string(r.Saving.What); what != "" {
		out.Saving, out.Saved = &what, money(&r.Saving.Amount, 2)
	}
	for _, l := range r.Lines() {
		out.Lines = append(out.Lines, l.String())
	}
	return out
}

// writeHTML writes the report beside its name first: a file that is there is whole.
func (a *app) writeHTML(name string, r *session.Spending) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	err = report.Write(f, pageOf(r))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("the report: %w", err)
	}
	a.note("the report is in %s", name)
	return nil
}

// pageOf is the bill as a page.
func pageOf(r *session.Spending) report.Page {
	since := "the beginning"
	if !r.Since.IsZero() {
		since = r.Since.Local().Format("2006-01-02 15:04")
	}
	p := report.Page{
		Title: "What the GPUs cost", Made: fmt.Sprintf("from %s to %s", since, r.Until.Local().Format("2006-01-02 15:04")),
		Foot: "Amounts are exact and rounded once. ? is not known, > is at least. Made by rentop from its ledger.",
	}
	fact := func(name, value string) { p.Facts = append(p.Facts, name+" "+value) }
	fact("total", sumsText(r.All))
	fact("this month so far", sumsText(r.Month.SoFar))
	fact("this month by its end, if all stays as it is", sumsText(r.Month.ByEnd))
	for _, i := range r.Instances {
		if i.BudgetLeft != nil {
			fact("budget of "+i.Name+":", fmt.Sprintf("%s of %s left", i.BudgetLeft, i.Budget))
		}
		for _, c := range i.Charges {
			p.Facts = append(p.Facts, chargeText(i.Name, c))
		}
	}
	for _, currency := range currencies(r) {
		p.Charts = append(p.Charts, byDay(r, currency), byName(r, "instance", currency))
		if tagged(r) {
			p.Charts = append(p.Charts, byName(r, "tag", currency))
		}
	}
	for _, by := range costBy {
		if rows := group(r, by); len(rows) > 0 && (by != "tag" || tagged(r)) {
			p.Tables = append(p.Tables, tableOf(by, rows))
		}
	}
	return p
}

func tagged(r *session.Spending) bool {
	for _, a := range r.About {
		if len(a.Tags) > 0 {
			return true
		}
	}
	return false
}

// currencies of what was spent, each once.
func currencies(r *session.Spending) (out []string) {
	for _, row := range slices.Concat(r.Rows, r.Extras) {
		if c := row.AtLeast.Currency; c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

// stack gives the parts of lines as the series of a chart.
func stack(lines []*spent) (out []report.Series) {
	for i, name := range partNames {
		s := report.Series{Name: name}
		any := false
		for _, l := range lines {
			v := report.Float(&l.parts[i].sum)
			any = any || v > 0
			s.Values = append(s.Values, v)
		}
		if any {
			out = append(out, s)
		}
	}
	return out
}

func byDay(r *session.Spending, currency string) report.Chart {
	c := report.Chart{Title: "By day, " + currency, Currency: currency}
	var lines []*spent
	rows := map[string]*spent{}
	var first, last time.Time
	for _, l := range group(r, "day") {
		if l.known.Currency == currency {
			rows[*l.Day] = l
		}
	}
	for _, row := range slices.Concat(r.Rows, r.Extras) {
		if row.Kind == ledger.RowJob {
			continue
		}
		if first.IsZero() || row.Day.Before(first) {
			first = row.Day
		}
		if row.Day.After(last) {
			last = row.Day
		}
	}
	for day := first; !day.After(last) && len(lines) < 400; day = day.AddDate(0, 0, 1) { // days without cost are gaps to see
		l := rows[day.Format(time.DateOnly)]
		if l == nil {
			l = &spent{}
		}
		lines = append(lines, l)
		c.Categories = append(c.Categories, report.Day(day))
	}
	c.Series = stack(lines)
	return c
}

// mostNames is how many bars a chart by name has; the dearest are shown.
const mostNames = 20

func byName(r *session.Spending, by, currency string) report.Chart {
	lines := slices.DeleteFunc(group(r, by), func(l *spent) bool { return l.known.Currency != currency })
	slices.SortStableFunc(lines, func(a, b *spent) int { return cmp.Compare(float(b.known), float(a.known)) })
	if len(lines) > mostNames {
		lines = lines[:mostNames]
	}
	slices.Reverse(lines) // bars that lie are drawn from below
	c := report.Chart{Title: fmt.Sprintf("By %s, %s", by, currency), Currency: currency, Across: true}
	for _, l := range lines {
		c.Categories = append(c.Categories, l.names(by)[0])
	}
	c.Series = stack(lines)
	return c
}

func tableOf(by string, rows []*spent) report.Table {
	t := report.Table{Title: "By " + by, Head: []string{by, "cost"}}
	shown := shownParts(rows)
	for _, p := range shown {
		t.Head = append(t.Head, partNames[p])
	}
	t.Head = append(t.Head, "")
	for _, l := range rows {
		names := l.names(by)
		line := report.Line{Name: names[0], Cost: l.sum.String(), Note: l.Note}
		if by == "job" && l.Job != nil {
			line.Name = l.Instance + " · " + *l.Job + " · " + orEmpty(l.Day)
		}
		if l.unknown {
			line.Cost = ">" + l.known.String()
		}
		for _, p := range shown {
			line.Parts = append(line.Parts, l.parts[p].String())
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}
