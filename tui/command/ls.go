package command

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/session/billing"
	"rentop/session/phrase"
)

// lsWait bounds how long ls waits for an instance that does not answer.
const lsWait = 8 * time.Second

// listed is one instance in ls --json. Names are added, never changed.
type listed struct {
	Name       string       `json:"name"`
	State      string       `json:"state"`  // "not asked" with --offline
	Reason     string       `json:"reason"` // why it is not live, "" where it is
	Cause      string       `json:"cause"`  // what the person has to look at, in a few words; "" where nothing
	Address    string       `json:"address"`
	Provider   string       `json:"provider"`
	GPUs       []string     `json:"gpus"`
	Rate       *json.Number `json:"rate"` // an hour, in the present state; null is not known
	Cost       *json.Number `json:"cost"` // of this rental until now; null is not known
	AtLeast    *json.Number `json:"cost_at_least"`
	Today      *json.Number `json:"today"`
	BudgetLeft *json.Number `json:"budget_left"`
	Currency   *string      `json:"currency"`
	Missing    []string     `json:"not_known"` // what keeps the cost from being known
}

func (a *app) lsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the instances: state, rate and cost",
		Long:  "Lists the instances. It logs in to all at once and waits a few seconds at most; it asks nothing.",
		Args:  cobra.NoArgs,
	}
	asJSON := jsonFlag(c)
	offline := c.Flags().Bool("offline", false, "do not log in anywhere: only what the ledger knows")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		fleet, err := a.open(cmd.Context(), silent{})
		if err != nil {
			return err
		}
		defer fleet.Close()
		if !*offline {
			settle(cmd.Context(), fleet, lsWait)
		}
		list := []listed{}
		for _, name := range fleet.Names() {
			s, err := fleet.Session(name)
			if err != nil {
				return err
			}
			s.Told()
			l := listing(s.View())
			if *offline {
				l.State, l.Reason = "not asked", ""
			}
			list = append(list, l)
		}
		if *asJSON {
			return printJSON(a.Out, list)
		}
		return a.printList(list)
	}
	return a.connects(c)
}

// silent is nobody: an instance that asks is shown as refused, with its question.
type silent struct{}

func (silent) Ask(context.Context, remote.Question) (remote.Answer, error) {
	return remote.Answer{}, remote.ErrNobodyToAsk
}

// settle tries every instance once and waits until each has an answer.
func settle(ctx context.Context, f *session.Fleet, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var waits []*session.Session
	for _, name := range f.Names() {
		if s, err := f.Session(name); err == nil {
			s.Nudge()
			waits = append(waits, s)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(waits) > 0 {
		waits = slices.DeleteFunc(waits, func(s *session.Session) bool { return settled(s.View().State) })
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// settled is a state that a first try ends in.
func settled(s session.State) bool {
	return s != session.Idle && s != session.Connecting && s != session.Asking
}

// causes tell apart what a person must do about a refusal.
var causes = map[phrase.ID]string{
	"fault.newkey":   "unknown host key",
	"fault.hostkey":  "changed host key",
	"fault.declined": "needs a password or another answer",
	"fault.auth":     "login refused",
}

func listing(v session.View) listed {
	m := v.Meter
	l := listed{
		Name: v.Name, State: string(v.State), Reason: v.Reason.String(), Address: v.Address, Provider: v.Provider,
		GPUs: []string{}, Rate: rate(m.PerHour), Cost: money(m.Cost, 2), AtLeast: money(m.AtLeast, 2),
		Today: money(m.Today, 2), BudgetLeft: money(m.BudgetLeft, 2), Missing: append([]string{}, m.Missing...),
	}
	if v.State == session.Live {
		l.Reason = ""
	} else if len(v.Reason) > 0 {
		l.Cause = causes[v.Reason[0].ID]
	}
	if v.Facts != nil {
		l.GPUs = append(l.GPUs, v.Facts.GPUs...)
	}
	for _, a := range []*billing.Amount{m.Cost, m.AtLeast, m.PerHour, m.Budget} {
		if a != nil && l.Currency == nil {
			l.Currency = &a.Currency
		}
	}
	return l
}

func (a *app) printList(list []listed) error {
	if len(list) == 0 {
		a.note("no instances yet: rentop add 'ssh -p PORT user@host' --name NAME --price 8/h --currency CNY")
		return nil
	}
	t := newTable("NAME", "STATE", "GPU", "RATE/H", "COST", "TODAY", "CURRENCY", "WHY").alignRight(3, 4, 5)
	for _, l := range list {
		cost := number(l.Cost)
		if l.Cost == nil && l.AtLeast != nil {
			cost = ">" + number(l.AtLeast)
		}
		currency := ""
		if l.Currency != nil {
			currency = *l.Currency
		}
		t.add(l.Name, l.State, strings.Join(l.GPUs, ", "), number(l.Rate), cost, number(l.Today), currency, a.why(l))
	}
	return t.print(a.Out)
}

// why is the last column: whole in a file or a pipe, one line on a terminal.
func (a *app) why(l listed) string {
	why := l.Reason
	if l.Cause != "" {
		why = l.Cause + ": " + why
	}
	if isTerminal(a.Out) {
		why = remote.Short(why, 100)
	}
	return why
}

// number is a JSON number for a person.
func number(n *json.Number) string {
	if n == nil {
		return "?"
	}
	return n.String()
}
