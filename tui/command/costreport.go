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
	"rentop/tui/text"
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
func (a *app) writeHTML(name string, l *text.Lang, r *session.Spending, accounts []session.Account) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	err = report.Write(f, pageOf(l, r, accounts))
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

// pageOf is the bill as a page in a language.
func pageOf(l *text.Lang, r *session.Spending, accounts []session.Account) report.Page {
	const layout = "2006-01-02 15:04"
	since := l.T("bill.beginning")
	if !r.Since.IsZero() {
		since = r.Since.Local().Format(layout)
	}
	p := report.Page{Lang: l.Name, Title: l.T("bill.title"), Made: l.T("bill.made", since, r.Until.Local().Format(layout)), Foot: l.T("bill.foot")}
	fact := func(id string, args ...any) { p.Facts = append(p.Facts, l.T(id, args...)) }
	fact("bill.total", sumsText(r.All))
	fact("bill.month", sumsText(r.Month.SoFar))
	fact("bill.month.end", sumsText(r.Month.ByEnd))
	for _, i := range r.Instances {
		for _, t := range i.Said() {
			p.Facts = append(p.Facts, l.S(t))
		}
	}
	for _, x := range accounts {
		p.Facts = append(p.Facts, l.S(x.Said()))
	}
	for _, currency := range currencies(r) {
		p.Charts = append(p.Charts, byDay(l, r, currency), byName(l, r, "instance", currency))
		if tagged(r) {
			p.Charts = append(p.Charts, byName(l, r, "tag", currency))
		}
	}
	for _, by := range costBy {
		if rows := group(r, by); len(rows) > 0 && (by != "tag" || tagged(r)) {
			p.Tables = append(p.Tables, tableOf(l, by, rows))
		}
	}
	return p
}

// partIDs are the texts of the parts, in their order.
var partIDs = [len(partNames)]string{"part.compute", "part.stopped", "part.disk", "part.other", "part.traffic", "part.left"}

// nameIn is what a line is for.
func (s *spent) nameIn(l *text.Lang, by string) string {
	switch {
	case by == "tag" && orEmpty(s.Tag) == "":
		return l.T("group.untagged")
	case by == "provider" && orEmpty(s.Provider) == "ssh":
		return l.T("group.ssh")
	case by == "job" && s.Job != nil:
		return s.Instance + " · " + *s.Job + " · " + orEmpty(s.Day)
	}
	return s.names(by)[0]
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
func stack(l *text.Lang, lines []*spent) (out []report.Series) {
	for i, id := range partIDs {
		s := report.Series{Name: l.T(id)}
		any := false
		for _, line := range lines {
			v := report.Float(&line.parts[i].sum)
			any = any || v > 0
			s.Values = append(s.Values, v)
		}
		if any {
			out = append(out, s)
		}
	}
	return out
}

func byDay(l *text.Lang, r *session.Spending, currency string) report.Chart {
	c := report.Chart{Title: l.T("bill.by.in", l.T("group.day"), currency), Currency: currency}
	var lines []*spent
	rows := map[string]*spent{}
	var first, last time.Time
	for _, line := range group(r, "day") {
		if line.known.Currency == currency {
			rows[*line.Day] = line
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
		line := rows[day.Format(time.DateOnly)]
		if line == nil {
			line = &spent{}
		}
		lines = append(lines, line)
		c.Categories = append(c.Categories, report.Day(day))
	}
	c.Series = stack(l, lines)
	return c
}

// mostNames is how many bars a chart by name has; the dearest are shown.
const mostNames = 20

func byName(l *text.Lang, r *session.Spending, by, currency string) report.Chart {
	lines := slices.DeleteFunc(group(r, by), func(s *spent) bool { return s.known.Currency != currency })
	slices.SortStableFunc(lines, func(a, b *spent) int { return cmp.Compare(float(b.known), float(a.known)) })
	if len(lines) > mostNames {
		lines = lines[:mostNames]
	}
	slices.Reverse(lines) // bars that lie are drawn from below
	c := report.Chart{Title: l.T("bill.by.in", l.T("group."+by), currency), Currency: currency, Across: true}
	for _, line := range lines {
		c.Categories = append(c.Categories, line.nameIn(l, by))
	}
	c.Series = stack(l, lines)
	return c
}

func tableOf(l *text.Lang, by string, rows []*spent) report.Table {
	t := report.Table{Title: l.T("bill.by", l.T("group."+by)), Head: []string{l.T("group." + by), l.T("bill.cost")}}
	shown := shownParts(rows)
	for _, p := range shown {
		t.Head = append(t.Head, l.T(partIDs[p]))
	}
	t.Head = append(t.Head, "")
	for _, s := range rows {
		line := report.Line{Name: s.nameIn(l, by), Cost: s.cost(), Note: l.S(s.note)}
		for _, p := range shown {
			line.Parts = append(line.Parts, s.parts[p].String())
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}
