package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/session/ledger"
	"rentop/tui/text"
)

// costBy are the ways to add up.
var costBy = []string{"instance", "job", "day", "provider", "tag"}

func (a *app) costCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cost [flags]",
		Short: "Print what was spent, from the ledger: also for instances that are gone",
		Long: "Prints what was spent: what computing, disks, traffic and what gone instances left behind cost, each apart; what\n" +
			"the providers themselves charged, where that is known; how long budgets last, and what the month will come to.\n" +
			"It asks nobody, but with --ask.",
		Example: "  rentop cost --since 30d --by day\n  rentop cost --since 2026-11-01 --by job --csv > november.csv\n  rentop cost --since 30d --html bill.html\n  rentop cost --review a100",
		Args:    cobra.NoArgs,
	}
	asJSON := jsonFlag(c)
	asCSV := c.Flags().Bool("csv", false, "print CSV")
	html := c.Flags().String("html", "", "write a report with charts to `FILE`; it needs nothing else to be read")
	by := c.Flags().String("by", "instance", "a line for each `instance`, job, day, provider or tag")
	from := c.Flags().String("since", "", "only what was spent since then: a date, a time, or such as `30d` or 12h ago")
	review := c.Flags().String("review", "", "look back on the rental of `NAME`: use, waste, and what would have saved most")
	ask := c.Flags().Bool("ask", false, "ask the providers: balances, what they charged, what gone instances left behind")
	c.MarkFlagsMutuallyExclusive("json", "csv", "html")
	c.MarkFlagsMutuallyExclusive("csv", "review")
	c.MarkFlagsMutuallyExclusive("html", "review")
	c.AddCommand(a.chargedCommand())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains(costBy, *by) {
			return badUsage("--by is instance, job, day, provider or tag, not %q", *by)
		}
		since, err := parseSince(*from, a.Now())
		if err != nil {
			return err
		}
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			if *review != "" {
				return a.printReview(cmd.Context(), f, *review, *asJSON)
			}
			if *ask {
				a.askBills(cmd.Context(), f, since)
			}
			report, err := f.Spending(cmd.Context(), since)
			if err != nil {
				return err
			}
			var accounts []session.Account
			if *ask {
				if accounts, err = f.Accounts(cmd.Context(), report); err != nil {
					a.note("rentop: %s", remote.Clean(err.Error()))
				}
			}
			rows := group(report, *by)
			switch {
			case *html != "":
				l, err := text.Choose(f.Config().UI.Language, os.Getenv)
				if err != nil {
					return err
				}
				return a.writeHTML(*html, l, report, accounts)
			case *asJSON:
				return printCostJSON(a.Out, report, accounts, *by, rows)
			case *asCSV:
				return printCSV(a.Out, rows)
			}
			return a.printCosts(report, accounts, *by, rows)
		})
	}
	for _, sub := range c.Commands() {
		sub.DisableFlagsInUseLine = true
		checkArgs(sub)
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
	if t, err := parseMoment(s); err == nil {
		return t, nil
	}
	return time.Time{}, badUsage("--since %q: write a date (2026-11-01), a time (2026-11-01T08:00) or how long ago (30d, 12h)", s)
}

// parseMoment reads a date or a time as the person's clock has it.
func parseMoment(s string) (t time.Time, err error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", "2006-01-02T15:04", time.RFC3339} {
		if t, err = time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return t, err
}

// chargedCommand writes down what a provider's bill says.
func (a *app) chargedCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "charged NAME MONEY --from DATE --to DATE",
		Short:   "Write down what the provider charged, to set it against what rentop reckons",
		Example: "  rentop cost charged a100 '182.40 CNY' --from 2026-11-01 --to 2026-12-01",
		Args:    cobra.ExactArgs(2),
	}
	from := c.Flags().String("from", "", "the beginning of the time that was charged for (`DATE` or time)")
	to := c.Flags().String("to", "", "its end (`DATE` or time)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var p prices
		amount := p.sum("MONEY", args[1])
		if err := p.settle(amount); err != nil {
			return err
		}
		begin, err1 := parseMoment(*from)
		end, err2 := parseMoment(*to)
		if err1 != nil || err2 != nil || !begin.Before(end) {
			return badUsage("--from and --to say for which time that was charged, as --from 2026-11-01 --to 2026-12-01")
		}
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			return f.RecordCharge(cmd.Context(), args[0], ledger.ChargeData{From: begin.UTC(), To: end.UTC(), Amount: amount.Value.RatString(), Currency: amount.Currency}, "user")
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return c
}

// askBills asks the providers what they charged and what gone instances left behind; what
// they say is in the ledger then. What could not be asked is said and stops nothing.
func (a *app) askBills(ctx context.Context, f *session.Fleet, since time.Time) {
	_, err := f.AskCharges(ctx, since)
	_, left := f.RescanLeftovers(ctx)
	if err = errors.Join(err, left); err != nil {
		for line := range strings.Lines(err.Error()) {
			a.note("rentop: %s", remote.Clean(line))
		}
	}
}

// printReview looks back on one rental.
func (a *app) printReview(ctx context.Context, f *session.Fleet, name string, asJSON bool) error {
	r, err := f.Review(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.Out, reviewOf(r))
	}
	for _, l := range r.Lines() {
		if _, err := fmt.Fprintln(a.Out, l); err != nil {
			return err
		}
	}
	return nil
}
