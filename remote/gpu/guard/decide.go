package guard

// Deciding: rules over what is known at a moment. Nothing here reads a clock, a file
// or a process.

import (
	"fmt"
	"math"
	"time"

	"rentop/remote/gpu/sample"
)

// Moment is what is known at one instant.
type Moment struct {
	Mono   time.Duration // since boot
	Wall   time.Time
	Sample *sample.Sample // nil: none is fresh
	None   string         // why there is none
	Jobs   Jobs
	Notice Notice
}

// Jobs are the person's, as their files tell them.
type Jobs struct {
	Err     string            // they could not be read
	Running []string          // IDs of those that run
	Ended   map[string]string // how a job ended, by ID: "exit code 0", "lost"
	Moves   bool              // rentop moves files at the moment
}

// runs says whether a job of that ID does.
func (j *Jobs) runs(id string) bool {
	for _, r := range j.Running {
		if r == id {
			return true
		}
	}
	return false
}

// Watch decides over time. Its methods are for one goroutine.
type Watch struct {
	armed []Armed
	mono  time.Duration // at arming
	wall  time.Time
	last  time.Duration // of the last Step; 0: none
	rests bool          // nothing works
	since time.Duration // when that began
}

// NewWatch arms the rules at a moment.
func NewWatch(rules []Rule, mono time.Duration, wall time.Time) (*Watch, error) {
	w := &Watch{mono: mono, wall: wall}
	for _, r := range rules {
		a := Armed{Rule: r}
		switch r.Kind {
		case At, Lease:
			a.Mono = mono + time.Duration(r.Seconds)*time.Second
		case Budget:
			left, err := r.left()
			if err != nil {
				return nil, err
			}
			a.Mono = mono + left
		}
		w.armed = append(w.armed, a)
	}
	return w, nil
}

// Resume is the watch of a guard that was killed and started again within the same
// boot. What it had seen of idleness is not known any more: it counts anew.
func Resume(s *State) *Watch {
	return &Watch{armed: s.Armed, mono: s.ArmedMono, wall: s.ArmedAt}
}

// Refuse says why a rule cannot be armed at this moment; soon is true where a little
// later it may be.
func (w *Watch) Refuse(m *Moment) (why Say, soon, refused bool) {
	for _, r := range w.armed {
		switch r.Kind {
		case Idle:
			switch {
			case m.Sample == nil:
				return say("nosample", m.None), true, true
			case m.Jobs.Err != "":
				return say("nojobs", m.Jobs.Err), false, true
			}
			if why, ok := unread(m.Sample); !ok {
				return why, m.Sample.Source != hostOnly, true
			}
		case After:
			how, ended := m.Jobs.Ended[r.Job]
			switch {
			case m.Jobs.Err != "":
				return say("nojobs", m.Jobs.Err), false, true
			case ended:
				return say("jobended", r.Job, how), false, true
			case !m.Jobs.runs(r.Job):
				return say("nojob", r.Job), false, true
			}
		case Reclaim:
			switch {
			case !m.Notice.Asked:
				return say("noanswer", "not asked yet"), true, true
			case m.Notice.Err != "":
				return say("noanswer", m.Notice.Err), true, true
			}
		}
	}
	return Say{}, false, false
}

// hostOnly is the source of samples where nothing else can be read.
const hostOnly = "host only"

const (
	gap     = 30 * time.Second // without a step, nothing is known of that time
	stepped = time.Minute      // by which the clocks part before it is told
)

// Step looks at the rules, in their order.
func (w *Watch) Step(m *Moment) []Status {
	out := make([]Status, 0, len(w.armed))
	missed := w.last != 0 && (m.Mono-w.last > gap || m.Mono < w.last)
	w.last = m.Mono
	for i := range w.armed {
		a := &w.armed[i]
		st := Status{Kind: a.Kind, Job: a.Job}
		switch a.Kind {
		case Idle:
			w.idle(a, m, missed, &st)
		case After:
			w.after(a, m, &st)
		case Reclaim:
			reclaim(m, &st)
		default:
			w.deadline(a, m, &st)
		}
		out = append(out, st)
	}
	return out
}

func (st *Status) count(left time.Duration, m *Moment) {
	n := int64(math.Ceil(left.Seconds()))
	st.Met = n <= 0
	n = max(n, 0)
	st.Left, st.Due = &n, m.Wall.Add(time.Duration(n)*time.Second).UTC().Truncate(time.Second)
}

// idle counts while every GPU is known to rest and nothing of the person's runs.
// What is not known counts as work.
func (w *Watch) idle(a *Armed, m *Moment, missed bool, st *Status) {
	st.Total = a.Seconds
	busy, rests := working(m, a.Below)
	if rests && (!w.rests || missed) {
		w.since = m.Mono
	}
	if w.rests = rests; !rests {
		st.Why = busy
		return
	}
	st.count(time.Duration(a.Seconds)*time.Second-(m.Mono-w.since), m)
}

// working says what works, or cannot be known to rest.
func working(m *Moment, below float64) (why Say, resting bool) {
	switch {
	case m.Sample == nil:
		return say("nosample", m.None), false
	case m.Jobs.Err != "":
		return say("nojobs", m.Jobs.Err), false
	}
	if why, ok := unread(m.Sample); !ok {
		return why, false
	}
	for i := range m.Sample.GPUs {
		g := &m.Sample.GPUs[i]
		if rests, _ := g.Rests(below); rests {
			continue
		}
		if u, ok := g.Util.Get(); ok {
			return say("busy", g.Index, fmt.Sprintf("%.0f", u)), false
		}
		held, _, _ := g.PartsHold()
		return say("held", g.Index, fmt.Sprintf("%.1f GiB", held/(1<<30))), false
	}
	switch {
	case len(m.Jobs.Running) > 0:
		return say("job", m.Jobs.Running[0]), false
	case m.Jobs.Moves:
		return say("moves"), false
	}
	return Say{}, true
}

// unread says why the use of a GPU is not known.
func unread(s *sample.Sample) (Say, bool) {
	if len(s.GPUs) == 0 {
		why := "no GPU can be read there"
		if s.Problem != nil {
			why = s.Problem.What
		}
		return say("nosample", why), false
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if _, known := g.Rests(0); !known {
			why := g.Util.Why
			switch {
			case g.Problem != "":
				why = g.Problem
			case g.MIG == "Enabled":
				why = "it is split by MIG, and neither what its parts do nor what they hold is told: arm by a time, a job or a budget"
			}
			return say("noutil", g.Index, why), false
		}
	}
	return Say{}, true
}

func (w *Watch) after(a *Armed, m *Moment, st *Status) {
	how, ended := m.Jobs.Ended[a.Job]
	switch {
	case m.Jobs.Err != "":
		st.Why, st.Doubt = say("job", a.Job), say("nojobs", m.Jobs.Err)
	case ended:
		st.Met, st.Why = true, say("jobended", a.Job, how)
	case m.Jobs.runs(a.Job):
		st.Why = say("job", a.Job)
	default: // its folder is gone: nobody can say that it ended
		st.Doubt = say("nojob", a.Job)
	}
}

// reclaim is met once it was announced.
func reclaim(m *Moment, st *Status) {
	switch {
	case m.Notice.Given:
		st.Met, st.Due, st.Why = true, m.Notice.At, say("reclaim", m.Notice.At.Format("15:04:05 UTC"))
	case m.Notice.Err != "":
		st.Doubt = say("noanswer", m.Notice.Err)
	}
}

// announced says whether a machine whose guard watches for it is to be taken back.
func (w *Watch) announced(m *Moment) (st Status, is bool) {
	for _, a := range w.armed {
		if a.Kind == Reclaim && m.Notice.Given {
			st = Status{Kind: Reclaim}
			reclaim(m, &st)
			return st, true
		}
	}
	return st, false
}

// deadline goes by the time since boot: a clock that is set makes nothing come
// sooner. Where the wall clock has gone elsewhere, that is told.
func (w *Watch) deadline(a *Armed, m *Moment, st *Status) {
	st.count(a.Mono-m.Mono, m)
	if off := m.Wall.Sub(w.wall) - (m.Mono - w.mono); off.Abs() >= stepped {
		st.Doubt = say("clock", off.Round(time.Second))
	}
	if st.Met && a.Kind == Budget {
		st.Why = say("spent", a.Limit, a.Currency)
	}
}
