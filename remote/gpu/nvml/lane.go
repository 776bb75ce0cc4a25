//go:build linux

package nvml

import (
	"fmt"
	"slices"
	"time"

	"rentop/remote/gpu/sample"
)

// lane is one GPU and what the hub knows of it. The hub owns every field but card
// and own, which are the reader's from the order to the report.
type lane struct {
	i       int
	card    card
	own     sample.GPU
	begun   bool      // own holds what never changes
	out     bool      // ordered, not reported
	busy    time.Time // since when its reader is stuck in it; zero: it is not
	seen    report    // the last complete reading
	xids    []sample.XID
	slowAt  time.Time
	holdAt  time.Time
	surplus int // readings in a row that found unexplained memory
}

// order says which tiers are due beside the fast one.
type order struct{ slow, holders bool }

// report is one reading. It is the hub's once sent.
type report struct {
	lane  int
	gpu   sample.GPU
	list  []holder
	why   string // why there is no list
	asked order
	fresh bool // the card has been read at all
}

// due is what is to be read at now.
func (l *lane) due(now time.Time, o Options) order {
	var w order
	if !l.seen.fresh {
		// The slow tier comes later: the first sample is waited for. It comes for one
		// GPU after the other, because it takes long.
		w.holders, l.holdAt = true, now
		l.slowAt = now.Add(o.Interval + time.Duration(l.i%8)*o.Slow/80 - o.Slow)
		return w
	}
	if w.slow = now.Sub(l.slowAt) >= o.Slow; w.slow {
		l.slowAt = now
	}
	if w.holders = now.Sub(l.holdAt) >= o.Holders; w.holders {
		l.holdAt = now
	}
	return w
}

// read reads the tiers that are due.
func (l *lane) read(w order) report {
	if !l.begun {
		l.card.fixed(&l.own)
		l.begun = true
	}
	l.own.Problem = ""
	l.card.fast(&l.own)
	if w.slow {
		l.card.slow(&l.own)
	}
	r := report{lane: l.i, asked: w, fresh: true}
	if w.holders {
		r.list, r.why = l.card.holders()
	}
	r.gpu = l.own
	r.gpu.Throttle = slices.Clone(l.own.Throttle)
	r.gpu.Instances = slices.Clone(l.own.Instances)
	return r
}

func (l *lane) bus() string { return l.seen.gpu.PCIBus }

// stuck is how long the card has been in one reading.
func (l *lane) stuck(now time.Time) time.Duration {
	if l.busy.IsZero() {
		return 0
	}
	return now.Sub(l.busy)
}

// view is the GPU as it may be shown: where a reading has hung for longer than a
// driver may take, none of the last figures is passed off as new.
func (l *lane) view(now time.Time, hang time.Duration) (sample.GPU, []holder) {
	g := l.seen.gpu
	g.XIDs = slices.Clone(l.xids)
	since := l.stuck(now)
	if since < hang {
		return g, l.seen.list
	}
	for _, v := range g.Cells() {
		*v = sample.Value{State: sample.Failed, Why: "no answer"}
	}
	g.Throttle, g.ThrottleHot, g.ThrottleKnown, g.PState, g.Instances = nil, false, false, "", nil
	g.Problem = fmt.Sprintf("driver hung, %d s: save your work, then restart the instance", int(since.Seconds()))
	return g, nil
}

// note keeps an error event. The library and the kernel log may both tell it.
func (l *lane) note(e event) {
	for _, x := range l.xids {
		if d := e.at.Sub(x.At); x.Code == e.code && d < 10*time.Second && d > -10*time.Second {
			return
		}
	}
	l.xids = append(l.xids, sample.XID{Code: e.code, At: e.at})
	if n := len(l.xids) - sample.MaxXIDs; n > 0 {
		l.xids = slices.Delete(l.xids, 0, n)
	}
}
