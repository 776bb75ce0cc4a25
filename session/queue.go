package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	stdsync "sync"

	"rentop/remote"
	"rentop/sync"
)

// transferQueue runs the screen's transfers of one session, one after another in
// the order of all. One that is paused lets the next go first.
type transferQueue struct {
	s       *Session
	mu      stdsync.Mutex // protects what follows
	next    int
	all     []*TransferView
	queued  map[int]*queued // of those that have not ended
	wake    chan struct{}
	started bool

	recount  func(context.Context) // what exists only on the instance
	counting bool                  // recount runs
	changed  bool                  // and must run once more
}

// queued is what belongs to a transfer and is not shown.
type queued struct {
	spec TransferSpec
	stop context.CancelCauseFunc // nil: it does not run
	part *sync.Result            // of the runs before a pause
}

// errPaused ends a run that goes on later.
var errPaused = errors.New("paused")

func (q *transferQueue) init(s *Session) {
	q.s, q.queued = s, map[int]*queued{}
	q.wake = make(chan struct{}, 1)
	q.recount = s.refreshSaved
}

// kept is how many transfers a view shows at most; those that have not ended all stay.
const kept = 20

// StartTransfer queues a transfer and returns at once; View shows how it goes.
// A transfer that would delete runs only with the list confirmed before: the
// screen shows PlanTransfer's, and a plan that removes more by then is refused.
func (s *Session) StartTransfer(t TransferSpec) (int, error) {
	spec, err := s.spec(t)
	if err != nil {
		return 0, err
	}
	q := &s.queue
	q.mu.Lock()
	q.next++
	id := q.next
	q.queued[id] = &queued{spec: t}
	q.all = append(q.all, &TransferView{ID: id, Direction: t.Direction, Local: spec.Local, Remote: spec.Remote, Progress: sync.Progress{Stage: "queued", Left: -1}})
	q.all = slices.DeleteFunc(q.all, func(v *TransferView) bool { return v.ended() && v.ID <= id-kept })
	begin := !q.started
	q.started = true
	q.mu.Unlock()
	if begin {
		s.owned.Go(q.run)
	}
	q.stir()
	return id, nil
}

// stir has the queue look again, and the view show it.
func (q *transferQueue) stir() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
	q.s.touchTransfers()
}

// onlyShown refuses a plan that removes what the person has not seen: the source
// may have changed since, or while the connection was away.
func (t TransferSpec) onlyShown(p *sync.Plan) error {
	if !t.Delete {
		return nil
	}
	seen := map[string]bool{}
	for _, path := range t.Shown {
		seen[path] = true
	}
	for _, path := range p.Removes() {
		if !seen[path] {
			return fmt.Errorf("%s would be deleted by now and was not in the list that you confirmed; nothing more was done, look at the plan again", remote.Clean(path))
		}
	}
	return nil
}

func (v TransferView) ended() bool { return v.Result != nil || v.Err != "" || v.Cancelled }

// find is the transfer of that id as long as it has not ended; q.mu is held.
func (q *transferQueue) find(id int) (*TransferView, *queued) {
	for _, v := range q.all {
		if v.ID == id && !v.ended() {
			return v, q.queued[id]
		}
	}
	return nil, nil
}

// CancelTransfer stops a transfer; what has arrived stays, and the next run goes on there.
func (s *Session) CancelTransfer(id int) {
	q := &s.queue
	q.mu.Lock()
	if v, w := q.find(id); v != nil {
		v.Cancelled, v.Paused = true, false
		if w.stop != nil {
			w.stop(context.Canceled)
		} else {
			delete(q.queued, id)
		}
	}
	q.mu.Unlock()
	q.stir()
}

// PauseTransfer stops a transfer until ResumeTransfer; the next one goes first.
// What has arrived is not moved again, also of a file that is half there.
func (s *Session) PauseTransfer(id int) {
	q := &s.queue
	q.mu.Lock()
	if v, w := q.find(id); v != nil && !v.Paused {
		v.Paused = true
		if w.stop != nil {
			w.stop(errPaused)
		}
	}
	q.mu.Unlock()
	q.stir()
}

// ResumeTransfer puts a paused transfer back in its place in the queue.
func (s *Session) ResumeTransfer(id int) {
	q := &s.queue
	q.mu.Lock()
	if v, w := q.find(id); v != nil && v.Paused {
		v.Paused = false
		if w.stop == nil {
			v.Progress.Stage = "queued"
		}
	}
	q.mu.Unlock()
	q.stir()
}

// MoveTransfer moves a transfer that does not run towards the front of the queue,
// or its end. It says whether there was somewhere to move to.
func (s *Session) MoveTransfer(id int, forward bool) bool {
	q := &s.queue
	q.mu.Lock()
	defer q.stir()
	defer q.mu.Unlock()
	var waiting []int // places in all
	at := -1
	for i, v := range q.all {
		if w := q.queued[v.ID]; !v.ended() && w != nil && w.stop == nil {
			if v.ID == id {
				at = len(waiting)
			}
			waiting = append(waiting, i)
		}
	}
	to := at + 1
	if forward {
		to = at - 1
	}
	if at < 0 || to < 0 || to >= len(waiting) {
		return false
	}
	a, b := waiting[at], waiting[to]
	q.all[a], q.all[b] = q.all[b], q.all[a]
	return true
}

// LimitTransfers sets the rate for this instance's transfers in bytes a second
// each way, also for what is moving now; 0 is no limit but the config's.
func (s *Session) LimitTransfers(bytesPerSecond int64) {
	s.limit.Set(bytesPerSecond)
	s.touchTransfers()
}

func (s *Session) touchTransfers() { s.send(func(*state) {}) } // progress comes ten times a second at most

func (q *transferQueue) run() {
	for {
		id, ok := q.pick()
		if !ok {
			select {
			case <-q.wake:
				continue
			case <-q.s.ctx.Done():
				return
			}
		}
		q.transfer(id)
	}
}

// pick is the first transfer that may run.
func (q *transferQueue) pick() (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, v := range q.all {
		if !v.ended() && !v.Paused {
			return v.ID, true
		}
	}
	return 0, false
}

// busy says whether any transfer has not ended.
func (q *transferQueue) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued) > 0
}

func (q *transferQueue) transfer(id int) {
	ctx, stop := context.WithCancelCause(q.s.ctx)
	defer stop(nil)
	defer q.s.f.work()()
	q.mu.Lock()
	v, w := q.find(id)
	if v == nil || v.Paused { // since it was picked
		q.mu.Unlock()
		return
	}
	w.stop = stop
	q.mu.Unlock()
	res, err := q.s.Transfer(ctx, w.spec, w.spec.confirm(), func(p sync.Progress) {
		q.change(id, func(v *TransferView) { v.Progress = p })
	})
	q.mu.Lock()
	w.stop = nil
	w.part = added(w.part, res)
	if q.s.ctx.Err() == nil && context.Cause(ctx) == errPaused && err != nil && !v.Cancelled {
		if !v.Paused { // resumed while it was stopping
			v.Progress.Stage = "queued"
		}
		v.Progress.Rate, v.Progress.Left = 0, -1
		q.mu.Unlock()
		q.stir()
		return
	}
	v.Paused = false
	v.Result = w.part
	if err != nil && !v.Cancelled {
		v.Err = remote.Clean(err.Error())
	}
	if v.Result == nil && err == nil {
		v.Err = "ended without a result"
	}
	delete(q.queued, id)
	q.mu.Unlock()
	q.s.touchTransfers()
	if q.s.ctx.Err() == nil {
		q.counted()
	}
}

// counted looks beside the next transfers at what exists only on the instance: that
// reads all of its files, which may take minutes.
func (q *transferQueue) counted() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.changed = true; q.counting {
		return
	}
	q.counting = true
	q.s.owned.Go(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for q.changed && q.s.ctx.Err() == nil {
			q.changed = false
			q.mu.Unlock()
			q.recount(q.s.ctx)
			q.mu.Lock()
		}
		q.counting = false
	})
}

// confirm is what looks at the plan before anything is done; nil where no plan has
// to be looked at, so that the first byte need not wait for it.
func (t TransferSpec) confirm() func(*sync.Plan) error {
	if !t.Delete {
		return nil
	}
	return t.onlyShown
}

func (q *transferQueue) change(id int, f func(*TransferView)) {
	q.mu.Lock()
	for _, v := range q.all {
		if v.ID == id {
			f(v)
		}
	}
	q.mu.Unlock()
	q.s.touchTransfers()
}

func (q *transferQueue) list() []TransferView {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]TransferView, len(q.all))
	for i, v := range q.all {
		out[i] = *v
	}
	return out
}
