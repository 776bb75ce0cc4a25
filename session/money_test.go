package session

import (
	"context"
	"strings"
	"testing"
	"time"

	"rentop/remote/provider"
	"rentop/remote/tmux"
	"rentop/session/ledger"
	"rentop/session/usage"
)

// rental writes a rental of 10 hours, 6 of them running, of which 4 were watched: 1 at
// work at 90 % and 3 idle.
func rental(t *testing.T, s *Session, begin time.Time) {
	t.Helper()
	write(t, s, begin, ledger.Observed, ledger.Observation{State: "running", StartedAt: begin})
	write(t, s, begin, ledger.Hardware, ledger.HardwareData{GPUs: []string{"A100"}})
	watched := func(from, to time.Duration, util float64) {
		sec := (to - from).Seconds()
		seg := usage.Segment{From: begin.Add(from), To: begin.Add(to), Watched: sec, Known: sec, GPUs: []usage.GPU{{Busy: sec * util / 100, BusyFor: sec, Peak: util}}}
		if util < 5 {
			seg.Idle = sec
		}
		write(t, s, seg.To, ledger.Used, seg)
	}
	watched(0, time.Hour, 90)
	watched(time.Hour, 4*time.Hour, 0)
	write(t, s, begin.Add(6*time.Hour), ledger.Observed, ledger.Observation{State: "stopped"})
}

const taped = box + "tags = [\"paper\", \"x\"]\nbudget = \"100\"\ndisk = { gb = 73, per_gb_month = \"1\" }\ntraffic = { out_per_gb = \"0.5\" }\n"

func TestReview(t *testing.T) {
	t.Parallel()
	now := handAt(noon.Add(10 * time.Hour))
	f := offline(t, now, taped)
	s := session(t, f, "box")
	rental(t, s, noon)
	r, err := f.Review(t.Context(), "box")
	if err != nil || r.Ran != 6*time.Hour || r.Lay != 4*time.Hour || r.Idle != 3*time.Hour || r.Wasted == nil || r.Wasted.String() != "¥24.00" {
		t.Errorf("%+v %v", r, err)
	}
	if r.PerBusy == nil || r.PerBusy.Decimal(2) != "35.56" { // 4 h × ¥8 for 0.9 h of work
		t.Errorf("an hour of work cost %v", r.PerBusy)
	}
	if r.Saving.What != SaveIdle || r.Saving.Amount.String() != "¥24.00" {
		t.Errorf("%+v", r.Saving)
	}
	var text []string
	for _, l := range r.Lines() {
		text = append(text, l.String())
	}
	want := "1×A100|it ran for 6 h 0 min and lay stopped for 4 h 0 min|computing cost ¥48.00, the disk ¥1.00|its GPUs were 22 % busy in the 67 % of that time that were watched|" +
		"an hour of a GPU at work cost ¥35.56|it was idle for 3 h 0 min, which cost ¥24.00|stopping it when it was idle would have saved most: ¥24.00 (rentop guard does that)"
	if got := strings.Join(text, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := f.Review(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), "box") {
		t.Errorf("%v", err)
	}
}

// TestSavings: each kind where it is the greatest, and none where nothing stands out.
func TestSavings(t *testing.T) {
	t.Parallel()
	hours := func(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Hour))) }
	for name, tt := range map[string]struct {
		config string
		events func(*testing.T, *Session)
		want   SavingKind
		amount string
	}{
		"a disk that lay there": {box + "disk = { gb = 730, per_gb_month = \"1\" }\n", func(t *testing.T, s *Session) {
			write(t, s, hours(0), ledger.Observed, ledger.Observation{State: "running", StartedAt: hours(0)})
			write(t, s, hours(1), ledger.Observed, ledger.Observation{State: "stopped"})
		}, SaveStopped, "¥99.00"},
		"many starts": {"[instance.box]\nssh = \"root@192.0.2.1\"\nrate = { per_hour = \"6\", currency = \"CNY\", billed = \"hour\", while_stopped = \"0\" }\n", func(t *testing.T, s *Session) {
			for i := range 5 {
				write(t, s, hours(float64(2*i)), ledger.Observed, ledger.Observation{State: "running", StartedAt: hours(float64(2 * i))})
				write(t, s, hours(float64(2*i)+0.5), ledger.Observed, ledger.Observation{State: "stopped"})
			}
		}, SaveRounding, "¥15.00"},
		"a snapshot left": {box, func(t *testing.T, s *Session) {
			write(t, s, hours(0), ledger.Observed, ledger.Observation{State: "running", StartedAt: hours(0)})
			write(t, s, hours(1), ledger.Observed, ledger.Observation{State: "gone"})
			write(t, s, hours(1), ledger.LeftBehind, ledger.LeftData{Items: []ledger.LeftItem{{Kind: "snapshot", ID: "s1", PerMonth: "7.3", Currency: "CNY"}, {Kind: "ip", ID: "i"}}})
		}, SaveLeft, "¥7.30"},
		"all well": {box, func(t *testing.T, s *Session) {
			write(t, s, hours(0), ledger.Observed, ledger.Observation{State: "running", StartedAt: hours(0)})
		}, SaveNothing, "0.00"},
	} {
		now := handAt(hours(100))
		f := offline(t, now, tt.config)
		tt.events(t, session(t, f, "box"))
		r, err := f.Review(t.Context(), "box")
		if err != nil || r.Saving.What != tt.want || r.Saving.Amount.String() != tt.amount {
			t.Errorf("%s: %q %s, %v", name, r.Saving.What, r.Saving.Amount, err)
		}
	}
}

func TestSpending(t *testing.T) {
	t.Parallel()
	now := handAt(noon.Add(10 * time.Hour))
	f := offline(t, now, taped)
	s := session(t, f, "box")
	rental(t, s, noon)
	if err := s.remember(t.Context(), "pull", "a", "b", moved{wire: 4e9}); err != nil {
		t.Fatal(err)
	}
	write(t, s, now.now().Add(-time.Hour), ledger.LeftBehind, ledger.LeftData{Items: []ledger.LeftItem{{Kind: "ip", ID: "i", PerMonth: "73", Currency: "CNY"}}})
	if err := f.RecordCharge(t.Context(), "box", ledger.ChargeData{From: noon, To: noon.Add(6 * time.Hour), Amount: "50", Currency: "CNY"}, "user"); err != nil {
		t.Fatal(err)
	}
	now.add(time.Second) // what was written just now is before it
	sp, err := f.Spending(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]Sums{"¥48.00": sp.Parts.Compute, "¥2.00": sp.Parts.Traffic, "¥0.10": sp.Parts.Left, "¥1.00": sp.Parts.Disk, "¥51.10": sp.All} {
		if len(got.Amounts) != 1 || got.Unknown != 0 || got.Amounts[0].String() != what {
			t.Errorf("%+v, want %s", got, what)
		}
	}
	a := sp.About[s.uid]
	if a == nil || len(a.Tags) != 2 || a.Provider != "" || len(a.GPUs) != 1 {
		t.Errorf("%+v", a)
	}
	i := sp.Instances[0]
	if i.BudgetLeft == nil || i.BudgetLeft.String() != "¥51.00" || i.Runway == nil || *i.Runway < 509*time.Hour || *i.Runway > 510*time.Hour {
		t.Errorf("budget: %+v", i)
	}
	if len(i.Charges) != 1 || i.Charges[0].Off == nil || i.Charges[0].Off.String() != "¥1.40" { // 50 − (48 + 0.6)
		t.Errorf("charges: %+v", i.Charges)
	}
	end := sp.Month.ByEnd
	if len(end.Amounts) != 1 || end.Amounts[0].Value.Cmp(sp.All.Amounts[0].Value) < 0 {
		t.Errorf("by the month's end %+v", end)
	}
}

// leftTeller is a provider that knows what is left.
type leftTeller struct {
	account
	left []provider.Leftover
	err  error
}

func (l *leftTeller) Leftovers(context.Context, string, provider.State) ([]provider.Leftover, error) {
	return l.left, l.err
}

func TestLeftoversAreAskedAgain(t *testing.T) {
	t.Parallel()
	now := handAt(noon)
	f := offline(t, now, "[instance.box]\nprovider = \"runpod\"\nid = \"pod1\"\n")
	s := session(t, f, "box")
	p := &leftTeller{left: []provider.Leftover{{Kind: "volume", ID: "v", PerMonth: "7.30", Currency: "USD"}}}
	f.opt.Providers = map[string]provider.Provider{"runpod": p}
	write(t, s, now.now(), ledger.Observed, ledger.Observation{State: "gone"})
	if err := f.recordLeft(t.Context(), s.uid, p, "pod1"); err != nil {
		t.Fatal(err)
	}
	now.add(100 * time.Hour)
	p.err = provider.ErrUnsupported
	if n, err := f.RescanLeftovers(t.Context()); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	p.left, p.err = nil, nil
	if n, err := f.RescanLeftovers(t.Context()); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	now.add(100 * time.Hour)
	if n, err := f.RescanLeftovers(t.Context()); n != 0 || err != nil {
		t.Errorf("nothing is left, and %d were asked: %v", n, err)
	}
	sp, err := f.Spending(t.Context(), time.Time{})
	if err != nil || len(sp.Parts.Left.Amounts) != 1 || sp.Parts.Left.Amounts[0].String() != "$1.00" { // 100 h of 730
		t.Errorf("%+v %v", sp.Parts, err)
	}
}

func TestEstimateJob(t *testing.T) {
	t.Parallel()
	now := handAt(noon)
	f := offline(t, now, box+strings.Replace(box, "box", "other", 1))
	s, o := session(t, f, "box"), session(t, f, "other")
	ended := func(s *Session, command string, took time.Duration, code int) {
		t.Helper()
		now.add(time.Hour)
		write(t, s, now.now(), ledger.JobEnded, tmux.Job{ID: now.now().String(), Command: command, State: tmux.Done, ExitCode: &code, StartedAt: now.now().Add(-took), EndedAt: now.now()})
	}
	ask := func(command string) JobEstimate {
		t.Helper()
		past, err := s.PastRuns(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e, _ := past.For(command)
		return e
	}
	if e := ask("python train.py"); e.Runs != 0 {
		t.Errorf("nothing ran: %+v", e)
	}
	ended(o, "python train.py --lr 1", 3*time.Hour, 0)
	ended(s, "python train.py --lr 1", time.Minute, 1) // failed: no guide
	if e := ask("python train.py --lr 2"); e.Runs != 1 || !e.Similar || !e.OtherGPUs || e.Took != 3*time.Hour || e.Cost.String() != "¥24.00" {
		t.Errorf("a like one elsewhere: %+v", e)
	} else if got := e.Text().String(); got != "the only run of a command like it took 3 h 0 min (on other GPUs); here about ¥24.00" {
		t.Error(got)
	}
	write(t, s, now.now(), ledger.Hardware, ledger.HardwareData{GPUs: []string{"A100"}})
	for _, h := range []time.Duration{2 * time.Hour, time.Hour, 90 * time.Minute} {
		ended(s, "python  train.py --lr 1", h, 0)
	}
	if e := ask("python train.py --lr 1 "); e.Runs != 3 || e.Similar || e.OtherGPUs || e.Took != 90*time.Minute || e.Shortest != time.Hour || e.CostMost.String() != "¥16.00" {
		t.Errorf("the same here: %+v", e)
	} else if got := e.Text().String(); got != "the last 3 runs of this command took 1 h 0 min to 2 h 0 min; here about ¥12.00" {
		t.Error(got)
	}
	for command, want := range map[string]string{
		"python train.py --x": "python train.py", "python -m pkg.train --x": "python pkg.train", "torchrun --nproc 8 t.py": "", "ls": "", "cd p && python t.py": "python t.py",
	} {
		if got := stem(command); got != want {
			t.Errorf("%q is like %q, want %q", command, got, want)
		}
	}
}
