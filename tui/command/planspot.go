package command

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/session/billing"
	"rentop/session/plan"
)

func (a *app) planSpot() *cobra.Command {
	c := &cobra.Command{
		Use:   "spot --on-demand PRICE --spot PRICE --work HOURS [flags]",
		Short: "Whether a machine that can be taken away is cheaper, with the work that is lost",
		Long: "Compares on demand with spot. How often machines are reclaimed is yours to tell: without --every the answer is the\n" +
			"rate of reclaims from which spot does not pay. Reclaims are taken to come at random; what is lost is the work since\n" +
			"the last checkpoint and the restart.",
		Example: "  rentop plan spot --on-demand '20 CNY/h' --spot '8 CNY/h' --work 20h --every 12h --save 30m --save-takes 1m --restart 10m",
		Args:    cobra.NoArgs,
	}
	var s plan.Spot
	on := c.Flags().String("on-demand", "", "what an hour costs that nobody takes away (`PRICE`)")
	spot := c.Flags().String("spot", "", "what an hour of spot costs (`PRICE`)")
	c.Flags().DurationVar(&s.Work, "work", 0, "how long the work takes undisturbed, as `20h`")
	c.Flags().DurationVar(&s.Every, "every", 0, "mean time between two reclaims, as `12h`")
	c.Flags().DurationVar(&s.Save, "save", 0, "time between two checkpoints, as `30m`; only the end is kept without it")
	c.Flags().DurationVar(&s.SaveTakes, "save-takes", 0, "how long a checkpoint takes, as `1m`")
	c.Flags().DurationVar(&s.Restart, "restart", 0, "from a reclaim until it works again, as `10m`")
	c.Flags().DurationVar(&s.Took, "took", 0, "what it took on spot the last time, in place of an estimate: `24h`")
	onAlso := c.Flags().String("also", "", "what else on demand costs in all: disk, traffic (`MONEY`)")
	spotAlso := c.Flags().String("spot-also", "", "what else spot costs in all (`MONEY`)")
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		var p prices
		x, y := p.hourly("--on-demand", *on), p.hourly("--spot", *spot)
		more, spotMore := p.sum("--also", *onAlso), p.sum("--spot-also", *spotAlso)
		switch {
		case x == nil || y == nil:
			return badUsage("--on-demand and --spot are the two prices to compare, as 20 CNY/h")
		case s.Work <= 0:
			return badUsage("--work is missing: how long does the work take undisturbed?")
		}
		if err := p.settle(x, y, more, spotMore); err != nil {
			return err
		}
		s.OnDemand, s.Price = *x, *y
		r, err := s.Ask()
		if err != nil {
			return badUsage("%v", err)
		}
		if err := addTo(&r, more, spotMore); err != nil {
			return err
		}
		if *asJSON {
			return printJSON(a.Out, spotJSON(r, p.currency))
		}
		return a.printSpot(s, r)
	}
	return c
}

// addTo puts what both cost besides on top, and says anew what is saved.
func addTo(r *plan.SpotAnswer, more, spotMore *billing.Amount) (err error) {
	if more != nil {
		if r.OnDemand, err = r.OnDemand.Add(*more); err != nil {
			return err
		}
	}
	if spotMore != nil {
		if r.Best, err = r.Best.Add(*spotMore); err != nil {
			return err
		}
	}
	if r.Expected == nil || more == nil && spotMore == nil {
		return nil
	}
	if spotMore != nil {
		sum, err := r.Expected.Add(*spotMore)
		if err != nil {
			return err
		}
		r.Expected = &sum
	}
	r.SavedPct, err = plan.Saved(r.OnDemand, *r.Expected)
	return err
}

func spotJSON(r plan.SpotAnswer, currency string) map[string]any {
	hours := func(d *time.Duration) any {
		if d == nil {
			return nil
		}
		return d.Hours()
	}
	return map[string]any{
		"currency": currency, "on_demand": money(&r.OnDemand, 2), "spot_at_best": money(&r.Best, 2), "spot": money(r.Expected, 2), "lost": money(r.Loss, 2),
		"hours": hours(r.Took), "reclaims": r.Reclaims, "saved_percent": ratNumber(r.SavedPct, 1), "pays_from_hours_between_reclaims": hours(r.BreakEven),
		"best_checkpoint_hours": hours(r.BestSave), "never_ends": r.Hopeless,
	}
}

func (a *app) printSpot(s plan.Spot, r plan.SpotAnswer) error {
	t := newTable("", "COST", "HOURS", "NOTE").alignRight(1, 2)
	t.add("on demand", r.OnDemand.String(), trimmed(s.Work.Hours(), 1), "")
	best := "without any reclaim"
	switch {
	case r.BreakEven == nil:
		best += "; dearer than on demand even so"
	case *r.BreakEven > 0:
		best += "; pays while reclaims come less than once in " + span(*r.BreakEven)
	}
	t.add("spot at best", r.Best.String(), "", best)
	switch {
	case r.Hopeless:
		t.add("spot", "?", "", "the work is taken away faster than it gets on: save checkpoints more often")
	case r.Expected == nil:
		t.add("spot", "?", "", "how often it is taken away is not known: --every")
	default:
		t.add("spot", r.Expected.String(), trimmed(r.Took.Hours(), 1), spotNote(r))
	}
	if err := t.print(a.Out); err != nil {
		return err
	}
	if r.BestSave != nil {
		_, err := fmt.Fprintf(a.Out, "least is lost with a checkpoint each %s\n", span(*r.BestSave))
		return err
	}
	return nil
}

func spotNote(r plan.SpotAnswer) string {
	var parts []string
	if r.Reclaims != nil {
		parts = append(parts, fmt.Sprintf("%s reclaims expected, which cost %s", trimmed(*r.Reclaims, 1), r.Loss))
	}
	if pct := r.SavedPct; pct != nil {
		word := " % saved"
		if pct.Sign() < 0 {
			pct, word = new(big.Rat).Neg(pct), " % dearer"
		}
		parts = append(parts, pct.FloatString(1)+word)
	}
	return strings.Join(parts, "; ")
}
