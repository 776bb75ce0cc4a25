package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"

	"rentop/remote"
	"rentop/session/environment"
	"rentop/session/release"
	"rentop/sync"
	"rentop/sync/tree"
)

// This file carries a move's files from instance to instance, through this machine's
// memory, and proves them.

// moveFile is a file that is on To after it was carried.
type moveFile struct {
	root string // of its path there
	release.Found
}

// plan looks at both sides. It changes nothing of the person's.
func (m *mover) plan(ctx context.Context, away error) error {
	p := &m.out.Plan
	p.Job = m.job
	if m.log.did[moveStarting] {
		p.Paths = m.log.data.Paths
		return nil // the files are proven there, and the job's by now
	}
	if away != nil {
		return m.planSaved(ctx, away)
	}
	var err error
	goesOn := m.log.under && !m.log.data.Saved
	if p.Paths = m.log.data.Paths; !goesOn || len(m.spec.Paths) > 0 {
		if p.Paths, err = m.paths(ctx); err != nil {
			return err
		}
	}
	if goesOn && !slices.Equal(p.Paths, m.log.data.Paths) {
		return fmt.Errorf("%w: it carries other paths, the first is %s; run it again without --path, or give it up with --anew", ErrUnfinishedMove, remote.Short(m.log.data.Paths[0].From, 120))
	}
	m.log.data.Paths, m.log.data.Saved = p.Paths, false // of one that began from a snapshot, From answers now
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	there := newRoom(t)
	for _, mp := range p.Paths {
		c := m.copySpec(mp)
		plan, err := m.f.PlanCopy(ctx, c)
		if err != nil {
			return err
		}
		o := c.Outline(plan)
		p.Files += int64(o.New + o.Changed)
		p.Bytes += plan.Bytes
		p.Took = p.Took.and(o.Estimate)
		differ, _, _, err := m.differing(ctx, plan, mp)
		if err != nil {
			return err
		}
		p.Differ = append(p.Differ, differ...)
		there.add(ctx, plan.Remote(), sent(plan))
	}
	if len(p.Differ) > 0 && !m.spec.Overwrite {
		return &OccupiedError{m.b.cfg().Name, p.Differ, false}
	}
	if !m.log.did[moveBegun] { // of one that was cut, parts may take the room already
		if err := there.lacks(m.b.cfg().Name); err != nil {
			return err
		}
	}
	p.Env, p.EnvErr = m.compareEnvs(ctx)
	return nil
}

// sent are the files that a plan brings.
func sent(plan *sync.Plan) []sync.Entry {
	var out []sync.Entry
	for _, a := range plan.Actions {
		if a.Op == sync.Send && a.Entry.Mode.IsRegular() {
			out = append(out, a.Entry)
		}
	}
	return out
}

// and is the estimate of two things, one after the other; what is not known of one is
// not known of both.
func (e Estimate) and(b Estimate) Estimate {
	if e == (Estimate{}) {
		return b
	}
	out := Estimate{Rate: b.Rate}
	if e.Took != nil && b.Took != nil {
		sum := *e.Took + *b.Took
		out.Took = &sum
	}
	if e.Traffic != nil && b.Traffic != nil {
		if sum, err := e.Traffic.Add(*b.Traffic); err == nil {
			out.Traffic = &sum
		}
	}
	return out
}

// compareEnvs reads both environments as they are, at the same time.
func (m *mover) compareEnvs(ctx context.Context) (environment.Report, error) {
	home, err := remote.Output(ctx, reachable{m.a}, `printf '%s' "$HOME"`)
	if err != nil {
		return environment.Report{}, err
	}
	var was map[string][]byte
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		was, _, err = release.CaptureEnv(gctx, reachable{m.a})
		return err
	})
	var is captured
	g.Go(func() (err error) {
		is, err = m.b.capture(gctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return environment.Report{}, err
	}
	return m.b.compareWith(ctx, is, environment.Files(was), string(home), "move-from-"+plainName(m.a.Name()))
}

// plainName is a name for a folder there.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

// paths are the folders that belong to the work, from outermost, each with its place
// on To: in the home there what is in the home here.
func (m *mover) paths(ctx context.Context) ([]MovePath, error) {
	named := m.spec.Paths
	usual := len(named) == 0
	if usual {
		if m.job != nil {
			named = append(named, m.job.Dir)
		}
		for _, pair := range m.a.cfg().Sync {
			named = append(named, pair.Remote)
		}
		for _, a := range m.a.cfg().Artifacts {
			base, pattern := doublestar.SplitPattern(path.Clean(a.Path))
			if !strings.ContainsAny(pattern, "*?[{") {
				base = a.Path
			}
			named = append(named, base)
		}
	}
	from, to, end, err := CopySpec{From: m.a, To: m.b}.openRelay(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	homeA, _, err := from.Resolve(ctx, "~")
	if err != nil {
		return nil, err
	}
	homeB, _, err := to.Resolve(ctx, "~")
	if err != nil {
		return nil, err
	}
	var out []MovePath
	for _, p := range named {
		abs, _, err := from.Resolve(ctx, p)
		switch {
		case usual && (p == "" || p == "." || abs == homeA || abs == "/"):
			m.out.Plan.Missing = append(m.out.Plan.Missing, orHome(p)+": the whole home is not carried unasked: name its folders with --path")
			continue
		case usual && errors.Is(err, fs.ErrNotExist):
			m.out.Plan.Missing = append(m.out.Plan.Missing, p+": not there")
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", remote.Short(p, 120), err)
		case abs == "/":
			return nil, errors.New("/ is a whole machine: name folders")
		}
		mp := MovePath{abs, abs}
		if tree.Under(abs, homeA) && homeA != "/" {
			mp.To = path.Join(homeB, strings.TrimPrefix(abs, homeA))
		}
		out = append(out, mp)
	}
	slices.SortFunc(out, func(a, b MovePath) int { return tree.Compare(a.From, b.From) })
	var outer []MovePath
	for _, mp := range out {
		if n := len(outer); n == 0 || !tree.Under(mp.From, outer[n-1].From) {
			outer = append(outer, mp)
		}
	}
	if len(outer) == 0 {
		return nil, errors.New("which files belong to it? Name folders with --path, or set sync and artifacts in its config")
	}
	return outer, nil
}

func orHome(p string) string {
	if p == "" {
		return "~"
	}
	return p
}

// copySpec distrusts sizes and times: content decides.
func (m *mover) copySpec(mp MovePath) CopySpec {
	return CopySpec{From: m.a, To: m.b, FromPath: mp.From, ToPath: mp.To, Checksum: true}
}

// differing are the things on To that a plan would replace and that this move did not
// bring: taken, and of them those that can be put aside. older are files of which that is
// not known, since an earlier rentop carried: they are older than what comes, as what a
// move brought is, for a file keeps its time. Clocks may be wrong.
func (m *mover) differing(ctx context.Context, plan *sync.Plan, mp MovePath) (taken []Occupied, things, older []sync.Entry, err error) {
	times := map[string]time.Time{}
	var paths []string
	why := map[string]string{}
	for _, a := range plan.Actions {
		switch {
		case a.Op == sync.Delete, (a.Op == sync.Send || a.Op == sync.Link) && a.Why != "new":
			if why[a.Entry.Path] == "" {
				paths = append(paths, a.Entry.Path)
				why[a.Entry.Path] = a.Why
			}
			if a.Op != sync.Delete {
				times[a.Entry.Path] = a.Entry.ModTime
			}
		}
	}
	if len(paths) == 0 {
		return nil, nil, nil, nil
	}
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	defer t.Close()
	err = t.Stat(ctx, plan.Remote(), paths, func(now sync.Entry) error {
		comes, same := times[now.Path]
		if same && now.Mode.IsRegular() && m.brought(path.Join(plan.Remote(), now.Path), now) {
			return nil
		}
		if m.out.Plan.Resumed && same && now.Mode.IsRegular() && !now.ModTime.After(comes) {
			older = append(older, now)
			return nil
		}
		taken = append(taken, Occupied{path.Join(plan.Remote(), now.Path), why[now.Path]})
		if !now.Mode.IsDir() {
			things = append(things, now)
		}
		return nil
	})
	slices.SortFunc(taken, func(a, b Occupied) int { return strings.Compare(a.Path, b.Path) })
	return taken, things, older, err
}

// version is what a file is told apart by from one of its name that came later.
type version struct {
	size int64
	time time.Time
}

// brought says whether this rentop set out to bring a file just as it is there.
func (m *mover) brought(full string, now sync.Entry) bool {
	return slices.ContainsFunc(m.sent[full], func(v version) bool { return v.size == now.Size && tree.SameTime(v.time, now.ModTime) })
}

// carry copies all paths. What From's job goes on writing may fail, and is told.
func (m *mover) carry(ctx context.Context) error {
	m.stage(MoveCarries)
	m.out.Changing = nil
	for _, mp := range m.log.data.Paths {
		res, err := m.f.Copy(ctx, m.copySpec(mp), func(plan *sync.Plan) error { return m.makeWay(ctx, plan, mp) }, m.report)
		if res != nil {
			m.out.Files += res.Files
			m.out.Bytes += res.Bytes
		}
		if err != nil {
			return err
		}
		if err := m.failures(mp, res.Failed); err != nil {
			return err
		}
	}
	return nil
}

// failures sorts what did not make it: what is being written, and what is an error.
func (m *mover) failures(mp MovePath, failed []sync.Failure) error {
	for _, f := range failed {
		p := path.Join(mp.To, f.Path)
		if m.job != nil && running(*m.job) && (errors.Is(f.Err, sync.ErrChanged) || errors.Is(f.Err, sync.ErrDiffers)) {
			m.out.Changing = append(m.out.Changing, p)
			continue
		}
		return fmt.Errorf("%s not arrive, the first is %s: %w. Mend that and run it again: only what is missing is sent", didNot(len(failed)), remote.Short(p, 120), f.Err)
	}
	return nil
}

func didNot(n int) string {
	if n == 1 {
		return "one file did"
	}
	return fmt.Sprintf("%d files did", n)
}

// makeWay refuses what differs there, or moves it to the trash, and remembers what comes.
func (m *mover) makeWay(ctx context.Context, plan *sync.Plan, mp MovePath) error {
	taken, things, older, err := m.differing(ctx, plan, mp)
	if err != nil {
		return err
	}
	if len(taken) > 0 && (!m.spec.Overwrite || len(things) < len(taken)) { // a folder in the way is never removed
		return &OccupiedError{m.b.cfg().Name, taken, false}
	}
	if things = append(things, older...); len(things) > 0 {
		if err := m.aside(ctx, plan, things); err != nil {
			return err
		}
	}
	comes := sent(plan)
	if err := m.keepSeen(plan.Remote(), comes); err != nil {
		return err
	}
	for _, e := range comes {
		full := path.Join(plan.Remote(), e.Path)
		m.sent[full] = append(m.sent[full], version{e.Size, e.ModTime})
	}
	return nil
}

// aside moves things to the trash there.
func (m *mover) aside(ctx context.Context, plan *sync.Plan, things []sync.Entry) error {
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	dir, err := sync.Aside(ctx, t, plan.Remote(), things, m.f.opt.Now())
	if dir != "" {
		m.out.Trash = append(m.out.Trash, path.Join(plan.Remote(), dir))
	}
	plan.Actions = slices.DeleteFunc(plan.Actions, func(a sync.Action) bool { // they are away
		return a.Op == sync.Delete && slices.ContainsFunc(things, func(e sync.Entry) bool { return e.Path == a.Entry.Path })
	})
	return err
}

// prove reads every file on both sides once more. What differs is an error, but for
// what a job that is kept has written since.
func (m *mover) prove(ctx context.Context) error {
	m.stage(MoveProves)
	m.out.Proven, m.files = 0, nil
	keeps := m.job != nil && running(*m.job)
	for _, mp := range m.log.data.Paths {
		plan, err := m.f.PlanCopy(ctx, m.copySpec(mp))
		if err != nil {
			return err
		}
		differ := map[string]bool{}
		for _, a := range plan.Actions {
			switch p := path.Join(plan.Remote(), a.Entry.Path); {
			case a.Op == sync.Skip: // a socket, a pipe
			case a.Op != sync.Send && a.Op != sync.Link, !keeps && a.Op == sync.Attr:
			case keeps:
				differ[a.Entry.Path] = true
				if !slices.Contains(m.out.Changing, p) {
					m.out.Changing = append(m.out.Changing, p)
				}
			default:
				return fmt.Errorf("read on both sides again, %s is not equal (%s); run it again", remote.Short(p, 120), a.Why)
			}
		}
		m.out.Proven += plan.Unchanged
		if err := m.listThere(ctx, plan.Remote(), mp, differ); err != nil {
			return err
		}
	}
	return nil
}

// listThere remembers what is on To now, for the search of checkpoints.
func (m *mover) listThere(ctx context.Context, root string, mp MovePath, differ map[string]bool) error {
	t, err := m.b.openPlain(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	take := func(e sync.Entry) error {
		if e.Mode.IsRegular() && !differ[e.Path] && !tree.OursIn(e.Path) {
			m.files = append(m.files, moveFile{root, release.Found{Path: path.Join(root, e.Path), Rel: e.Path, Size: e.Size, ModTime: e.ModTime}})
		}
		return nil
	}
	if root != mp.To { // a file that was named itself
		return t.Stat(ctx, root, []string{path.Base(mp.To)}, take)
	}
	return t.List(ctx, root, take)
}
