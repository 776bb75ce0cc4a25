package session

// How long the balance at each provider lasts: asked for gently, and reckoned on in
// between.

import (
	"context"
	"errors"
	"math/big"
	"time"

	"rentop/remote/provider"
	"rentop/session/billing"
)

// Balance is what an account has left, as its provider last told.
type Balance struct {
	Provider string
	Left     billing.Amount // cash and credit
	At       time.Time      // when it was told
	Lasts    time.Duration  // from now, at the present rate of all its instances; 0: no end in sight, or not known
	AtMost   bool           // the rate of one of them is not known: it lasts shorter
}

// How often a balance is asked for: seldom, and oftener near its end.
const (
	balanceEvery = 10 * time.Minute
	balanceSoon  = 2 * time.Minute
	balanceNear  = time.Hour // what "near" is
	balanceRetry = 30 * time.Minute
)

// balances are those of the fleet. One goroutine owns it.
type balances struct {
	told map[string]billing.Amount // by provider
	at   map[string]time.Time
	next map[string]time.Time // not to be asked before
}

// watchBalances asks the providers whose instances cost something, until ctx ends.
func (f *Fleet) watchBalances() {
	select {
	case <-f.begun:
	case <-f.ctx.Done():
		return
	}
	b := balances{map[string]billing.Amount{}, map[string]time.Time{}, map[string]time.Time{}}
	every(f.ctx, 5*time.Second, func() {
		list := b.look(f.ctx, f, f.opt.Now())
		f.funds.Store(&list)
	})
}

// burn is what the instances of one provider cost an hour.
type burn struct {
	of      Sums
	running bool
}

// burns adds up what is charged now, by provider.
func (f *Fleet) burns() map[string]burn {
	f.mu.Lock()
	var views []View
	for _, s := range f.sessions {
		views = append(views, s.View())
	}
	f.mu.Unlock()
	sums := map[string]*summer{}
	out := map[string]burn{}
	for _, v := range views {
		if v.Provider == "" || v.State == Gone {
			continue
		}
		if sums[v.Provider] == nil {
			sums[v.Provider] = &summer{}
		}
		sums[v.Provider].add(v.Meter.PerHour, v.State != Idle) // one that was never asked says nothing yet
		b := out[v.Provider]
		b.running = b.running || v.State == Live
		out[v.Provider] = b
	}
	for kind, s := range sums {
		b := out[kind]
		b.of = s.sums(billing.Exchange{}, time.Time{})
		out[kind] = b
	}
	return out
}

// look asks for what is due, and says how long each balance lasts from now.
func (b *balances) look(ctx context.Context, f *Fleet, now time.Time) []Balance {
	var out []Balance
	for kind, burn := range f.burns() {
		if burn.running && !now.Before(b.next[kind]) {
			b.ask(ctx, f, kind, now)
		}
		left, told := b.told[kind]
		if !told {
			continue
		}
		x := Balance{Provider: kind, Left: left, At: b.at[kind], AtMost: burn.of.Unknown > 0}
		x.Lasts = lasts(left, burn.of, now.Sub(x.At))
		if x.Lasts > 0 && x.Lasts < balanceNear {
			if soon := b.at[kind].Add(balanceSoon); soon.Before(b.next[kind]) {
				b.next[kind] = soon
			}
		}
		out = append(out, x)
	}
	return out
}

// lasts is how long a balance that was told a while ago still lasts. One that is
// used up or owed is of an account that pays afterwards: it has no end.
func lasts(left billing.Amount, of Sums, ago time.Duration) time.Duration {
	for _, perHour := range of.Amounts {
		if perHour.Currency != left.Currency || left.Sign() <= 0 {
			continue
		}
		if d, ends, err := billing.Runway(left, perHour); err == nil && ends {
			return max(d-max(ago, 0), time.Second)
		}
	}
	return 0
}

func (b *balances) ask(ctx context.Context, f *Fleet, kind string, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	got, err := f.Balance(ctx, kind)
	amount, ok := leftOf(got)
	switch {
	case errors.Is(err, provider.ErrUnsupported):
		b.next[kind] = now.AddDate(1, 0, 0)
	case err != nil || !ok: // what was told before stays, with its time
		b.next[kind] = now.Add(balanceRetry)
	default:
		b.told[kind], b.at[kind], b.next[kind] = amount, now, now.Add(balanceEvery)
	}
}

// leftOf is all that can be spent; false where the provider told no number.
func leftOf(b provider.Balance) (billing.Amount, bool) {
	sum, told := new(big.Rat), false
	for _, text := range []string{b.Cash, b.Credit} {
		if text == "" {
			continue
		}
		v, err := billing.ParseDecimal(text)
		if err != nil {
			return billing.Amount{}, false
		}
		sum.Add(sum, v)
		told = true
	}
	return billing.Amount{Value: sum, Currency: b.Currency}, told && b.Currency != ""
}

// runway is how long an instance's provider goes on by its balance; 0: not known.
func (f *Fleet) runway(kind string) (d time.Duration, atMost bool) {
	if list := f.funds.Load(); list != nil && kind != "" {
		for _, b := range *list {
			if b.Provider == kind {
				return b.Lasts, b.AtMost
			}
		}
	}
	return 0, false
}
