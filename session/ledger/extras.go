package ledger

// What an instance costs beside its time: bytes moved, and what it left behind when
// it went. Both are apart from the meter, which Fold gives.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

// Kinds of a Row that Extras makes.
const (
	RowTraffic = "traffic"     // an instance's bytes on one day
	RowLeft    = "left behind" // what a gone instance left, on one day
)

// Traffic is the Data of Transferred, as far as money needs it.
type Traffic struct {
	Direction string `json:"direction"` // "pull" and "copy from" come from the instance, all else goes to it
	Wire      int64  `json:"wire"`
	PerGB     string `json:"per_gb,omitempty"` // of 10⁹ bytes; "": not known
	Currency  string `json:"currency,omitempty"`
}

// LeftData is the Data of LeftBehind: all that is left from At on; it replaces what
// an earlier one said.
type LeftData struct {
	Items []LeftItem `json:"items"`
}

// LeftItem is one thing that goes on costing money.
type LeftItem struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	PerMonth string `json:"per_month,omitempty"` // decimal; "": not known
	Currency string `json:"currency,omitempty"`
}

// monthHours is the month that a price a month is divided by.
const monthHours = 730

// extraKinds are the kinds that Extras reads.
var extraKinds = []Kind{Transferred, LeftBehind}

// Extras lists, for [since, until) and by days of the zone, what traffic cost and what
// is left behind goes on costing. A zero since is the beginning.
func (l *Ledger) Extras(ctx context.Context, since, until time.Time, zone *time.Location) ([]Row, error) {
	instances, err := l.Instances(ctx)
	if err != nil {
		return nil, err
	}
	events, err := l.Events(ctx, Filter{Kinds: extraKinds})
	if err != nil {
		return nil, err
	}
	byUID := map[string][]Event{}
	for _, e := range events {
		byUID[e.Instance] = append(byUID[e.Instance], e)
	}
	var rows []Row
	names := map[string]string{}
	for _, i := range instances {
		of := Row{Instance: i.Name, UID: i.UID}
		got, err := trafficRows(of, byUID[i.UID], since, until, zone)
		if err != nil {
			return nil, fmt.Errorf("the costs of %s: %w", i.Name, err)
		}
		rows, names[i.UID] = append(rows, got...), i.Name
	}
	left, err := leftRows(names, byUID, since, until, zone)
	if err != nil {
		return nil, fmt.Errorf("what was left behind: %w", err)
	}
	rows = append(rows, left...)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.Day.Compare(b.Day), strings.Compare(a.Instance, b.Instance)) })
	return rows, nil
}

// trafficRows adds up the bytes of each day.
func trafficRows(of Row, events []Event, since, until time.Time, zone *time.Location) ([]Row, error) {
	var rows []Row
	byDay := map[string]int{}
	bytes := map[int][2]int64{}
	for _, e := range events {
		var t Traffic
		if e.Kind != Transferred || e.At.Before(since) || !e.At.Before(until) || json.Unmarshal(e.Data, &t) != nil || t.Wire <= 0 {
			continue
		}
		day := midnight(e.At, zone, 0)
		key := day.Format(time.DateOnly) + t.Currency
		n, known := byDay[key]
		if !known {
			r := of
			r.Kind, r.Day, r.From, r.To = RowTraffic, day, e.At, e.At
			r.Amount, r.AtLeast = &billing.Amount{}, &billing.Amount{}
			n = len(rows)
			byDay[key], rows = n, append(rows, r)
		}
		r := &rows[n]
		r.To = e.At
		b := bytes[n]
		if t.Direction == "pull" || t.Direction == "copy from" {
			b[1] += t.Wire
		} else {
			b[0] += t.Wire
		}
		bytes[n] = b
		var price *big.Rat
		if err := readRat(t.PerGB, &price); err != nil || price == nil || price.Sign() < 0 || t.Currency == "" {
			r.Amount = nil
			continue
		}
		if err := r.plus(billing.Amount{Value: price.Mul(price, big.NewRat(t.Wire, 1_000_000_000)), Currency: t.Currency}); err != nil {
			return nil, err
		}
	}
	for n := range rows {
		rows[n].Note = phrase.Say("note.traffic", gigabytes(bytes[n][0]), gigabytes(bytes[n][1]))
		if rows[n].Amount == nil {
			rows[n].Note = join(rows[n].Note, phrase.Say("note.traffic.unpriced"))
		}
	}
	return rows, nil
}

func gigabytes(n int64) string { return big.NewRat(n, 1_000_000_000).FloatString(2) }

// plus adds an amount to what is known.
func (r *Row) plus(a billing.Amount) error {
	known, err := r.AtLeast.Add(a)
	if err != nil {
		return err
	}
	r.AtLeast = &known
	if r.Amount != nil {
		r.Amount = &known
	}
	return nil
}

// leftSpan is one thing left, for a time in which it is counted for one instance.
type leftSpan struct {
	uid      string
	item     LeftItem
	from, to time.Time
}

// leftSpans are the spans of all instances until a moment. A provider may name the same
// volume for each instance that is gone: it is counted once, for the one that was told first.
func leftSpans(byUID map[string][]Event, until time.Time) []leftSpan {
	var spans []leftSpan
	for uid, events := range byUID {
		lists := leftLists(events)
		for n, l := range lists {
			end := until
			if n+1 < len(lists) && lists[n+1].at.Before(end) {
				end = lists[n+1].at
			}
			for _, i := range l.Items {
				spans = append(spans, leftSpan{uid, i, l.at, end})
			}
		}
	}
	slices.SortFunc(spans, func(a, b leftSpan) int {
		return cmp.Or(a.from.Compare(b.from), strings.Compare(a.uid, b.uid), strings.Compare(a.item.key(), b.item.key()))
	})
	counted := map[string]time.Time{}
	out := spans[:0]
	for _, s := range spans {
		key := s.item.key()
		if s.item.ID != "" {
			s.from = latest(s.from, counted[key])
		}
		if s.from.Before(s.to) {
			counted[key] = latest(counted[key], s.to)
			out = append(out, s)
		}
	}
	return out
}

func (i LeftItem) key() string { return i.Kind + "\x00" + i.ID + "\x00" + i.Currency }

// leftRows gives a row for each instance and day on which something was left, in each
// currency.
func leftRows(names map[string]string, byUID map[string][]Event, since, until time.Time, zone *time.Location) ([]Row, error) {
	var rows []Row
	at := map[string]int{}
	for _, s := range leftSpans(byUID, until) {
		for from := latest(s.from, since); from.Before(s.to); {
			to := midnight(from, zone, 1)
			if to.After(s.to) {
				to = s.to
			}
			day := midnight(from, zone, 0)
			key := s.uid + day.Format(time.DateOnly) + s.item.Currency
			n, known := at[key]
			if !known {
				n = len(rows)
				at[key] = n
				rows = append(rows, Row{Instance: names[s.uid], UID: s.uid, Kind: RowLeft, Day: day, From: from, Amount: &billing.Amount{}, AtLeast: &billing.Amount{}})
			}
			rows[n].To = latest(rows[n].To, to)
			if err := rows[n].leave(s.item, to.Sub(from)); err != nil {
				return nil, err
			}
			from = to
		}
	}
	for n := range rows {
		if rows[n].Amount == nil {
			rows[n].Note = join(rows[n].Note, phrase.Say("note.left.unpriced"))
		}
	}
	return rows, nil
}

type leftList struct {
	LeftData
	at time.Time
}

// leftLists are what was left, in the order of time.
func leftLists(events []Event) []leftList {
	var lists []leftList
	for _, e := range events {
		l := leftList{at: e.At}
		if e.Kind == LeftBehind && json.Unmarshal(e.Data, &l.LeftData) == nil {
			lists = append(lists, l)
		}
	}
	slices.SortStableFunc(lists, func(a, b leftList) int { return a.at.Compare(b.at) })
	return lists
}

// leave charges the row with an item for a time.
func (r *Row) leave(i LeftItem, d time.Duration) error {
	if name := strings.TrimSpace(i.Kind + " " + i.ID); !strings.Contains(r.Note.String(), name) {
		r.Note = phrase.List(r.Note, phrase.Plain(name))
	}
	price := i.perHour()
	if price == nil {
		r.Amount = nil
		return nil
	}
	return r.plus(price.Over(d))
}

func (i LeftItem) perHour() *billing.Amount {
	var price *big.Rat
	if err := readRat(i.PerMonth, &price); err != nil || price == nil || price.Sign() < 0 || i.Currency == "" {
		return nil
	}
	return &billing.Amount{Value: price.Quo(price, big.NewRat(monthHours, 1)), Currency: i.Currency}
}

// Left is what an instance's events say is left of it now, and since when; nil where
// it left nothing, or nobody asked.
func Left(events []Event) (items []LeftItem, since time.Time) {
	lists := leftLists(events)
	if len(lists) == 0 {
		return nil, time.Time{}
	}
	last := lists[len(lists)-1]
	return last.Items, last.at
}
