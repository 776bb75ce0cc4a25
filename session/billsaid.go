package session

// What a bill says in sentences: budgets, charges, what was left behind, balances.

import (
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

// Said is what is to be said of an instance's money beside its lines in the bill.
func (i InstanceSpending) Said() []phrase.Text {
	var out []phrase.Text
	if i.BudgetLeft != nil {
		out = append(out, phrase.Say("bill.budget", i.Name, i.BudgetLeft, i.Budget).Then(runsOut(i.Runway, i.PerHour)))
	}
	for _, c := range i.Charges {
		out = append(out, c.said(i.Name))
	}
	for _, l := range i.Left {
		if l.PerMonth == "" {
			out = append(out, phrase.Say("bill.left.unpriced", i.Name, l.Kind, l.ID))
			continue
		}
		out = append(out, phrase.Say("bill.left", i.Name, l.Kind, l.ID, l.PerMonth+" "+l.Currency))
	}
	return out
}

// Said is an account's balance.
func (a Account) Said() phrase.Text {
	return phrase.Say("bill.balance", a.Provider, a.Balance).Then(runsOut(a.Runway, a.PerHour))
}

// Said is a balance as it was last told, and how long it lasts from now.
func (b Balance) Said() phrase.Text {
	t := phrase.Say("bill.balance", b.Provider, b.Left)
	switch {
	case b.Lasts <= 0: // no end in sight, or not known
	case b.AtMost:
		return t.Then(phrase.Say("bill.atmost", span(b.Lasts)))
	default:
		return t.Then(phrase.Say("bill.runs", span(b.Lasts)))
	}
	return t
}

func runsOut(d *time.Duration, perHour *billing.Amount) phrase.Text {
	if d == nil || perHour == nil {
		return nil
	}
	return phrase.Say("bill.lasts", span(*d), perHour)
}

// said sets a charge beside what was reckoned for the same time.
func (c Reconciled) said(name string) phrase.Text {
	const layout = "2006-01-02 15:04"
	t := phrase.Say("bill.charged", name, c.From.Local().Format(layout), c.To.Local().Format(layout), c.Amount)
	switch {
	case c.Off == nil && c.AtLeast != nil:
		t = t.Then(phrase.Say("bill.charged.atleast", c.AtLeast))
	case c.Off != nil && c.Off.Sign() == 0:
		t = t.Then(phrase.Say("bill.charged.equal"))
	case c.Off != nil && c.Off.Sign() < 0:
		t = t.Then(phrase.Say("bill.charged.less", c.Estimate, c.Off.Times(-1)))
	case c.Off != nil:
		t = t.Then(phrase.Say("bill.charged.more", c.Estimate, c.Off))
	}
	if why := c.Why(); len(why) > 0 {
		t = t.Then(phrase.Plain(" ("), why, phrase.Plain(")"))
	}
	return t
}

// Why says what may explain that a charge is another than the estimate.
func (c Reconciled) Why() phrase.Text {
	switch {
	case len(c.Missing) > 0:
		var names []phrase.Text
		for _, m := range c.Missing {
			names = append(names, phrase.Word("missing.", m))
		}
		return phrase.Say("bill.why.unknown").Then(phrase.List(names...))
	case c.Off == nil:
		return phrase.Say("bill.why.currency")
	case c.Off.Sign() > 0:
		return phrase.Say("bill.why.more")
	case c.Off.Sign() < 0:
		return phrase.Say("bill.why.less")
	}
	return nil
}
