package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	stdsync "sync"

	"rentop/remote"
	"rentop/session/ledger"
	"rentop/sync"
)

// TransferSpec is a transfer as a person asks for it.
type TransferSpec struct {
	Direction sync.Direction
	Local     string // "" takes the first configured pair
	Remote    string
	Delete    bool     // remove at the destination what the source does not have
	Force     bool     // delete although it is more than half of what is there
	Verify    bool     // re-read everything on both sides
	Checksum  bool     // distrust size and time
	Shown     []string // with Delete: the paths that the person saw go. StartTransfer removes no other
}

func (s *Session) spec(t TransferSpec) (sync.Spec, error) {
	if t.Local == "" && t.Remote == "" {
		if len(s.cfg().Sync) == 0 {
			return sync.Spec{}, fmt.Errorf(`%s: which folders? give them, or set sync = [{ local = ".", remote = "~/project" }] for it`, s.cfg().Name)
		}
		t.Local, t.Remote = s.cfg().Sync[0].Local, s.cfg().Sync[0].Remote
	}
	if t.Local == "" || t.Remote == "" {
		return sync.Spec{}, fmt.Errorf("%s: a transfer needs both a local and a remote path", s.cfg().Name)
	}
	local, err := filepath.Abs(expandHome(t.Local))
	if err != nil {
		return sync.Spec{}, err
	}
	return sync.Spec{
		Direction: t.Direction, Local: local, Remote: t.Remote,
		Delete: t.Delete, Force: t.Force, Verify: t.Verify, Checksum: t.Checksum, Now: s.f.opt.Now,
	}, nil
}

// openTransport opens a connection for bulk and the best transport over it.
func (s *Session) openTransport(ctx context.Context) (sync.Transport, error) {
	conn, facts, err := s.dialBulk(ctx)
	if err != nil {
		return nil, err
	}
	tr, err := sync.Open(ctx, conn, facts)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	return closing{tr, conn}, nil
}

// closing is a transport that owns its connection.
type closing struct {
	sync.Transport
	conn *remote.Conn
}

func (c closing) Close() error { return errors.Join(c.Transport.Close(), c.conn.Close()) }

// PlanTransfer says what a transfer would do.
func (s *Session) PlanTransfer(ctx context.Context, t TransferSpec) (*sync.Plan, error) {
	spec, err := s.spec(t)
	if err != nil {
		return nil, err
	}
	tr, err := s.openTransport(ctx)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	plan, err := sync.MakePlan(ctx, tr, spec, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	return plan, nil
}

// Transfer moves files and returns when they are there. A cut is survived: what
// has arrived is not sent again.
func (s *Session) Transfer(ctx context.Context, t TransferSpec, confirm func(*sync.Plan) error, report func(sync.Progress)) (*sync.Result, error) {
	spec, err := s.spec(t)
	if err != nil {
		return nil, err
	}
	if spec.Record, err = s.pushed(); err != nil {
		return nil, err
	}
	var res *sync.Result
	err = s.again(ctx, func() error {
		tr, err := s.openTransport(ctx)
		if err != nil {
			return err
		}
		defer tr.Close()
		plan, err := sync.MakePlan(ctx, tr, spec, report)
		if err != nil {
			return orCut(tr, err)
		}
		if confirm != nil {
			if err := confirm(plan); err != nil {
				return err
			}
		}
		part, err := sync.Execute(ctx, tr, plan, report)
		res = added(res, part)
		return orCut(tr, err)
	})
	if res != nil {
		if rerr := s.remember(ctx, spec, res); err == nil {
			err = rerr
		}
	}
	if err != nil {
		return res, fmt.Errorf("%s: %s: %w", s.cfg().Name, t.Direction, err)
	}
	return res, nil
}

// pushed is the record of what is known to exist on both sides.
func (s *Session) pushed() (*sync.Record, error) {
	return sync.OpenRecord(filepath.Join(s.f.opt.Dirs.State, "records", s.uid+".jsonl"))
}

// orCut says that err came from a connection that ended, so that the transfer
// goes on over a new one.
func orCut(t sync.Transport, err error) error {
	c, ok := t.(closing)
	if err == nil || !ok || c.conn.Err() == nil || errors.Is(err, remote.ErrCut) {
		return err
	}
	return fmt.Errorf("%w: %w", remote.ErrCut, err)
}

// added is a result that began before a cut and the one after it as one.
func added(before, after *sync.Result) *sync.Result {
	if before == nil || after == nil {
		return cmp.Or(after, before)
	}
	moved := len(after.Sent)
	after.Sent = append(before.Sent, after.Sent...)
	after.Deleted = append(before.Deleted, after.Deleted...)
	after.Bytes += before.Bytes
	after.Wire += before.Wire
	after.Took += before.Took
	if after.Kept == 0 && moved == 0 { // cut before anything moved: what was kept still is
		after.Kept = before.Kept
	}
	return after
}

// remember writes what was moved to the ledger.
func (s *Session) remember(ctx context.Context, spec sync.Spec, res *sync.Result) error {
	_, err := s.f.ledger.Append(ctx, ledger.NewEvent(ledger.Transferred, s.uid, "rentop", map[string]any{
		"direction": spec.Direction, "local": spec.Local, "remote": spec.Remote,
		"files": len(res.Sent), "failed": len(res.Failed), "bytes": res.Bytes, "wire": res.Wire, "seconds": res.Took.Seconds(),
	}))
	return err
}

// transferQueue runs the screen's transfers of one session, one after another.
type transferQueue struct {
	s       *Session
	mu      stdsync.Mutex // protects what follows
	next    int
	all     []*TransferView
	cancels map[int]context.CancelFunc
	wake    chan struct{}
	started bool
	specs   map[int]TransferSpec
}

func (q *transferQueue) init(s *Session) {
	q.s, q.cancels, q.specs = s, map[int]context.CancelFunc{}, map[int]TransferSpec{}
	q.wake = make(chan struct{}, 1)
}

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
	q.specs[id] = t
	q.all = append(q.all, &TransferView{ID: id, Direction: t.Direction, Local: spec.Local, Remote: spec.Remote, Progress: sync.Progress{Stage: "queued", Left: -1}})
	if n := len(q.all); n > 20 {
		q.all = slices.DeleteFunc(q.all, func(v *TransferView) bool { return len(q.all) > 20 && v.ended() && v.ID < id-20 })
	}
	begin := !q.started
	q.started = true
	q.mu.Unlock()
	if begin {
		s.owned.Go(q.run)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	s.touchTransfers()
	return id, nil
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

func (v *TransferView) ended() bool { return v.Result != nil || v.Err != "" || v.Cancelled }

// CancelTransfer stops a transfer; what has arrived stays, and the next run goes on there.
func (s *Session) CancelTransfer(id int) {
	q := &s.queue
	q.mu.Lock()
	if cancel := q.cancels[id]; cancel != nil {
		cancel()
	}
	for _, v := range q.all {
		if v.ID == id && !v.ended() {
			v.Cancelled = true
		}
	}
	q.mu.Unlock()
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

func (q *transferQueue) pick() (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, v := range q.all {
		if !v.ended() {
			return v.ID, true
		}
	}
	return 0, false
}

func (q *transferQueue) transfer(id int) {
	ctx, cancel := context.WithCancel(q.s.ctx)
	defer cancel()
	defer q.s.f.work()()
	q.mu.Lock()
	spec := q.specs[id]
	q.cancels[id] = cancel
	q.mu.Unlock()
	res, err := q.s.Transfer(ctx, spec, spec.onlyShown, func(p sync.Progress) {
		q.change(id, func(v *TransferView) { v.Progress = p })
	})
	q.change(id, func(v *TransferView) {
		v.Result = res
		if err != nil && !v.Cancelled {
			v.Err = remote.Clean(err.Error())
		}
		if res == nil && err == nil {
			v.Err = "ended without a result"
		}
	})
	q.mu.Lock()
	delete(q.cancels, id)
	delete(q.specs, id)
	q.mu.Unlock()
	if q.s.ctx.Err() == nil {
		q.s.refreshSaved(q.s.ctx)
	}
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
