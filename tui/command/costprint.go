package command

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session"
	"rentop/session/billing"
)

// held is a provider's balance in JSON.
type held struct {
	Provider string       `json:"provider"`
	Balance  *json.Number `json:"balance"`
	Currency string       `json:"currency"`
	PerHour  *json.Number `json:"per_hour"`       // of its instances now; null is not known
	Runway   *int64       `json:"runway_seconds"` // null: without an end, or not known
}

// budget is an instance's in JSON.
type budget struct {
	Instance string       `json:"instance"`
	Budget   *json.Number `json:"budget"`
	Left     *json.Number `json:"left"`
	Currency string       `json:"currency"`
	Runway   *int64       `json:"runway_seconds"`
}

// charged is what a provider charged, in JSON.
type charged struct {
	Instance string       `json:"instance"`
	From     *time.Time   `json:"from"`
	To       *time.Time   `json:"to"`
	Charged  *json.Number `json:"charged"`
	Estimate *json.Number `json:"estimate"` // null is not known
	Off      *json.Number `json:"difference"`
	Currency string       `json:"currency"`
	Source   string       `json:"source"` // provider, or user
	Why      string       `json:"why"`    // what may explain a difference
}

func seconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	s := int64(*d / time.Second)
	return &s
}

func printCostJSON(w io.Writer, r *session.Spending, accounts []session.Account, by string, rows []*spent) error {
	type sum struct {
		Amount   *json.Number `json:"amount"`
		Currency string       `json:"currency"`
	}
	totals := func(s session.Sums) []sum {
		out := []sum{}
		for _, t := range s.Amounts {
			out = append(out, sum{money(&t, 2), t.Currency})
		}
		return out
	}
	budgets, charges, told := []budget{}, []charged{}, []held{}
	for _, i := range r.Instances {
		if i.Budget != nil {
			budgets = append(budgets, budget{i.Name, money(i.Budget, 2), money(i.BudgetLeft, 2), i.Budget.Currency, seconds(i.Runway)})
		}
		for _, c := range i.Charges {
			charges = append(charges, charged{i.Name, instant(c.From), instant(c.To), money(&c.Amount, 2), money(c.Estimate, 2), money(c.Off, 2), c.Amount.Currency, c.Source, c.Why().String()})
		}
	}
	for _, a := range accounts {
		told = append(told, held{a.Provider, money(&a.Balance, 2), a.Balance.Currency, rate(a.PerHour), seconds(a.Runway)})
	}
	return printJSON(w, map[string]any{
		"since": instant(r.Since), "until": instant(r.Until), "by": by,
		"rows": append([]*spent{}, rows...), "total": totals(r.All), "not_known": r.All.Unknown,
		"month":   map[string]any{"from": instant(r.Month.From), "to": instant(r.Month.To), "so_far": totals(r.Month.SoFar), "by_end": totals(r.Month.ByEnd), "not_known": r.Month.ByEnd.Unknown},
		"budgets": budgets, "charged": charges, "accounts": told,
	})
}

func printCSV(w io.Writer, rows []*spent) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"instance", "day", "job", "amount", "at_least", "currency", "note", "job_id", "provider", "tag", "compute", "stopped", "disk", "other", "traffic", "left_behind"}}
	for _, l := range rows {
		line := []string{
			formula(l.Instance), orEmpty(l.Day), formula(orEmpty(l.Job)), orEmpty((*string)(l.Amount)), orEmpty((*string)(l.AtLeast)), orEmpty(l.Currency), formula(l.Note), formula(orEmpty(l.JobID)),
			formula(orEmpty(l.Provider)), formula(orEmpty(l.Tag)),
		}
		for _, p := range []*json.Number{l.Compute, l.Stopped, l.Disk, l.Other, l.Traffic, l.Left} {
			line = append(line, orEmpty((*string)(p)))
		}
		lines = append(lines, line)
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

// barCells is how wide a bar is on a terminal.
const barCells = 24

// printCosts writes the bill for a person. Parts are shown where there are any beside
// computing, bars on a terminal.
func (a *app) printCosts(r *session.Spending, accounts []session.Account, by string, rows []*spent) error {
	if len(rows) == 0 {
		a.note("nothing was spent in that time, as far as the ledger knows")
		return nil
	}
	head := map[string][]string{"instance": {"INSTANCE"}, "day": {"DAY"}, "job": {"JOB", "NAME", "DAY"}, "provider": {"PROVIDER"}, "tag": {"TAG"}}[by]
	names := len(head)
	shown := shownParts(rows)
	bars := isTerminal(a.Out)
	if bars {
		head = append(head, "")
	}
	head = append(head, "COST")
	for _, p := range shown {
		head = append(head, strings.ToUpper(partNames[p]))
	}
	t := newTable(append(head, "NOTE")...)
	var right []int
	for i := names; i < len(head); i++ {
		if !bars || i > names {
			right = append(right, i)
		}
	}
	t.alignRight(right...)
	full := fullBars(rows)
	for _, l := range rows {
		cells := l.names(by)
		if bars {
			cells = append(cells, bar(l, full))
		}
		cells = append(cells, l.cost())
		for _, p := range shown {
			cells = append(cells, l.parts[p].String())
		}
		t.add(append(cells, l.Note)...)
	}
	if err := t.print(a.Out); err != nil {
		return err
	}
	return a.printTotals(r, accounts, by)
}

func (l *spent) names(by string) []string {
	switch by {
	case "day":
		return []string{orEmpty(l.Day)}
	case "provider":
		return []string{orEmpty(l.Provider)}
	case "tag":
		if l.Tag == nil || *l.Tag == "" {
			return []string{"(none)"}
		}
		return []string{*l.Tag}
	case "job":
		first := l.Instance
		if l.JobID != nil {
			first += "/" + *l.JobID
		}
		return []string{first, orEmpty(l.Job), orEmpty(l.Day)}
	}
	return []string{l.Instance}
}

// shownParts are those that any line has, where computing is not all there is.
func shownParts(rows []*spent) (out []int) {
	for i := range partNames {
		for _, l := range rows {
			if l.parts[i].String() != "" {
				out = append(out, i)
				break
			}
		}
	}
	if len(out) == 1 && out[0] == 0 {
		return nil
	}
	return out
}

// fullBars is the longest bar's amount in each currency.
func fullBars(rows []*spent) map[string]float64 {
	full := map[string]float64{}
	for _, l := range rows {
		full[l.known.Currency] = max(full[l.known.Currency], float(l.known))
	}
	return full
}

func bar(l *spent, full map[string]float64) string {
	if full[l.known.Currency] <= 0 {
		return ""
	}
	n := int(float(l.known)/full[l.known.Currency]*barCells*8 + 0.5)
	cells := strings.Repeat("█", max(n, 0)/8)
	if rest := max(n, 0) % 8; rest > 0 {
		cells += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return cells
}

func float(a billing.Amount) float64 {
	if a.Value == nil {
		return 0
	}
	f, _ := a.Value.Float64()
	return f
}

// sumsText writes money in several currencies side by side.
func sumsText(s session.Sums) string {
	var parts []string
	for _, sum := range s.Amounts {
		parts = append(parts, sum.String())
	}
	if s.Unknown > 0 {
		parts = append(parts, "?")
	}
	if len(parts) == 0 {
		return "0.00"
	}
	return strings.Join(parts, " + ")
}

// printTotals is what stands below the table.
func (a *app) printTotals(r *session.Spending, accounts []session.Account, by string) error {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	say("total %s", sumsText(r.All))
	if by == "tag" {
		say("an instance with several tags counts in each of them, in the total once")
	}
	if soFar, end := sumsText(r.Month.SoFar), sumsText(r.Month.ByEnd); soFar != end {
		say("this month %s so far, %s by its end if all stays as it is", soFar, end)
	} else {
		say("this month %s", soFar)
	}
	for _, i := range r.Instances {
		for _, t := range i.Said() {
			say("%s", t)
		}
	}
	for _, x := range accounts {
		say("%s", x.Said())
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(a.Out, remote.Clean(l)); err != nil {
			return err
		}
	}
	return nil
}
