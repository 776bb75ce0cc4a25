package session

// What is to be learnt from a rental: how much of it was work, what was wasted, and
// the one thing that would have saved most.

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"rentop/remote"
	"rentop/session/billing"
	"rentop/session/ledger"
	"rentop/session/phrase"
	"rentop/session/usage"
)

// Review is one rental looked back on. Nil is not known.
type Review struct {
	Instance string
	Provider string   // "": plain SSH
	GPUs     []string // by name
	From, To time.Time
	Ran      time.Duration
	Lay      time.Duration // stopped or hibernated
	Bill     billing.Bill
	Left     []ledger.LeftItem

	Watched   float64         // the part of Ran that was watched, 0 to 1
	Util      *float64        // mean over the watched part, percent
	BusyHours *float64        // GPU-hours at work in the watched part
	PerBusy   *billing.Amount // what an hour of a GPU at work cost, by the watched part
	Idle      time.Duration   // watched with every GPU idle
	Wasted    *billing.Amount // what that cost

	Saving Saving
}

// Saving is the one thing that would have saved most.
type Saving struct {
	What   SavingKind
	Amount billing.Amount
}

// SavingKind names it.
type SavingKind string

const (
	SaveNothing  SavingKind = ""         // nothing stands out, or not enough is known
	SaveIdle     SavingKind = "idle"     // stop it when it is idle
	SaveStopped  SavingKind = "stopped"  // destroy it in place of letting it lie stopped
	SaveRounding SavingKind = "rounding" // fewer starts: started units were paid and not used
	SaveLeft     SavingKind = "left"     // delete what it left behind (a month of it)
)

// leastSaving is the part of a bill below which a saving is not worth a word.
var leastSaving = big.NewRat(1, 100)

// Review looks back on an instance's rental, also where it is gone from the config.
func (f *Fleet) Review(ctx context.Context, name string) (Review, error) {
	uid, err := f.everNamed(ctx, name)
	if err != nil {
		return Review{}, err
	}
	return f.review(ctx, uid, name)
}

// everNamed finds the instance that has a name, or the last one that had it.
func (f *Fleet) everNamed(ctx context.Context, name string) (uid string, err error) {
	list, err := f.ledger.Instances(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	found := false // one that is in the config
	for _, i := range list {
		if i.Name == name && !found {
			uid, found = i.UID, i.Removed.IsZero()
		}
		if !slices.Contains(names, i.Name) {
			names = append(names, i.Name)
		}
	}
	if uid == "" {
		return "", fmt.Errorf("%w: %q; the ledger knows %s", ErrUnknownInstance, remote.Clean(name), strings.Join(names, ", "))
	}
	return uid, nil
}

func (f *Fleet) review(ctx context.Context, uid, name string) (Review, error) {
	events, err := f.ledger.Events(ctx, ledger.Filter{Instance: uid, Kinds: append([]ledger.Kind{ledger.Used, ledger.LeftBehind}, ledger.MeterKinds...)})
	if err != nil {
		return Review{}, err
	}
	about, err := f.ledger.About(ctx)
	if err != nil {
		return Review{}, err
	}
	now := f.opt.Now()
	t := ledger.Fold(events, now)
	r := Review{Instance: name, From: t.Begin(), To: now}
	if a := about[uid]; a != nil {
		r.Provider, r.GPUs = a.Provider, a.GPUs
	}
	r.Left, _ = ledger.Left(events)
	if t.State == billing.Gone {
		r.To = t.Since
	}
	if r.From.IsZero() {
		return r, fmt.Errorf("%s: it was never seen running, so there is nothing to look back on", name)
	}
	if r.Bill, err = t.Bill(now); err != nil {
		return r, err
	}
	r.time(t, now)
	r.use(segmentsOf(events)[""])
	r.save(t, now)
	return r, nil
}

func (r *Review) time(t ledger.Timeline, now time.Time) {
	for _, i := range t.Intervals {
		end := i.To
		if end.IsZero() || end.After(now) {
			end = now
		}
		switch i.State {
		case billing.Running:
			r.Ran += max(0, end.Sub(i.From))
		case billing.Stopped, billing.Hibernated:
			r.Lay += max(0, end.Sub(i.From))
		}
	}
}

// use is what the GPUs did. What was not watched is taken for neither work nor waste.
func (r *Review) use(segments []usage.Segment) {
	got := usage.Merge(segments, r.From, r.From.Add(r.Ran))
	r.Watched, r.Util = got.Watched, got.Mean
	if got.Idle != nil {
		r.Idle = time.Duration(*got.Idle * float64(time.Second))
	}
	r.BusyHours = got.Busy
	if r.Bill.Compute == nil || r.Ran < time.Second {
		return
	}
	hour := r.Bill.Compute.Per(r.Ran.Hours())
	if got.Idle != nil {
		wasted := hour.Over(min(r.Idle, r.Ran))
		r.Wasted = &wasted
	}
	if got.Busy != nil && *got.Busy > 1.0/3600 {
		per := hour.Per(*got.Busy / (got.Watched * r.Ran.Hours()))
		r.PerBusy = &per
	}
}

// save finds what would have saved most, each against this rental as it was.
func (r *Review) save(t ledger.Timeline, now time.Time) {
	total := r.Bill.Known
	if total == nil {
		return
	}
	offer := func(what SavingKind, a *billing.Amount) {
		if a == nil || a.Sign() <= 0 {
			return
		}
		least := billing.Amount{Value: new(big.Rat).Mul(total.Value, leastSaving), Currency: total.Currency}
		if c, err := a.Cmp(least); err != nil || c < 0 {
			return
		}
		if c, err := a.Cmp(r.Saving.Amount); err == nil && c > 0 {
			r.Saving = Saving{what, *a}
		}
	}
	offer(SaveIdle, r.Wasted)
	offer(SaveStopped, lying(t, now))
	offer(SaveRounding, rounding(t, r.Bill, now))
	month := billing.Amount{}
	for _, l := range r.Left {
		price, err := billing.ParseRate(l.PerMonth)
		if err != nil {
			continue
		}
		if sum, err := month.Add(billing.Amount{Value: price, Currency: l.Currency}); err == nil {
			month = sum
		}
	}
	offer(SaveLeft, &month)
}

// lying is what the time stopped cost in all, the disk with it.
func lying(t ledger.Timeline, now time.Time) *billing.Amount {
	sum := billing.Amount{}
	for _, i := range t.Intervals {
		if i.State != billing.Stopped && i.State != billing.Hibernated {
			continue
		}
		end := i.To
		if end.IsZero() || end.After(now) {
			end = now
		}
		bill, err := t.Between(i.From, end)
		if err != nil || bill.Known == nil {
			return nil
		}
		if sum, err = sum.Add(*bill.Known); err != nil {
			return nil
		}
	}
	return &sum
}

// rounding is what started units and minimums cost more than the time that was used.
func rounding(t ledger.Timeline, bill billing.Bill, now time.Time) *billing.Amount {
	exact := slices.Clone(t.Intervals)
	for i := range exact {
		exact[i].Plan.Billed, exact[i].Plan.MinSeconds, exact[i].Plan.Floor = billing.HourExact, 0, nil
	}
	plain, err := billing.Cost(exact, now)
	if err != nil || plain.Compute == nil || bill.Compute == nil {
		return nil
	}
	more, err := bill.Compute.Sub(*plain.Compute)
	if err != nil {
		return nil
	}
	return &more
}

// Lines are the review in words, most telling last.
func (r Review) Lines() []phrase.Text {
	var out []phrase.Text
	say := func(t phrase.Text) { out = append(out, t) }
	if len(r.GPUs) > 0 {
		say(phrase.Say("review.what", gpuCounts(r.GPUs)))
	}
	if r.Lay >= time.Minute {
		say(phrase.Say("review.ran.lay", span(r.Ran), span(r.Lay)))
	} else {
		say(phrase.Say("review.ran", span(r.Ran)))
	}
	if c := r.Bill.Compute; c != nil {
		parts := phrase.Say("review.compute", c)
		if a := r.Bill.Stopped; a != nil && a.Sign() > 0 {
			parts = phrase.List(parts, phrase.Say("review.stopped", a))
		}
		if a := r.Bill.Disk; a != nil && a.Sign() > 0 {
			parts = phrase.List(parts, phrase.Say("review.disk", a))
		}
		if a := r.Bill.Other; a != nil && a.Sign() > 0 {
			parts = phrase.List(parts, phrase.Say("review.other", a))
		}
		say(parts)
	}
	if r.Util == nil {
		say(phrase.Say("review.unwatched"))
	} else {
		line := phrase.Say("review.util", percent(*r.Util))
		if r.Watched < 0.95 {
			line = line.Then(phrase.Say("review.watched", percent(100*r.Watched)))
		}
		say(line)
	}
	if r.PerBusy != nil {
		say(phrase.Say("review.work", r.PerBusy))
	}
	if r.Idle >= time.Minute && r.Wasted != nil {
		say(phrase.Say("review.idle", span(r.Idle), r.Wasted))
	}
	switch r.Saving.What {
	case SaveIdle:
		say(phrase.Say("review.save.idle", r.Saving.Amount))
	case SaveStopped:
		say(phrase.Say("review.save.stopped", r.Saving.Amount))
	case SaveRounding:
		say(phrase.Say("review.save.rounding", r.Saving.Amount))
	case SaveLeft:
		say(phrase.Say("review.save.left", r.Saving.Amount))
	}
	return out
}

// gpuCounts is "2×A100-SXM4-80GB", or each kind of a mixed machine.
func gpuCounts(names []string) string {
	var kinds []string
	count := map[string]int{}
	for _, n := range names {
		if count[n]++; count[n] == 1 {
			kinds = append(kinds, n)
		}
	}
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%d×%s", count[k], k)
	}
	return strings.Join(kinds, " + ")
}

// reviewLines are the review of this rental, for the end of its release.
func (s *Session) reviewLines(ctx context.Context) []phrase.Text {
	s.keepUsage(ctx) // what was watched until just now counts
	r, err := s.f.review(ctx, s.uid, s.cfg().Name)
	if err != nil {
		return nil
	}
	return r.Lines()
}

// percent is a whole number, but a little is not nothing.
func percent(p float64) string {
	if p > 0 && p < 0.5 {
		return "<1"
	}
	return fmt.Sprintf("%.0f", p)
}
