package session

import (
	"context"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/provider"
	"rentop/session/billing"
	"rentop/session/config"
	"rentop/session/phrase"
)

var noonUTC = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// memory is a fleet in a folder, without a network.
func memory(t *testing.T, dir string, o Options) (*Fleet, *Session) {
	t.Helper()
	o.Dirs, o.Held, o.Live = Dirs{Config: dir, State: dir}, true, true
	o.Asker, o.Secrets = noAsker{}, noKeys{}
	o.Instances = []config.Instance{{Name: "a", SSH: "ssh root@127.0.0.1", Provider: "purse", Rate: &config.Rate{PerHour: "8", Currency: "CNY"}}}
	f, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s, err := f.Session("a")
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

type noAsker struct{}

func (noAsker) Ask(context.Context, remote.Question) (remote.Answer, error) {
	return remote.Answer{}, remote.ErrNobodyToAsk
}

type noKeys struct{}

func (noKeys) Get(string) (string, bool) { return "", false }
func (noKeys) Set(string, string) error  { return nil }
func (noKeys) Delete(string) error       { return nil }
func (noKeys) Available() bool           { return false }

func said(id string, since, ended time.Time) PastAlert {
	return PastAlert{Alert: Alert{ID: id, Level: Warn, Since: since, Text: phrase.Say("alert.disk", "/data", 96)}, Ended: ended}
}

// What alarms said is there after rentop, in the words of any language; of one that
// lasted when rentop ended the end is not known.
func TestAlarmsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, s := memory(t, dir, Options{})
	st := &state{}
	hot, disk := said("hot", noonUTC, time.Time{}), said("disk /data", noonUTC.Add(time.Minute), time.Time{})
	write := func(past ...PastAlert) {
		s.writeAlarms(st.alarmLog.fresh(past))
	}
	write(hot)
	write(hot, disk)
	write(hot, disk) // nothing new
	hot.Ended = noonUTC.Add(10 * time.Minute)
	write(hot, disk)
	again := said("hot", noonUTC.Add(20*time.Minute), time.Time{})
	write(hot, disk, again)
	again.Ended = noonUTC.Add(21 * time.Minute)
	write(hot, disk, again)
	f.Close()

	f, s = memory(t, dir, Options{})
	got, err := f.Alarms(t.Context(), "a", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		id           string
		since, ended time.Duration
		unseen       bool
	}{{"hot", 0, 10 * time.Minute, false}, {"disk /data", time.Minute, -1, true}, {"hot", 20 * time.Minute, 21 * time.Minute, false}}
	if len(got) != len(want) {
		t.Fatalf("%d alarms: %+v", len(got), got)
	}
	for i, w := range want {
		g := got[i]
		if g.ID != w.id || !g.Since.Equal(noonUTC.Add(w.since)) || g.Unseen != w.unseen || !g.Unseen && !g.Ended.Equal(noonUTC.Add(w.ended)) ||
			g.Instance != "a" || g.Text.String() != "the disk at /data is 96 % full: a checkpoint may not fit" {
			t.Errorf("alarm %d is %+v", i, g)
		}
	}
	f.Begin()
	s.Told()
	if past := s.View().PastAlerts; len(past) != 3 || past[1].ID != "disk /data" || !past[1].Unseen {
		t.Errorf("the view has %+v", past)
	}
	if late, err := f.Alarms(t.Context(), "", noonUTC.Add(15*time.Minute)); err != nil || len(late) != 1 {
		t.Errorf("since then: %v %v", late, err)
	}
	if _, err := f.Alarms(t.Context(), "nobody", time.Time{}); err == nil {
		t.Error("an instance that never was has alarms")
	}
}

// A silence outlives rentop until its end, and one that was taken back does not.
func TestSilencesAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var at atomic.Pointer[time.Time]
	set := func(now time.Time) { at.Store(&now) }
	set(noonUTC)
	o := Options{Now: func() time.Time { return *at.Load() }}
	f, s := memory(t, dir, o)
	f.Begin()
	s.Keep("hot", time.Hour)
	s.Keep("disk /data", time.Hour)
	s.Told()
	set(noonUTC.Add(time.Minute))
	s.Keep("disk /data", 0)
	s.Told()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		hot   time.Time
	}{{2 * time.Minute, noonUTC.Add(time.Hour)}, {2 * time.Hour, time.Time{}}} {
		set(noonUTC.Add(c.after))
		f, s := memory(t, dir, o)
		f.Begin()
		s.Told()
		got := make(chan [2]time.Time, 1)
		s.send(func(st *state) { got <- [2]time.Time{st.alarms.Quiet("hot"), st.alarms.Quiet("disk /data")} })
		if q := <-got; !q[0].Equal(c.hot) || !q[1].IsZero() {
			t.Errorf("after %v: %v", c.after, q)
		}
		f.Close()
	}
}

// Two rentops that see the same alarm write it twice; it is one.
func TestAlarmsOfTwo(t *testing.T) {
	t.Parallel()
	f, s := memory(t, t.TempDir(), Options{})
	s.writeAlarms([]alarmData{{ID: "hot", Since: noonUTC}, {ID: "hot", Since: noonUTC.Add(2 * time.Second)},
		{ID: "hot", Since: noonUTC, Ended: noonUTC.Add(time.Minute)}, {ID: "hot", Since: noonUTC.Add(2 * time.Second), Ended: noonUTC.Add(62 * time.Second)}})
	got, err := f.Alarms(t.Context(), "a", time.Time{})
	if err != nil || len(got) != 1 || !got[0].Ended.Equal(noonUTC.Add(62*time.Second)) || !got[0].Since.Equal(noonUTC) {
		t.Errorf("%+v %v", got, err)
	}
}

// purse is a provider whose account has a balance.
type purse struct {
	provider.Provider
	asked int
	left  provider.Balance
	err   error
}

func (p *purse) Balance(context.Context) (provider.Balance, error) {
	p.asked++
	return p.left, p.err
}

func cny(n int64) *billing.Amount {
	return &billing.Amount{Value: big.NewRat(n, 1), Currency: "CNY"}
}

// The balance is asked for seldom, reckoned on in between, and oftener near its end.
func TestRunway(t *testing.T) {
	t.Parallel()
	p := &purse{left: provider.Balance{Cash: "20", Credit: "4", Currency: "CNY"}}
	f, s := memory(t, t.TempDir(), Options{Providers: map[string]provider.Provider{"purse": p}})
	see := func(v View) { v.Name, v.Provider = "a", "purse"; s.view.Store(&v) }
	b := balances{map[string]billing.Amount{}, map[string]time.Time{}, map[string]time.Time{}}
	at := func(d time.Duration) Balance {
		t.Helper()
		list := b.look(t.Context(), f, noonUTC.Add(d))
		f.funds.Store(&list)
		if len(list) == 0 {
			return Balance{}
		}
		return list[0]
	}
	see(View{State: Stopped, Meter: Meter{PerHour: cny(1)}})
	if at(0); p.asked != 0 {
		t.Error("the balance was asked for although nothing runs")
	}
	see(View{State: Live, Meter: Meter{PerHour: cny(8)}})
	if got := at(0); got.Lasts != 3*time.Hour || got.AtMost || got.Left.String() != "¥24.00" {
		t.Errorf("24 at 8 an hour: %+v", got)
	}
	if got := at(9 * time.Minute); got.Lasts != 3*time.Hour-9*time.Minute || p.asked != 1 {
		t.Errorf("nine minutes later: %+v, asked %d times", got, p.asked)
	}
	p.left.Cash, p.left.Credit = "6", ""
	if got := at(10 * time.Minute); got.Lasts != 45*time.Minute || p.asked != 2 {
		t.Errorf("6 at 8 an hour: %+v, asked %d times", got, p.asked)
	}
	p.err = context.DeadlineExceeded
	if got := at(12 * time.Minute); got.Lasts != 43*time.Minute || p.asked != 3 {
		t.Errorf("near the end, and no answer: %+v, asked %d times", got, p.asked)
	}
	if d, most := f.runway("purse"); d != 43*time.Minute || most {
		t.Errorf("runway %v %v", d, most)
	}
	if d, _ := f.runway("other"); d != 0 {
		t.Errorf("a provider that told nothing lasts %v", d)
	}
	see(View{State: Live, Meter: Meter{}})
	if got := at(13 * time.Minute); got.Lasts != 0 || !got.AtMost {
		t.Errorf("without a price: %+v", got)
	}
	p.err, p.left = nil, provider.Balance{Cash: "-12", Currency: "CNY"} // an account that pays afterwards
	see(View{State: Live, Meter: Meter{PerHour: cny(8)}})
	if got := at(time.Hour); got.Lasts != 0 {
		t.Errorf("a debt runs out in %v", got.Lasts)
	}
	p.err = provider.ErrUnsupported
	asked := p.asked
	at(2 * time.Hour)
	at(5 * time.Hour)
	if p.asked != asked+1 {
		t.Errorf("a provider that does not tell was asked %d times", p.asked-asked)
	}
}
