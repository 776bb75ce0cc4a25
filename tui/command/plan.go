package command

// What to rent, answered from the prices that a person types: nothing is asked of
// anybody, and no price is ours.

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/session/billing"
	"rentop/session/plan"
)

func (a *app) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Before renting: budget to hours, rent or buy, on demand or spot",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.planBudget(), a.planBuy(), a.planSpot())
	for _, sub := range c.Commands() {
		sub.DisableFlagsInUseLine = true
		checkArgs(sub)
	}
	return c
}

// prices reads what several flags say, in one currency: the first that is named is
// that of all that name none.
type prices struct {
	currency string
	err      error
}

func (p *prices) note(flag string, v *big.Rat, currency string, err error) billing.Amount {
	switch {
	case err != nil:
		p.err = errors.Join(p.err, badUsage("%s: %v", flag, err))
	case currency != "" && p.currency != "" && currency != p.currency:
		p.err = errors.Join(p.err, badUsage("%s is in %s, and what stands before it in %s: give all prices in one currency", flag, currency, p.currency))
	case currency != "":
		p.currency = currency
	}
	return billing.Amount{Value: v}
}

// hourly reads "8/h"; nil where the flag was not given.
func (p *prices) hourly(flag, s string) *billing.Amount {
	if s == "" {
		return nil
	}
	v, currency, err := billing.ParsePrice(s)
	a := p.note(flag, v, currency, err)
	return &a
}

// sum reads "800", "¥800" or "800 CNY"; nil where the flag was not given.
func (p *prices) sum(flag, s string) *billing.Amount {
	if s == "" {
		return nil
	}
	v, currency, err := billing.ParsePrice(s + "/h")
	if err != nil {
		err = fmt.Errorf("%q is no sum of money: write it like 800, ¥800 or 800 CNY", s)
	}
	a := p.note(flag, v, currency, err)
	return &a
}

// settle gives all amounts their currency.
func (p *prices) settle(list ...*billing.Amount) error {
	if p.err == nil && p.currency == "" {
		p.err = badUsage("a price without a currency: write it like 8 CNY/h or $0.69/h")
	}
	for _, a := range list {
		if a != nil {
			a.Currency = p.currency
		}
	}
	return p.err
}

// share reads "40%" or "0.4"; nil where the flag was not given.
func share(flag, s string) (*big.Rat, error) {
	if s == "" {
		return nil, nil
	}
	number, percent := strings.CutSuffix(s, "%")
	r, err := billing.ParseRate(number)
	if err != nil {
		return nil, badUsage("%s %q: write it like 40%% or 0.4", flag, s)
	}
	if percent {
		r.Quo(r, big.NewRat(100, 1))
	}
	if r.Cmp(big.NewRat(10, 1)) > 0 {
		return nil, badUsage("%s %q is more than ten times the whole", flag, s)
	}
	return r, nil
}

func (a *app) planBudget() *cobra.Command {
	c := &cobra.Command{
		Use:     "budget MONEY --rate PRICE [flags]",
		Short:   "How many hours a budget buys",
		Example: "  rentop plan budget 800 --rate '2.5 CNY/h' --per-day 8h",
		Args:    cobra.ExactArgs(1),
	}
	rated := c.Flags().String("rate", "", "what an hour costs, as `8 CNY/h` or $0.69/h")
	disk := c.Flags().String("disk", "", "what the disk costs, kept all day: `PRICE`, as 35/month")
	perDay := c.Flags().Duration("per-day", 0, "how long it runs a day, as `8h`")
	billed := c.Flags().String("billed", "", "the `UNIT` of billing: second, minute or hour")
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		var p prices
		money, hour, kept := p.sum("MONEY", args[0]), p.hourly("--rate", *rated), p.hourly("--disk", *disk)
		if hour == nil {
			return badUsage("--rate is missing: what does an hour cost?")
		}
		if err := p.settle(money, hour, kept); err != nil {
			return err
		}
		unit, err := billing.ParseQuantum(*billed)
		if err != nil {
			return badUsage("--billed: %v", err)
		}
		s, err := plan.Budget(*money, *hour, kept, *perDay, unit)
		if err != nil {
			return badUsage("%v", err)
		}
		if *asJSON {
			return printJSON(a.Out, map[string]any{
				"budget": money.Exact(2), "currency": money.Currency, "per_hour": rate(&s.PerHour), "hours": decimalHours(s.Run, s.Forever), "days": days(s.Lasts),
			})
		}
		if s.Forever {
			_, err = fmt.Fprintf(a.Out, "%s lasts for ever: nothing costs anything\n", money)
			return err
		}
		text := fmt.Sprintf("%s at %s/h: %s h", money, s.PerHour, trimmed(s.Run.Hours(), 1))
		if s.Lasts != nil {
			text += fmt.Sprintf(", which is %s days of %s h", trimmed(s.Lasts.Hours()/24, 1), trimmed(perDay.Hours(), 1))
		} else {
			text += fmt.Sprintf(" (%s days without a pause)", trimmed(s.Run.Hours()/24, 1))
		}
		_, err = fmt.Fprintln(a.Out, text)
		return err
	}
	return c
}

// trimmed is a number with at most so many places, without zeros at its end.
func trimmed(f float64, places int) string {
	s := fmt.Sprintf("%.*f", places, f)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func decimalHours(d time.Duration, none bool) any {
	if none {
		return nil
	}
	return d.Hours()
}

func days(d *time.Duration) any {
	if d == nil {
		return nil
	}
	return d.Hours() / 24
}

func (a *app) planBuy() *cobra.Command {
	c := &cobra.Command{
		Use:     "buy --rate PRICE [flags]",
		Short:   "Whether to rent by the hour, at a flat rent, or to buy",
		Long:    "Compares renting by the hour with a flat monthly rent and with buying. What you do not tell is not guessed:\nthe cost is then at least what is known.",
		Example: "  rentop plan buy --rate '2.5 CNY/h' --price 14000 --rig 40% --watts 500 --kwh 0.6 --hours 200 --months 24\n  rentop plan buy --rate '5 CNY/h' --flat 2000 --hours 720",
		Args:    cobra.NoArgs,
	}
	rated := c.Flags().String("rate", "", "what an hour of renting costs, as `8 CNY/h`")
	price := c.Flags().String("price", "", "what the card costs (`MONEY`)")
	rig := c.Flags().String("rig", "", "the rest of the machine, as a `SHARE` of the card: 40%")
	resale := c.Flags().String("resale", "", "the `SHARE` of all of it that you get back in the end: 30%; nothing is counted on without it")
	watts := c.Flags().String("watts", "", "the machine's power while it works (`WATTS`)")
	kwh := c.Flags().String("kwh", "", "what a kWh costs (`MONEY`)")
	flat := c.Flags().String("flat", "", "a flat rent of a month (`MONEY`)")
	use := c.Flags().String("hours", "", "`HOURS` of work a month")
	months := c.Flags().Int64("months", 12, "over how many months (`N`)")
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		var p prices
		hour := p.hourly("--rate", *rated)
		buy := plan.Purchase{Price: p.sum("--price", *price), PerKWh: p.sum("--kwh", *kwh), PerMonth: p.sum("--flat", *flat)}
		switch {
		case hour == nil:
			return badUsage("--rate is missing: what does an hour of renting cost?")
		case buy.Price == nil && buy.PerMonth == nil:
			return badUsage("there is nothing to compare with: give --price or --flat")
		case *use == "":
			return badUsage("--hours is missing: how many hours of work a month?")
		}
		if err := p.settle(hour, buy.Price, buy.PerKWh, buy.PerMonth); err != nil {
			return err
		}
		var err error
		if buy.Rig, err = share("--rig", *rig); err != nil {
			return err
		}
		if buy.Resale, err = share("--resale", *resale); err != nil {
			return err
		}
		if *watts != "" {
			if buy.Watts, err = billing.ParseRate(*watts); err != nil {
				return badUsage("--watts: %v", err)
			}
		}
		perMonth, err := billing.ParseRate(*use)
		if err != nil {
			return badUsage("--hours: %v", err)
		}
		r, err := plan.Compare(*hour, perMonth, *months, buy)
		if err != nil {
			return badUsage("%v", err)
		}
		if *asJSON {
			return printJSON(a.Out, map[string]any{
				"currency": p.currency, "hours": ratNumber(r.Hours, 2), "rent": money(&r.Rent, 2), "flat": money(r.Flat, 2), "flat_from_hours_a_month": ratNumber(r.FlatFromHours, 1),
				"buy": money(r.Buy, 2), "buy_at_least": money(r.BuyAtLeast, 2), "buy_from_hours": ratNumber(r.BuyFromHours, 1), "buy_from_months": ratNumber(r.BuyFromMonths, 1), "not_known": append([]string{}, r.Missing...),
			})
		}
		return a.printBuy(r, *months)
	}
	return c
}

func (a *app) printBuy(r plan.RentOrBuy, months int64) error {
	t := newTable("", "COST", "NOTE").alignRight(1)
	t.add("by the hour", r.Rent.String(), fmt.Sprintf("%s h in %d months", r.Hours.FloatString(0), months))
	if r.Flat != nil {
		note := "never cheaper: the hours cost nothing"
		if r.FlatFromHours != nil {
			note = "cheaper from " + r.FlatFromHours.FloatString(0) + " h a month"
		}
		t.add("flat rent", r.Flat.String(), note)
	}
	switch {
	case r.Buy != nil && r.BuyFromHours == nil:
		t.add("buy", r.Buy.String(), "never cheaper: power alone costs as much as renting")
	case r.Buy != nil:
		t.add("buy", r.Buy.String(), fmt.Sprintf("cheaper from %s h of work, %s months at this use", r.BuyFromHours.FloatString(0), r.BuyFromMonths.FloatString(1)))
	case r.BuyAtLeast != nil:
		t.add("buy", ">"+r.BuyAtLeast.String(), "not known: "+strings.Join(r.Missing, ", "))
	}
	return t.print(a.Out)
}

// ratNumber is a decimal in JSON; null where it is not known.
func ratNumber(r *big.Rat, places int) any {
	if r == nil {
		return nil
	}
	return money(&billing.Amount{Value: r}, places)
}
