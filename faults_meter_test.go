package main_test

// The meter is right to the cent, also for the hours when rentop was not running.

import (
	"encoding/json"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/session/billing"
	"rentop/session/ledger"
)

// told is an event of the past.
type told struct {
	ago     time.Duration
	o       ledger.Observation
	started time.Duration // how long ago it had started, where that was read
}

func TestFaultsMeter(t *testing.T) {
	t.Parallel()
	running, stopped, gone := string(billing.Running), string(billing.Stopped), string(billing.Gone)
	// At 36 an hour a second is a cent. While stopped it is 1.80 an hour.
	for _, c := range []struct {
		name string
		told []told
		run  time.Duration // billed as running, until an end that is told
		idle time.Duration // billed as stopped, likewise
		open string        // which of the two goes on
	}{
		{"off for hours", []told{{5 * time.Hour, ledger.Observation{State: running, Box: "b/1"}, 0}}, 5 * time.Hour, 0, running},
		{"began before it was seen", []told{{3 * time.Hour, ledger.Observation{State: running, Box: "b/1"}, 26 * time.Hour}}, 26 * time.Hour, 0, running},
		{"stopped while rentop was off", []told{{9 * time.Hour, ledger.Observation{State: running}, 0}, {2 * time.Hour, ledger.Observation{State: stopped}, 0}}, 7 * time.Hour, 2 * time.Hour, stopped},
		{"gone while rentop was off", []told{{50 * time.Hour, ledger.Observation{State: running}, 0}, {2 * time.Hour, ledger.Observation{State: gone}, 0}}, 48 * time.Hour, 0, gone},
		{"told twice, out of order", []told{{2 * time.Hour, ledger.Observation{State: stopped}, 0}, {9 * time.Hour, ledger.Observation{State: running}, 0}, {9 * time.Hour, ledger.Observation{State: running}, 0}}, 7 * time.Hour, 2 * time.Hour, stopped},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newMeterRig(t)
			at := time.Now().UTC().Truncate(time.Second)
			r.tell(at, c.told)
			cents := func(now time.Time) int64 {
				sum := int64(c.run/time.Second)*100 + int64(c.idle/time.Second)*5 // hundredths of a cent
				switch since := int64(now.Sub(at) / time.Second); c.open {
				case running:
					sum += 100 * since
				case stopped:
					sum += 5 * since
				}
				return (sum + 50) / 100
			}
			least := cents(time.Now())
			for what, got := range map[string]string{"ls": r.listed(), "cost": r.spent()} {
				most := cents(time.Now().Add(time.Second))
				v, ok := new(big.Rat).SetString(got)
				if !ok {
					t.Fatalf("%s says %q", what, got)
				}
				if v.Cmp(big.NewRat(least, 100)) < 0 || v.Cmp(big.NewRat(most, 100)) > 0 {
					t.Errorf("%s says %s, the bill is %d to %d cents", what, got, least, most)
				}
			}
		})
	}
}

// newMeterRig is a rig without a server: the meter needs none.
func newMeterRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, bin: build(t), dir: t.TempDir()}
	r.env = append(r.cmd().Environ(), "HOME="+r.dir, "RENTOP_CONFIG_DIR="+filepath.Join(r.dir, "config"), "RENTOP_STATE_DIR="+filepath.Join(r.dir, "state"))
	r.run("add", "ssh root@192.0.2.1", "--name", "box", "--price", "36/h", "--currency", "CNY", "--while-stopped", "1.80")
	r.run("ls", "--offline")
	return r
}

// tell writes what another rentop had seen.
func (r *rig) tell(now time.Time, list []told) {
	r.t.Helper()
	l, err := ledger.Open(filepath.Join(r.dir, "state", "ledger.db"), time.Now)
	if err != nil {
		r.t.Fatal(err)
	}
	defer l.Close()
	uids, err := l.Ensure(r.t.Context(), "box")
	if err != nil {
		r.t.Fatal(err)
	}
	uid := uids["box"]
	for _, x := range list {
		if x.started > 0 {
			x.o.StartedAt = now.Add(-x.started)
		}
		e := ledger.NewEvent(ledger.Observed, uid, "provider", x.o)
		e.At = now.Add(-x.ago)
		if _, err := l.Append(r.t.Context(), e); err != nil {
			r.t.Fatal(err)
		}
	}
}

// listed is the cost in ls --json, as it is written.
func (r *rig) listed() string {
	var list []struct{ Cost *json.Number }
	r.runJSON(&list, "ls", "--offline", "--json")
	if len(list) != 1 || list[0].Cost == nil {
		return "?"
	}
	return list[0].Cost.String()
}

// spent is the total of cost --json.
func (r *rig) spent() string {
	var c struct {
		Total []struct{ Amount *json.Number }
	}
	r.runJSON(&c, "cost", "--json")
	if len(c.Total) != 1 || c.Total[0].Amount == nil {
		return "?"
	}
	return c.Total[0].Amount.String()
}

// TestFaultsMeterKilled9: what a rentop saw before it was killed is billed, and
// the time after it.
func TestFaultsMeterKilled9(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	p := r.sitDown(100, 30)
	p.sees(20*time.Second, "● live")
	p.signal("KILL")
	p.sees(5*time.Second, "ended with 137")
	l, err := ledger.Open(filepath.Join(r.dir, "state", "ledger.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
	uids, err := l.Ensure(t.Context(), "box")
	if err != nil {
		t.Fatal(err)
	}
	uid := uids["box"]
	// A rate from now on and two readings, a measured time apart.
	read := func() (int64, time.Time) {
		before := time.Now()
		events, err := l.Events(t.Context(), ledger.Filter{Instance: uid})
		if err != nil {
			t.Fatal(err)
		}
		bill, err := ledger.Fold(events, before).Bill(before)
		if err != nil || bill.Total == nil {
			t.Fatal(bill, err)
		}
		cents := new(big.Rat).Mul(bill.Total.Value, big.NewRat(100, 1))
		f, _ := cents.Float64()
		return int64(f), before
	}
	c1, t1 := read()
	v, ok := new(big.Rat).SetString(r.listed())
	t2 := time.Now()
	if !ok {
		t.Fatal("the cost is not known after a kill")
	}
	f, _ := new(big.Rat).Mul(v, big.NewRat(100, 1)).Float64()
	if got, most := int64(f), c1+int64(t2.Sub(t1)/time.Second)+2; got < c1 || got > most {
		t.Errorf("ls says %d cents, the bill is %d to %d", got, c1, most)
	}
}
