package guard

// The keeper: what happens from the moment at which a rule is met. Each step is in
// the state and the journal, on the disk, before it begins; so a guard that is killed
// and started again knows what it must not do twice.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"rentop/remote/clean"
)

const (
	firstAgain = 10 * time.Second // after a failure; then twice as long each time
	lastAgain  = 10 * time.Minute
	settleFor  = 5 * time.Minute // an instance that is to stop may take so long
	actFor     = time.Hour       // an action may take
	stopFor    = 2 * time.Minute
)

// script is one of the person's or the provider's.
type script struct {
	name, text string
	limit      time.Duration
	env        []string
}

// keeper owns the state. Its methods are for one goroutine.
type keeper struct {
	st    State
	watch *Watch
	next  time.Duration // the next attempt, or the end of Stopping
	// The world, which tests replace.
	run     func(context.Context, script) (out string, err error)
	persist func(*State, bool) error // with true it is on the disk when it returns
	note    func(Entry) error
	now     func() (time.Duration, time.Time)
	kick    chan result // of a script that ended
	seq     int         // of the script that runs
	cancel  context.CancelFunc
}

type result struct {
	seq  int
	save bool
	out  string
	err  error
}

// tell writes journal and state. A full disk keeps neither, and must not keep the
// instance from being stopped: then that is told, and it goes on.
func (k *keeper) tell(e Entry) {
	_, e.At = k.now()
	e.ID, e.At = k.st.Spec.ID, e.At.UTC()
	err := k.note(e)
	if err2 := k.save(true); err == nil {
		err = err2
	}
	k.fault("the guard cannot write on its disk", err)
}

// fault keeps what is wrong with the guard itself, or that it is over.
func (k *keeper) fault(what string, err error) {
	switch {
	case err != nil:
		k.st.Fault = what + ": " + clean.Short(err.Error(), 200)
	case len(k.st.Fault) >= len(what) && k.st.Fault[:len(what)] == what:
		k.st.Fault = ""
	}
}

// told is what a reader must hear of at once, unlike what counts each second.
func (k *keeper) told() string {
	var b strings.Builder
	fmt.Fprint(&b, k.st.Phase, k.st.Source, k.st.Fault)
	for _, r := range k.st.Rules {
		fmt.Fprint(&b, r.Met, r.Why.Key, r.Doubt.Key)
	}
	return b.String()
}

func (k *keeper) save(sync bool) error {
	_, k.st.Now = k.now()
	k.st.Now = k.st.Now.UTC()
	return k.persist(&k.st, sync)
}

// arm looks whether every rule can be armed; it is asked again until it says that it
// is over.
func (k *keeper) arm(m *Moment, late bool) (over bool) {
	why, soon, refused := k.watch.Refuse(m)
	switch {
	case refused && soon && !late:
		return false
	case refused:
		k.st.Phase, k.st.Why = Refused, why
		k.tell(Entry{What: toldRefused, Error: why.Key})
		return true
	}
	k.st.Phase, k.st.Why, k.st.Armed = Watching, Say{}, k.watch.armed
	k.st.Rules = k.watch.Step(m)
	k.tell(Entry{What: toldArmed})
	return true
}

// step looks at the rules, or goes on with the one that was met.
func (k *keeper) step(ctx context.Context, m *Moment) {
	if k.st.Phase == Done || k.st.Phase == Waiting || k.st.Phase == Unsure {
		// Another rule was met before, and the machine lives: what it wrote since is saved.
		if r, is := k.watch.announced(m); is && k.st.Trip.Kind != Reclaim {
			k.trip(ctx, m, r)
			return
		}
	}
	switch k.st.Phase {
	case Watching:
		k.st.Rules = k.watch.Step(m)
		for _, r := range k.st.Rules {
			if r.Met {
				k.trip(ctx, m, r)
				return
			}
		}
	case Waiting:
		if m.Mono >= k.next {
			k.act(ctx)
		}
	case Stopping:
		if m.Mono >= k.next {
			k.tell(Entry{What: toldAlive, Rule: k.st.Trip.Kind, Attempt: k.st.Trip.Acts})
			k.failed("the action succeeded, and the instance still runs " + settleFor.String() + " later")
		}
	}
}

func (k *keeper) trip(ctx context.Context, m *Moment, r Status) {
	k.st.Trip = &Trip{Kind: r.Kind, At: m.Wall.UTC(), Why: r.Why}
	if r.Kind == Reclaim {
		k.st.Trip.Due = r.Due
	}
	k.tell(Entry{What: toldTrip, Rule: r.Kind})
	k.act(ctx)
}

// act begins the save or, where there is none left to do, the action.
func (k *keeper) act(ctx context.Context) {
	t := k.st.Trip
	t.Next = time.Time{}
	s := script{name: "act", text: k.st.Spec.Then, limit: actFor}
	if k.st.Spec.Stops {
		s.limit = stopFor
	}
	save := k.st.Spec.Save != "" && !t.Saved
	switch {
	case save:
		s = script{name: "save", text: k.st.Spec.Save, limit: time.Duration(k.st.Spec.SaveSeconds) * time.Second}
		t.Saves++
		k.st.Phase = Saving
		k.tell(Entry{What: toldSave, Rule: t.Kind, Attempt: t.Saves})
	case s.text == "" || t.Kind == Reclaim: // it ends without our doing
		k.st.Phase = Done
		k.tell(Entry{What: toldActed, Rule: t.Kind})
		return
	default:
		t.Acts++
		k.st.Phase = Acting
		k.tell(Entry{What: toldAct, Rule: t.Kind, Attempt: t.Acts})
	}
	s.env = []string{"RENTOP_GUARD=" + string(t.Kind)}
	ctx, k.cancel = context.WithCancel(ctx)
	k.seq++
	seq := k.seq
	go func() { // ends with its script, whose end is the limit or ctx
		out, err := k.run(ctx, s)
		select {
		case k.kick <- result{seq, save, out, err}:
		case <-ctx.Done():
		}
	}()
}

// drop ends a script that runs; what it comes to is not waited for.
func (k *keeper) drop() {
	if k.seq++; k.cancel != nil {
		k.cancel()
	}
}

// ended takes what a script came to.
func (k *keeper) ended(ctx context.Context, r result) {
	if r.seq != k.seq {
		return // of a spec before
	}
	k.cancel()
	t := k.st.Trip
	e := Entry{What: toldActed, Rule: t.Kind, Attempt: t.Acts, Out: clean.Short(r.out, maxOut)}
	if r.save {
		e.What, e.Attempt = toldSaved, t.Saves
	}
	if r.err != nil {
		e.Error = clean.Short(r.err.Error(), maxArg)
		k.failed(e.Error + tailOf(r.out))
		k.tell(e)
		return
	}
	t.Error = ""
	switch {
	case r.save:
		t.Saved = true
		k.tell(e)
		k.act(ctx)
		return
	case k.st.Spec.Stops:
		mono, _ := k.now()
		k.st.Phase, k.next = Stopping, mono+settleFor
	default:
		k.st.Phase = Done
	}
	k.tell(e)
}

func tailOf(out string) string {
	if out == "" {
		return ""
	}
	return ": " + clean.Short(out, 160)
}

// failed has it tried again, later each time.
func (k *keeper) failed(why string) {
	t := k.st.Trip
	wait := firstAgain
	for n := max(t.Saves+t.Acts, 1); n > 1 && wait < lastAgain; n-- {
		wait *= 2
	}
	if wait = min(wait, lastAgain); t.Kind == Reclaim { // there are minutes
		wait = noticeEvery
	}
	mono, wall := k.now()
	k.next = mono + wait
	k.st.Phase, t.Error, t.Next = Waiting, clean.Short(why, maxArg), wall.Add(wait).UTC()
	k.fault("the guard cannot write on its disk", k.save(true))
}

// resume takes over the state of a guard that was killed. A save may be done twice;
// an action that may have been done is not, unless to be alive proves that it failed.
func (k *keeper) resume() {
	k.watch = Resume(&k.st)
	k.tell(Entry{What: toldAgain})
	mono, _ := k.now()
	switch k.st.Phase {
	case Saving, Waiting:
		k.failed("the guard was killed meanwhile")
	case Stopping:
		k.next = mono + settleFor
	case Acting:
		if k.st.Spec.Stops {
			k.st.Phase, k.next = Stopping, mono+settleFor
			k.fault("the guard cannot write on its disk", k.save(true))
			return
		}
		k.st.Phase = Unsure
		k.tell(Entry{What: toldUnsure, Rule: k.st.Trip.Kind, Attempt: k.st.Trip.Acts})
	}
}
