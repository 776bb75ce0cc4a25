package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"time"

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
	Include   []string // patterns as in .gitignore that win over the ignore files
	Exclude   []string // likewise; Include wins over these
	Manifest  string   // with Verify: a file for sha256sum -c, written once all is proven; "" for none
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
		Delete: t.Delete, Force: t.Force, Verify: t.Verify, Checksum: t.Checksum, Include: t.Include, Exclude: t.Exclude, Hashes: s.f.hashes, Now: s.f.opt.Now,
	}, nil
}

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
	served(tr, err)
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
	g := &gauge{now: s.f.opt.Now, limited: s.limit.Rate() > 0}
	defer func() { s.keepRate(spec.Direction, g) }()
	show := report
	report = func(p sync.Progress) {
		if g.see(p); show != nil {
			show(p)
		}
	}
	var res *sync.Result
	proof := manifestFile{path: t.Manifest}
	defer proof.drop()
	err = s.again(ctx, func() error {
		if err := proof.begin(&spec); err != nil {
			return err
		}
		tr, err := s.openTransport(ctx)
		if err != nil {
			return err
		}
		defer tr.Close()
		defer hangUpWith(ctx, tr)()
		part, err := sync.Transfer(ctx, tr, spec, confirm, report)
		res = added(res, part)
		served(tr, err)
		return orCut(tr, err)
	})
	if err == nil && res.Verified {
		err = proof.keep()
	}
	if err == nil && !s.f.opt.Live {
		_, _, _ = s.connected(ctx) // a command looks at the instance meanwhile; the meter wants what it found
	}
	if res != nil {
		var m moved
		m.add(res)
		if rerr := s.remember(context.WithoutCancel(ctx), string(spec.Direction), spec.Local, spec.Remote, m); err == nil {
			err = rerr
		}
	}
	if err != nil {
		return res, fmt.Errorf("%s: %s: %w", s.cfg().Name, t.Direction, err)
	}
	return res, nil
}

// hangUpWith ends a transport's connection when ctx ends: what is on its way then
// would have to pass a slow link first.
func hangUpWith(ctx context.Context, t sync.Transport) (stop func()) {
	c, ok := t.(*carriage)
	if !ok {
		return func() {}
	}
	end := context.AfterFunc(ctx, func() { c.conn.Close() })
	return func() { end() }
}

// pushed is the record of what is known to exist on both sides.
func (s *Session) pushed() (*sync.Record, error) {
	return sync.OpenRecord(filepath.Join(s.f.opt.Dirs.State, "records", s.uid+".jsonl"))
}

// orCut says that err came from a connection that ended, so that the transfer
// goes on over a new one.
func orCut(t sync.Transport, err error) error {
	c, ok := t.(*carriage)
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
	moved := after.Files
	after.Files += before.Files
	after.Sent = append(before.Sent, after.Sent...)
	after.Deleted = append(before.Deleted, after.Deleted...)
	after.Bytes += before.Bytes
	after.Wire += before.Wire
	after.Reused += before.Reused
	after.Took += before.Took
	if after.Kept == 0 && moved == 0 { // cut before anything moved: what was kept still is
		after.Kept = before.Kept
	}
	return after
}

// moved is what one or more results come to, for the ledger.
type moved struct {
	files, failed, bytes, wire int64
	took                       time.Duration
}

func (m *moved) add(r *sync.Result) {
	if r == nil {
		return
	}
	m.files += r.Files
	m.failed += r.FailedAll
	m.bytes += r.Bytes
	m.wire += r.Wire
	m.took += r.Took
}

// remember writes what was moved to the ledger.
func (s *Session) remember(ctx context.Context, direction, here, there string, m moved) error {
	_ = s.f.hashes.Save() // what it lacks is read again
	data := map[string]any{
		"direction": direction, "local": here, "remote": there,
		"files": m.files, "failed": m.failed, "bytes": m.bytes, "wire": m.wire, "seconds": m.took.Seconds(),
	}
	if price := s.perGB(direction); price != nil { // what it costs is decided now, whatever is written later
		data["per_gb"], data["currency"] = price.RatString(), s.plan().Currency
	}
	_, err := s.f.ledger.Append(ctx, ledger.NewEvent(ledger.Transferred, s.uid, "rentop", data))
	return err
}

// perGB is the price of traffic that goes that way; nil where it is not known.
func (s *Session) perGB(direction string) *big.Rat {
	in, out, err := s.cfg().Traffic.Prices()
	switch {
	case err != nil:
		return nil
	case direction == string(sync.Pull) || direction == copyFrom:
		return out
	}
	return in
}

// UndoTransfer puts back what the last transfer into a folder on the instance
// removed; "" is the first configured pair's. See sync.Undo.
func (s *Session) UndoTransfer(ctx context.Context, remotePath string) (restored []string, err error) {
	if remotePath == "" {
		if len(s.cfg().Sync) == 0 {
			return nil, fmt.Errorf("%s: in which folder on the instance? name it", s.cfg().Name)
		}
		remotePath = s.cfg().Sync[0].Remote
	}
	tr, err := s.openTransport(ctx)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	restored, err = sync.Undo(ctx, tr, remotePath)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.cfg().Name, err)
	}
	return restored, err
}
