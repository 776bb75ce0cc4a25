package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"rentop/session/billing"
	"rentop/session/phrase"
)

const (
	// sameStart is how far two readings of one start may lie apart.
	sameStart = time.Minute
	// grace is how long an instance may be out of sight without a word about it.
	// A restart within it is counted as running throughout: at most.
	grace = 5 * time.Minute
	// silence makes a state unconfirmed. A live session observes more often.
	silence = 15 * time.Minute
	// oldest is the first year in which an instance can have started.
	oldest = 2000
	// maxNotes bounds Timeline.Notes; the newest are kept.
	maxNotes = 12
)

// Fold gives the time of one instance from its events: the meter. The same
// events give the same timeline in any order and however often they are told.
//
// At is what is billed, Recorded only settles which of two contradicting events was
// written later; that one wins (see settle for clocks that step). Rules:
//
//   - Running with StartedAt counts from StartedAt, however late it was seen,
//     though not from before a stop that was seen, unless the same Box or start
//     shows that it never stopped. Without StartedAt it counts from first contact.
//   - Two sights of one Box, or of one start, or a start that lies before the last
//     sight: it ran all the time between. Without any evidence it is taken to
//     have run as well: a forgotten machine goes on costing.
//   - Another Box, or a start after the last sight: it ended at an unknown time
//     between. That time is Unknown, and its cost with it.
//   - Stopped and gone end the running at their At. Where that is only when somebody
//     looked, the amount is an upper bound and a note says so.
//   - "unknown" is no evidence: what was known goes on.
//   - The first plan holds for the time before it, too; a later one from its At on. A
//     plan that is written later replaces all earlier ones from its At on.
func Fold(events []Event, now time.Time) Timeline {
	facts, sure := settle(events, now)
	f := folder{run: -1, zone: now.Location(), parsed: map[string]Observation{}}
	plans := f.plans(facts)
	if !slices.IsSortedFunc(facts, byTime) {
		slices.SortStableFunc(facts, byTime)
	}
	for i := range facts {
		f.apply(&facts[i])
	}
	return f.timeline(plans, sure)
}

// span is a stretch of one state; it ends where the next begins.
type span struct {
	state    billing.State
	from     time.Time
	newStart bool
	exact    bool // from is a start that was read, not a sight
}

// folder walks over the facts in the order of At.
type folder struct {
	spans    []span
	seen     time.Time   // the last evidence for the present state
	run      int         // index of the last running span; -1: none
	sight    Observation // what identifies that run
	endSeq   int64       // Seq of the event that ended it
	gaps     int         // sights too far apart, with nothing to tell what was between
	gapFrom  time.Time   // the longest of them
	gapTo    time.Time
	notes    []phrase.Text
	zone     *time.Location
	parsed   map[string]Observation // by their text
	lastData json.RawMessage
	last     Observation
}

func (f *folder) state() billing.State {
	if len(f.spans) == 0 {
		return billing.Unknown
	}
	return f.spans[len(f.spans)-1].state
}

func (f *folder) push(s span) {
	f.spans = append(f.spans, s)
	if s.state == billing.Running {
		f.run = len(f.spans) - 1
	}
}

func (f *folder) note(id phrase.ID, args ...any) {
	for i, a := range args {
		if t, ok := a.(time.Time); ok {
			args[i] = t.In(f.zone).Format("2006-01-02 15:04")
		}
	}
	n := phrase.Say(id, args...)
	same := func(m phrase.Text) bool { return m.String() == n.String() }
	if !slices.ContainsFunc(f.notes, same) {
		f.notes = append(f.notes, n)
	}
}

func (f *folder) apply(e *fact) {
	switch e.Kind {
	case Observed:
		o, err := f.observation(e.Data)
		if err != nil {
			f.note("note.event", e.Seq, err)
			return
		}
		switch s := billing.State(o.State); s {
		case billing.Running:
			f.running(e, o)
		case billing.Stopped, billing.Hibernated, billing.Gone:
			f.ended(e, s)
		}
	case FirstSeen:
		var d FirstSeenData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			f.note("note.event", e.Seq, err)
			return
		}
		f.running(e, Observation{Box: d.Box, StartedAt: StartedAt(d.BoxStartedAt, d.InstanceClock, e.at)})
	case Removed:
		if s := f.state(); held(s) {
			f.note("note.left."+phrase.ID(s), e.at)
			f.push(span{state: billing.Gone, from: e.at})
			f.seen, f.endSeq = e.at, e.Seq
		}
	}
}

// observation reads an Observation; most say the same as one before.
func (f *folder) observation(data json.RawMessage) (Observation, error) {
	if bytes.Equal(data, f.lastData) && data != nil {
		return f.last, nil
	}
	o, ok := f.parsed[string(data)]
	if !ok {
		if err := json.Unmarshal(data, &o); err != nil {
			return o, err
		}
		f.parsed[string(data)] = o
	}
	f.lastData, f.last = data, o
	return o, nil
}

// running takes in a sight of a running instance.
func (f *folder) running(e *fact, o Observation) {
	if o.StartedAt.After(e.at) {
		o.StartedAt = e.at // its clock is ahead of ours
	}
	if o.StartedAt.Year() < oldest {
		o.StartedAt = time.Time{} // a clock that was never set: not readable
	}
	switch f.state() {
	case billing.Running:
		f.stillRunning(e, o)
	case billing.Stopped, billing.Hibernated, billing.Gone:
		if !f.runningAgain(e, o) {
			return
		}
	default:
		s := span{state: billing.Running, from: e.at, newStart: true}
		if !o.StartedAt.IsZero() {
			s.from, s.exact = o.StartedAt, true
		}
		f.push(s)
		f.sight = o
	}
	f.saw(e.at)
	f.identify(o)
}

func (f *folder) saw(at time.Time) {
	if at.After(f.seen) {
		f.seen = at
	}
}

// identify keeps the best identity of the run: a later sight without one takes
// nothing away.
func (f *folder) identify(o Observation) {
	if o.Box != "" {
		f.sight.Box = o.Box
	}
	if !o.StartedAt.IsZero() {
		f.sight.StartedAt = o.StartedAt
	}
}

// sameRun says whether a sight shows the last run itself, and whether it shows
// another; neither where it cannot tell.
func (f *folder) sameRun(o Observation) (same, other bool) {
	if o.Box != "" && f.sight.Box != "" {
		return o.Box == f.sight.Box, o.Box != f.sight.Box
	}
	if !o.StartedAt.IsZero() && !f.sight.StartedAt.IsZero() {
		apart := o.StartedAt.Sub(f.sight.StartedAt).Abs()
		return apart <= sameStart, false
	}
	return false, false
}

// stillRunning takes in a sight of what was last seen running.
func (f *folder) stillRunning(e *fact, o Observation) {
	same, other := f.sameRun(o)
	restarted := other || !same && o.StartedAt.After(f.seen.Add(sameStart))
	if !restarted {
		if !same && o.StartedAt.IsZero() && e.at.Sub(f.seen) > silence {
			f.gaps++
			if e.at.Sub(f.seen) > f.gapTo.Sub(f.gapFrom) {
				f.gapFrom, f.gapTo = f.seen, e.at
			}
		}
		f.extendBack(e, o)
		return
	}
	start, exact := e.at, false
	if o.StartedAt.After(f.seen) {
		start, exact = o.StartedAt, true
	}
	if start.Sub(f.seen) > grace {
		f.note("note.restarted.between", f.seen, start)
		f.push(span{state: billing.Unknown, from: f.seen})
	} else {
		f.note("note.restarted.before", start)
	}
	f.push(span{state: billing.Running, from: start, newStart: true, exact: exact})
	f.sight = o
}

// extendBack moves the present run's beginning to a start that was read only
// now, or that is earlier: a provider's word is exact, a box's is within a minute.
func (f *folder) extendBack(e *fact, o Observation) {
	s := &f.spans[f.run]
	if o.StartedAt.IsZero() || !o.StartedAt.Before(s.from) ||
		s.exact && e.Source != "provider" && s.from.Sub(o.StartedAt) <= sameStart {
		return
	}
	from := o.StartedAt
	if f.run > 0 {
		before := f.spans[f.run-1]
		if before.state != billing.Unknown {
			return // what was seen before it stays
		}
		from = latest(before.from, from)
	}
	s.from, s.exact = from, true
}

// runningAgain takes in a sight of what was last known to be stopped or gone. It
// is false where the stop was written later and therefore stays the last word.
func (f *folder) runningAgain(e *fact, o Observation) bool {
	end := f.spans[len(f.spans)-1]
	same, other := f.sameRun(o)
	if f.run >= 0 && (same || f.endSeq > e.Seq && !other && !o.StartedAt.After(end.from)) {
		f.spans = f.spans[:f.run+1]
		if f.endSeq > e.Seq { // it stopped, only later than was told
			f.push(span{state: end.state, from: e.at})
			f.saw(e.at)
			return false
		}
		f.note("note.said."+phrase.ID(end.state), end.from, e.at)
		return true
	}
	if f.endSeq > e.Seq && f.seen.After(e.at) { // so it did stop, after this sight
		start := e.at
		if !o.StartedAt.IsZero() {
			start = latest(o.StartedAt, end.from)
		}
		f.push(span{state: billing.Running, from: start, newStart: true, exact: true})
		f.push(span{state: end.state, from: e.at})
		f.sight = o
		return false
	}
	start, exact := e.at, false
	if !o.StartedAt.IsZero() {
		start, exact = latest(o.StartedAt, f.seen), true
		if start.After(e.at) {
			start = e.at
		}
	} else if e.at.Sub(f.seen) > grace {
		f.note("note.started.between", f.seen, e.at)
		f.push(span{state: billing.Unknown, from: f.seen})
	}
	f.push(span{state: billing.Running, from: start, newStart: true, exact: exact})
	f.sight = o
	return true
}

// held says whether an instance in that state is still rented.
func held(s billing.State) bool {
	return s == billing.Running || s == billing.Stopped || s == billing.Hibernated
}

// ended takes in a sight of a stopped, hibernated or gone instance.
func (f *folder) ended(e *fact, s billing.State) {
	was := f.state()
	if was == billing.Running {
		told := e.recorded.Sub(e.at) > live
		if !told && e.at.Sub(f.seen) > grace {
			f.note("note.until."+phrase.ID(s), f.seen, e.at)
		}
	}
	if was != s {
		f.push(span{state: s, from: e.at})
		f.endSeq = e.Seq
	}
	f.saw(e.at)
	if e.Source == "provider" {
		f.saw(e.recorded) // its state at that moment, too
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
