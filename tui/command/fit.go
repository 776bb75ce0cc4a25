package command

// Which card is enough for a model, and what it costs at the prices that you give.

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rentop/session/billing"
	"rentop/session/fit"
)

func (a *app) fitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "fit MODEL [flags]",
		Short: "How much GPU memory a model needs, and which cards have it",
		Long: "Says how much GPU memory a language model needs to run (--infer), to be tuned with adapters (--lora) or trained\n" +
			"(--full), part by part with the formula and its source. MODEL is a size such as 7B or one of " + strings.Join(fit.Models(), ", ") +
			".\nOf a size alone the figures range over the known models of that size. What is not known is ?, and the sum then at least.",
		Example: "  rentop fit 7B --lora --ctx 4096 --batch 8\n  rentop fit llama-3-70b --infer --bits 4 --price 'A100 80G=8 CNY/h' --price 'H20=7 CNY/h' --hours 20",
		Args:    cobra.ExactArgs(1),
	}
	ask := fit.Ask{Use: fit.Infer}
	c.Flags().Bool("infer", false, "to run it (the default)")
	lora := c.Flags().Bool("lora", false, "to tune it with LoRA adapters")
	full := c.Flags().Bool("full", false, "to train all of it with Adam in 16 bits")
	c.MarkFlagsMutuallyExclusive("infer", "lora", "full")
	c.Flags().IntVar(&ask.Context, "ctx", 4096, "`TOKENS` in a sequence")
	c.Flags().IntVar(&ask.Batch, "batch", 1, "sequences at once on a card (`N`)")
	c.Flags().IntVar(&ask.Bits, "bits", 16, "of a weight that is not trained: 16, 8 or 4 (`N`)")
	c.Flags().IntVar(&ask.Rank, "rank", 16, "of LoRA's adapters (`N`)")
	c.Flags().IntVar(&ask.Shape.Layers, "layers", 0, "of a model that is not known here, with the five below (`N`)")
	c.Flags().IntVar(&ask.Shape.Hidden, "hidden", 0, "its hidden size (`N`)")
	c.Flags().IntVar(&ask.Shape.Heads, "heads", 0, "its attention heads (`N`)")
	c.Flags().IntVar(&ask.Shape.KVHeads, "kv-heads", 0, "its key and value heads (`N`)")
	c.Flags().IntVar(&ask.Shape.FFN, "ffn", 0, "its feed-forward size (`N`)")
	c.Flags().IntVar(&ask.Shape.Vocab, "vocab", 0, "its vocabulary (`N`)")
	priced := c.Flags().StringArray("price", nil, "what an hour of a card costs, as `'A100 80G=8 CNY/h'`")
	hours := c.Flags().Float64("hours", 0, "how long it is to run: the cost of it (`N`)")
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		ask.Model = args[0]
		switch {
		case *lora:
			ask.Use = fit.LoRA
		case *full:
			ask.Use = fit.Full
		}
		n, err := fit.Estimate(ask)
		if err != nil {
			return badUsage("%v", err)
		}
		if *hours < 0 || *hours > 1e6 {
			return badUsage("--hours is 0 or more")
		}
		rows := cards(n)
		if err := price(rows, *priced, *hours); err != nil {
			return err
		}
		if *asJSON {
			return printJSON(a.Out, fitJSON(ask, n, rows))
		}
		return a.printFit(n, rows)
	}
	return c
}

// fitted is a kind of card with how many are enough, and what they cost.
type fitted struct {
	fit.Choice
	perHour *billing.Amount // of all of them
	cost    *billing.Amount
}

func cards(n fit.Need) []*fitted {
	var out []*fitted
	for _, c := range n.Choose(fit.Cards) {
		out = append(out, &fitted{Choice: c})
	}
	return out
}

// price gives the cards that the person names what they cost.
func price(rows []*fitted, given []string, hours float64) error {
	for _, g := range given {
		name, text, ok := strings.Cut(g, "=")
		perHour, currency, err := billing.ParsePrice(text)
		if !ok || err != nil || currency == "" {
			return badUsage("--price %q: write it as 'A100 80G=8 CNY/h'", g)
		}
		found := false
		for _, r := range rows {
			if !strings.EqualFold(strings.TrimSpace(name), r.Name) {
				continue
			}
			found = true
			all := billing.Amount{Value: perHour, Currency: currency}.Times(int64(r.Count))
			r.perHour = &all
			if hours > 0 {
				cost := all.TimesHours(hours)
				r.cost = &cost
			}
		}
		if !found {
			var names []string
			for _, r := range rows {
				names = append(names, r.Name)
			}
			return badUsage("--price: there is no card %q here; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func fitJSON(ask fit.Ask, n fit.Need, rows []*fitted) map[string]any {
	known := func(p fit.Part, v float64) any {
		if p.Unknown != "" {
			return nil
		}
		return int64(v)
	}
	parts, list, shapes := []map[string]any{}, []map[string]any{}, []string{}
	for _, p := range n.Parts {
		parts = append(parts, map[string]any{"name": p.Name, "low": known(p, p.Low), "high": known(p, p.High), "formula": p.Formula, "source": p.Source, "not_known": p.Unknown})
	}
	for _, r := range rows {
		row := map[string]any{"card": r.Name, "bytes": int64(r.Bytes), "count": r.Count, "verdict": r.Verdict, "per_hour": rate(r.perHour), "cost": money(r.cost, 2), "currency": nil}
		if r.perHour != nil {
			row["currency"] = r.perHour.Currency
		}
		list = append(list, row)
	}
	for _, s := range n.Shapes {
		shapes = append(shapes, s.Name)
	}
	return map[string]any{
		"model": ask.Model, "use": ask.Use, "context": ask.Context, "batch": ask.Batch, "parameters": n.Params, "like": shapes,
		"low": int64(n.Low), "high": int64(n.High), "at_least": n.AtLeast, "parts": parts, "cards": list,
	}
}

func (a *app) printFit(n fit.Need, rows []*fitted) error {
	gb := func(v float64) string { return fmt.Sprintf("%.1f", v/1e9) }
	between := func(low, high float64) string {
		if gb(low) == gb(high) {
			return gb(low)
		}
		return gb(low) + " – " + gb(high)
	}
	t := newTable("MEMORY", "GB", "HOW", "SOURCE").alignRight(1)
	for _, p := range n.Parts {
		size := between(p.Low, p.High)
		if p.Unknown != "" {
			size = "?"
		}
		t.add(p.Name, size, p.Formula, p.Source)
	}
	sum := between(n.Low, n.High)
	if n.AtLeast {
		sum = ">" + gb(n.Low)
	}
	t.add("together", sum, "", "")
	if err := t.print(a.Out); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	t = newTable("CARD", "GB", "HOW MANY", "", "RATE/H", "COST").alignRight(1, 2, 4, 5)
	for _, r := range rows {
		count := fmt.Sprint(r.Count)
		if r.Verdict == fit.Short {
			count = ">" + count
		}
		verdict := string(r.Verdict)
		if r.Verdict == fit.Open {
			verdict = "? what is known fits"
		}
		t.add(r.Name, gb(r.Bytes), count, verdict, orUnknown(r.perHour), orUnknown(r.cost))
	}
	if err := t.print(a.Out); err != nil {
		return err
	}
	for _, p := range n.Parts {
		if p.Unknown != "" {
			a.note("? depends on %s: give --layers, --hidden, --heads, --kv-heads, --ffn and --vocab, or a model that is known", p.Unknown)
			break
		}
	}
	return nil
}
