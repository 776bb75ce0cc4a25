package command

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rentop/session"
	"rentop/session/billing"
	"rentop/session/ledger"
	"rentop/session/phrase"
)

// spent is one line of the bill, in JSON too. Names are added, never changed.
type spent struct {
	Instance string       `json:"instance"` // "" where the line is a day's, a provider's or a tag's
	Day      *string      `json:"day"`      // local, 2006-01-02
	Job      *string      `json:"job"`      // null with --by job: while no job ran, or what is counted twice; Note says which
	JobID    *string      `json:"job_id"`
	Provider *string      `json:"provider"` // with --by provider; "ssh" is plain SSH
	Tag      *string      `json:"tag"`      // with --by tag; "" is none
	Amount   *json.Number `json:"amount"`   // null is not known
	AtLeast  *json.Number `json:"at_least"` // the known part
	Currency *string      `json:"currency"`
	Compute  *json.Number `json:"compute"` // what the amount is made of; null is not known
	Stopped  *json.Number `json:"stopped"`
	Disk     *json.Number `json:"disk"`
	Other    *json.Number `json:"other"`
	Traffic  *json.Number `json:"traffic"`
	Left     *json.Number `json:"left_behind"`
	Note     string       `json:"note"` // what is not known, or is assumed

	note       phrase.Text // the same, for a page in another language
	sum, known billing.Amount
	unknown    bool
	parts      [len(partNames)]part
}

// partNames are the parts in their order.
var partNames = [...]string{"compute", "stopped", "disk", "other", "traffic", "left behind"}

// part is a sum that may not be known in full.
type part struct {
	sum     billing.Amount
	unknown bool
}

func (p *part) add(a *billing.Amount) {
	if a == nil {
		p.unknown = true
		return
	}
	if sum, err := p.sum.Add(*a); err == nil { // one currency by the line's key
		p.sum = sum
	}
}

func (p *part) number() *json.Number {
	if p.unknown {
		return nil
	}
	return money(&p.sum, 2)
}

// String is the part for a person; "" where it is nothing.
func (p *part) String() string {
	switch {
	case p.unknown && p.sum.Sign() > 0:
		return ">" + p.sum.String()
	case p.unknown:
		return "?"
	case p.sum.Sign() == 0:
		return ""
	}
	return p.sum.String()
}

// group adds the bill's rows up by what each line is for. Different currencies are
// different lines.
func group(r *session.Spending, by string) []*spent {
	g := grouper{by: by, about: r.About, at: map[string][]*spent{}}
	for _, row := range r.Rows {
		if (row.Kind == ledger.RowDay) == (by == "job") {
			continue // a job's cost is part of its instance's days
		}
		g.row(row)
	}
	if by == "job" {
		for _, row := range r.Rest {
			g.row(row)
		}
	} else {
		for _, row := range r.Extras {
			g.row(row)
		}
	}
	for _, l := range g.out {
		l.finish()
	}
	if by == "day" { // currencies of a day stand together
		slices.SortStableFunc(g.out, func(a, b *spent) int { return strings.Compare(orEmpty(a.Day), orEmpty(b.Day)) })
	}
	return g.out
}

// cost is the line's sum for a person.
func (l *spent) cost() string {
	switch {
	case l.unknown && l.known.Sign() == 0:
		return "?"
	case l.unknown:
		return ">" + l.known.String()
	}
	return l.sum.String()
}

type grouper struct {
	by    string
	about map[string]*ledger.About
	out   []*spent
	at    map[string][]*spent
}

func (g *grouper) row(r ledger.Row) {
	switch g.by {
	case "tag":
		var tags []string
		if a := g.about[r.UID]; a != nil {
			tags = a.Tags
		}
		if len(tags) == 0 {
			tags = []string{""}
		}
		for _, t := range tags { // one with several counts in each
			g.add(r, t, &spent{Tag: &t})
		}
	case "provider":
		kind := "ssh"
		if a := g.about[r.UID]; a != nil && a.Provider != "" {
			kind = a.Provider
		}
		g.add(r, kind, &spent{Provider: &kind})
	case "day":
		day := r.Day.Format(time.DateOnly)
		g.add(r, day, &spent{Day: &day, note: r.Note})
	case "job":
		g.add(r, strings.Join([]string{r.UID, r.Kind, r.JobID}, "\x00"), jobLine(r))
	default:
		g.add(r, r.UID, &spent{Instance: r.Instance, note: r.Note})
	}
}

func jobLine(r ledger.Row) *spent {
	line := &spent{Instance: r.Instance, note: r.Note}
	if r.Kind == ledger.RowJob {
		day := r.Day.Format(time.DateOnly)
		line.Job, line.JobID, line.Day = &r.Job, &r.JobID, &day
	}
	return line
}

// add puts a row on the line of its key and currency, or begins it. What is nothing, or
// not known, belongs to the first line that there is.
func (g *grouper) add(r ledger.Row, key string, line *spent) {
	known := billing.Amount{}
	if r.AtLeast != nil {
		known = *r.AtLeast
	}
	for _, old := range g.at[key] {
		if c := old.known.Currency; c == known.Currency || c == "" || known.Currency == "" {
			if len(old.note) == 0 {
				old.note = line.note
			}
			old.add(r, known)
			return
		}
	}
	g.at[key] = append(g.at[key], line)
	g.out = append(g.out, line)
	line.add(r, known)
}

func (l *spent) add(r ledger.Row, known billing.Amount) {
	if sum, err := l.known.Add(known); err == nil {
		l.known = sum
	}
	switch r.Kind {
	case ledger.RowTraffic:
		l.parts[4].add(r.Amount)
		if r.Amount == nil { // mostly free: it leaves no doubt on the whole
			l.plus(known)
			return
		}
	case ledger.RowLeft:
		l.parts[5].add(r.Amount)
	case ledger.RowDay, ledger.RowJob:
		for i, a := range []*billing.Amount{r.Parts.Compute, r.Parts.Stopped, r.Parts.Disk, r.Parts.Other} {
			l.parts[i].add(a)
		}
	}
	if r.Amount == nil {
		l.unknown = true
		return
	}
	l.plus(*r.Amount)
}

func (l *spent) plus(a billing.Amount) {
	if sum, err := l.sum.Add(a); err == nil {
		l.sum = sum
	}
}

func (l *spent) finish() {
	l.Note = l.note.String()
	l.AtLeast = money(&l.known, 2)
	if !l.unknown {
		l.Amount = money(&l.sum, 2)
	}
	if c := max(l.sum.Currency, l.known.Currency); c != "" {
		l.Currency = &c
	}
	for i, to := range []**json.Number{&l.Compute, &l.Stopped, &l.Disk, &l.Other, &l.Traffic, &l.Left} {
		*to = l.parts[i].number()
	}
}
