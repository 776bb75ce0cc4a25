//go:build linux

package nvml

import (
	"context"
	"fmt"
	"time"

	"rentop/remote/gpu/sample"
)

// Options tune Run and Serve. The zero value is right.
type Options struct {
	Library  string           // path of libnvidia-ml.so.1; "": the usual places
	Interval time.Duration    // between samples; 0: 1 s
	Slow     time.Duration    // between slow readings; 0: 10 s
	Holders  time.Duration    // between readings of the processes; 0: 2 s
	Hang     time.Duration    // how long a call may take before the driver is said to hang; 0: 5 s
	Now      func() time.Time // nil: time.Now

	open opener // nil: the real library
}

func (o Options) filled() Options {
	for _, d := range []struct {
		v     *time.Duration
		usual time.Duration
	}{{&o.Interval, time.Second}, {&o.Slow, 10 * time.Second}, {&o.Holders, 2 * time.Second}, {&o.Hang, 5 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.usual
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.open == nil {
		o.open = openLibrary
	}
	return o
}

// hub gathers what the lanes read into samples. One goroutine owns it.
type hub struct {
	o       Options
	drv     driver
	lanes   []*lane
	work    chan *batch
	batch   *batch // the round's
	reports chan report
	events  chan event
	host    hostReader
	people  people
	waiting chan struct{} // closed when nobody waits for events in the library
	asked   time.Time     // when the library was asked to open, for as long as it has not
}

type event struct {
	card, code int
	at         time.Time
}

// Run reads until ctx ends and calls emit with each sample, from its own
// goroutine. It returns an *Unavailable where there is nothing to read. A call
// into the driver that hangs is left behind when Run returns: only the process's
// end ends it.
func Run(ctx context.Context, o Options, emit func(sample.Sample)) error {
	o = o.filled()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &hub{o: o, work: make(chan *batch, 1), reports: make(chan report, 1), events: make(chan event, 64)}
	h.host.start(ctx)
	defer h.host.files.close()
	h.people.start(ctx)

	type opened struct {
		drv driver
		bad *sample.Problem
	}
	ready := make(chan opened, 1)
	h.asked = o.Now()
	go func() {
		d, bad := o.open(o.Library)
		ready <- opened{d, bad}
	}()
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for h.drv == nil {
		select {
		case r := <-ready:
			if r.bad != nil {
				return &Unavailable{*r.bad}
			}
			h.begin(ctx, r.drv)
		case <-tick.C:
			if since := o.Now().Sub(h.asked); since >= o.Hang {
				s := h.bare(o.Now())
				s.Problem = hung(since)
				emit(s)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer h.end()
	for {
		h.round(ctx, tick.C, emit)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (h *hub) begin(ctx context.Context, d driver) {
	h.drv = d
	cards := d.cards()
	for i, c := range cards[:min(len(cards), sample.MaxGPUs)] {
		l := &lane{i: i, card: c, own: sample.NewGPU(notTold)}
		l.own.Index = i
		l.seen.gpu = l.own
		h.lanes = append(h.lanes, l)
	}
	go worker(ctx, h.work, h.o.Now, h.reports)
	h.waiting = make(chan struct{})
	go func() {
		defer close(h.waiting)
		d.events(ctx, func(card, code int) {
			select {
			case h.events <- event{card, code, h.o.Now()}:
			case <-ctx.Done():
			}
		})
	}()
	go watchKernelLog(ctx, h.o.Slow, func(bus string, code int) {
		for i, l := range h.lanes {
			if sameBus(l.bus(), bus) {
				select {
				case h.events <- event{i, code, h.o.Now()}:
				case <-ctx.Done():
				}
			}
		}
	})
}

// end closes the library unless a call is still inside it: then the end of the
// process does.
func (h *hub) end() {
	select {
	case <-h.waiting:
	default:
		return
	}
	for _, l := range h.lanes {
		if l.out {
			return
		}
	}
	h.drv.close()
}

// round has every lane read that is not stuck, emits the sample when they have
// answered or are stuck, and waits for the next tick. A worker that is in time is
// not watched: the timer alone would cost as much as the reading. One that is late
// at the tick is, so that whatever else hangs is found soon.
func (h *hub) round(ctx context.Context, tick <-chan time.Time, emit func(sample.Sample)) {
	patience := min(h.o.Interval*6/10, 300*time.Millisecond)
	var look <-chan time.Time
	if h.answered() { // a round that takes longer than an interval is waited for
		var tasks []task
		now := h.o.Now()
		for _, l := range h.lanes {
			if !l.out {
				l.out = true
				tasks = append(tasks, task{l, l.due(now, h.o)})
			}
		}
		h.give(tasks)
	} else {
		t := time.NewTicker(patience / 2)
		defer t.Stop()
		look = t.C
	}
	emitted := false
	for {
		if !emitted && h.answered() {
			emitted = true
			emit(h.sample(h.o.Now()))
		}
		select {
		case r := <-h.reports:
			h.take(r)
		case e := <-h.events:
			h.lanes[e.card].note(e)
		case <-look:
			h.replace(ctx, patience)
		case <-tick:
			h.replace(ctx, patience)
			if !emitted {
				emit(h.sample(h.o.Now()))
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// give hands orders to the worker, which is free: the last batch is done or was
// taken away.
func (h *hub) give(tasks []task) {
	if len(tasks) > 0 {
		h.batch = &batch{todo: tasks}
		h.work <- h.batch
	}
}

// replace leaves a worker that is stuck in a call to it, and has the rest read by
// another.
func (h *hub) replace(ctx context.Context, after time.Duration) {
	if h.batch == nil {
		return
	}
	rest, stuck, since := h.batch.takeAway(h.o.Now(), after)
	if stuck == nil {
		return
	}
	h.batch = nil
	if stuck.out { // its report may be on its way
		stuck.busy = since
	}
	go worker(ctx, h.work, h.o.Now, h.reports)
	h.give(rest)
}

// answered says whether every lane has reported or is stuck.
func (h *hub) answered() bool {
	for _, l := range h.lanes {
		if l.out && l.busy.IsZero() {
			return false
		}
	}
	return true
}

// take keeps a report.
func (h *hub) take(r report) {
	l := h.lanes[r.lane]
	if !r.asked.holders {
		r.list, r.why = l.seen.list, l.seen.why
	}
	l.seen, l.out, l.busy = r, false, time.Time{}
	if r.asked.holders {
		h.people.look(r.list)
	}
}

// bare is a sample of the host alone.
func (h *hub) bare(now time.Time) sample.Sample {
	s := sample.Sample{TakenAt: now, Source: "nvml", Host: h.host.read()}
	s.Host.GPUOpen = h.people.opened()
	return s
}

// sample is all that is known now.
func (h *hub) sample(now time.Time) sample.Sample {
	s := h.bare(now)
	s.Driver = h.drv.version()
	var worst time.Duration
	stuck := 0
	for _, l := range h.lanes {
		g, list := l.view(now, h.o.Hang)
		if since := l.stuck(now); since >= h.o.Hang {
			worst, stuck = max(worst, since), stuck+1
		}
		g.ShareHost(h.host.memory())
		shown, hidden := h.people.join(&g, list, l)
		s.Processes = append(s.Processes, shown...)
		s.Hidden = s.Hidden || hidden
		s.GPUs = append(s.GPUs, g)
	}
	if len(s.Processes) > sample.MaxProcesses {
		s.Processes = s.Processes[:sample.MaxProcesses]
	}
	if stuck > 0 && stuck == len(h.lanes) {
		s.Problem = hung(worst)
	}
	if len(h.lanes) == 0 {
		s.Problem = &sample.Problem{What: "no GPU is attached to the instance",
			Cure: "look at the provider's console: it may have been started without a card; stop and start it"}
	}
	return s
}

func hung(since time.Duration) *sample.Problem {
	return &sample.Problem{What: fmt.Sprintf("driver hung, %d s", int(since.Seconds())),
		Cure: "save your work, then restart the instance; look in dmesg for Xid"}
}
