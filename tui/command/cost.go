package command

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/billing"
	"rentop/session/ledger"
)

// spent is one line of the bill, in JSON too. Names are added, never changed.
type spent struct {
	Instance string       `json:"instance"` // "" where the line is a day's
	Day      *string      `json:"day"`      // local, 2006-01-02
	Job      *string      `json:"job"`      // null with --by job: while no job ran, or what is counted twice; Note says which
	JobID    *string      `json:"job_id"`
	Amount   *json.Number `json:"amount"`   // null is not known
	AtLeast  *json.Number `json:"at_least"` // the known part
	Currency *string      `json:"currency"`
	Note     string       `json:"note"` // what is not known, or is assumed

	sum, known billing.Amount
	unknown    bool
}

func (a *app) costCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "cost [flags]",
		Short:   "Print what was spent, from the ledger: also for instances that are gone",
		Example: "  rentop cost --since 30d --by day\n  rentop cost --since 2026-11-01 --by job --csv > november.csv",
		Args:    cobra.NoArgs,
	}
	asJSON := jsonFlag(c)
	asCSV := c.Flags().Bool("csv", false, "print CSV")
	by := c.Flags().String("by", "instance", "a line for each `instance`, job or day")
	from := c.Flags().String("since", "", "only what was spent since then: a date, a time, or such as `30d` or 12h ago")
	c.MarkFlagsMutuallyExclusive("json", "csv")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains([]string{"instance", "job", "day"}, *by) {
			return badUsage("--by is instance, job or day, not %q", *by)
		}
		since, err := parseSince(*from, a.Now())
		if err != nil {
			return err
		}
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			report, err := f.Costs(cmd.Context(), since)
			if err != nil {
				return err
			}
			list := report.Rows
			if *by == "job" {
				list = append(list, report.Rest...)
			}
			rows := group(list, *by)
			switch {
			case *asJSON:
				return printCostJSON(a.Out, report, *by, rows)
			case *asCSV:
				return printCSV(a.Out, rows)
			}
			return a.printCosts(report, *by, rows)
		})
	}
	return c
}

// parseSince reads a moment; "" is the beginning of everything.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	days := strings.TrimSuffix(s, "d")
	if n, err := strconv.Atoi(days); err == nil && days != s && n >= 0 {
		return now.AddDate(0, 0, -n), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, badUsage("--since %q: write a date (2026-11-01), a time (2026-11-01T08:00) or how long ago (30d, 12h)", s)
}

// group adds the ledger's rows up by what each line is for. Different
// currencies are different lines.
func group(rows []ledger.Row, by string) []*spent {
	var out []*spent
	at := map[string]*spent{}
	for _, r := range rows {
		if (r.Kind == ledger.RowDay) == (by == "job") {
			continue // a job's cost is part of its instance's days
		}
		known := billing.Amount{}
		if r.AtLeast != nil {
			known = *r.AtLeast
		}
		line := &spent{Instance: r.Instance, Note: r.Note}
		key := r.UID
		switch by {
		case "day":
			day := r.Day.Format(time.DateOnly)
			line.Instance, line.Day, key = "", &day, day
		case "job":
			key = r.UID + "\x00" + r.Kind + "\x00" + r.JobID
			switch r.Kind {
			case ledger.RowRest:
				line.Note = joined("while no job ran", r.Note)
			case ledger.RowTwice:
				line.Note = joined("jobs that ran at once: each counts the whole instance", r.Note)
			default:
				day := r.Day.Format(time.DateOnly)
				line.Job, line.JobID, line.Day = &r.Job, &r.JobID, &day
			}
		}
		key += "\x00" + known.Currency
		if old := at[key]; old != nil {
			line = old
			if line.Note == "" {
				line.Note = r.Note
			}
		} else {
			at[key] = line
			out = append(out, line)
		}
		line.add(r.Amount, known)
	}
	for _, l := range out {
		l.finish()
	}
	return out
}

func joined(a, b string) string {
	if b == "" {
		return a
	}
	return a + "; " + b
}

func (l *spent) add(amount *billing.Amount, known billing.Amount) {
	if sum, err := l.known.Add(known); err == nil { // one currency by the key
		l.known = sum
	}
	if amount == nil {
		l.unknown = true
		return
	}
	if sum, err := l.sum.Add(*amount); err == nil {
		l.sum = sum
	}
}

func (l *spent) finish() {
	l.AtLeast = money(&l.known, 2)
	if !l.unknown {
		l.Amount = money(&l.sum, 2)
	}
	if c := max(l.sum.Currency, l.known.Currency); c != "" {
		l.Currency = &c
	}
}

func printCostJSON(w io.Writer, r *session.CostReport, by string, rows []*spent) error {
	type sum struct {
		Amount   *json.Number `json:"amount"`
		Currency string       `json:"currency"`
	}
	totals := []sum{}
	for _, t := range r.Total.Amounts {
		totals = append(totals, sum{money(&t, 2), t.Currency})
	}
	return printJSON(w, map[string]any{
		"since": instant(r.Since), "until": instant(r.Until), "by": by,
		"rows": append([]*spent{}, rows...), "total": totals, "not_known": r.Total.Unknown,
	})
}

func printCSV(w io.Writer, rows []*spent) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"instance", "day", "job", "amount", "at_least", "currency", "note", "job_id"}}
	for _, l := range rows {
		lines = append(lines, []string{
			formula(l.Instance), orEmpty(l.Day), formula(orEmpty(l.Job)), orEmpty((*string)(l.Amount)), orEmpty((*string)(l.AtLeast)), orEmpty(l.Currency), formula(l.Note), formula(orEmpty(l.JobID)),
		})
	}
	return out.WriteAll(lines)
}

// formula keeps a spreadsheet from running a name: a job may be called "=cmd()".
func formula(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (a *app) printCosts(r *session.CostReport, by string, rows []*spent) error {
	if len(rows) == 0 {
		a.note("nothing was spent in that time, as far as the ledger knows")
		return nil
	}
	heads := map[string][]string{
		"instance": {"INSTANCE", "COST", "NOTE"},
		"day":      {"DAY", "COST", "NOTE"},
		"job":      {"JOB", "NAME", "DAY", "COST", "NOTE"},
	}[by]
	t := newTable(heads...).alignRight(len(heads) - 2)
	for _, l := range rows {
		cells := []string{l.Instance}
		switch by {
		case "day":
			cells = []string{orEmpty(l.Day)}
		case "job":
			cells = []string{l.Instance, orEmpty(l.Job), orEmpty(l.Day)}
			if l.JobID != nil {
				cells[0] += "/" + *l.JobID
			}
		}
		cost := l.sum.String()
		if l.unknown {
			cost = ">" + l.known.String()
		}
		t.add(append(cells, cost, l.Note)...)
	}
	if err := t.print(a.Out); err != nil {
		return err
	}
	var totals []string
	for _, sum := range r.Total.Amounts {
		totals = append(totals, sum.String())
	}
	if r.Total.Unknown > 0 {
		totals = append(totals, "?")
	}
	_, err := fmt.Fprintf(a.Out, "total %s\n", strings.Join(totals, " + "))
	return err
}
