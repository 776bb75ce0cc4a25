package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session/environment"
	"rentop/session/lock"
	"rentop/sync"
)

// This file moves work from one instance to another: its files first, proven there,
// then its job, started there once. Each step is in the ledger before and after it, so
// that a move that was killed goes on where it stood. Nothing is torn down.

// MoveSpec is a move as a person asks for it.
type MoveSpec struct {
	From, To  *Session
	Job       string   // "": the one that runs, else the newest
	NoJob     bool     // files only
	Paths     []string // on From; none: the job's folder, those of sync, the artifacts
	Command   string   // instead of the job's own; {checkpoint} is the newest complete one
	StopJob   bool     // end it on From, once its files are proven on To
	Keep      bool     // let it run on there
	Overwrite bool     // what differs on To goes to the trash there
	Skip      bool     // where From is gone: what differs on To stays as it is
	Install   bool     // run pip's and conda's commands on To first
	Anew      bool     // give an unfinished move up, and begin anew
}

// MovePlan is what a move would do.
type MovePlan struct {
	Resumed bool // it goes on with one that an earlier rentop left
	Job     *tmux.Job
	Paths   []MovePath
	Missing []string  // of the usual paths: not on From
	Away    bool      // From cannot be reached: what was saved of it is taken
	Saved   *Snapshot // of it, where there is one
	Sources []SavedSource
	// Of an instance that is gone: this move had ended its job there.
	JobEnded bool
	Files    int64 // to bring
	Bytes    int64
	Took     Estimate
	Differ   []Occupied // on To; they are replaced only with Overwrite
	// Of an instance that is gone: files that this move saw there (Seen of them), and that
	// are on To in an older version, or nowhere. Paths are those on To.
	Seen      int
	Older     []string
	Lost      []string
	LostBytes int64
	Env       environment.Report // what To lacks
	EnvErr    error
}

// MovePath is a folder or file with its place on the other instance, both absolute.
type MovePath struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// MoveStage is how far a move is.
type MoveStage string

const (
	MoveLooks    MoveStage = "looks"
	MoveCarries  MoveStage = "carries"
	MoveProves   MoveStage = "proves"
	MoveStops    MoveStage = "stops" // the job on From
	MoveInstalls MoveStage = "installs"
	MoveStarts   MoveStage = "starts"
)

// Moved is what a move did.
type Moved struct {
	Plan       MovePlan
	Files      int64
	Bytes      int64
	Proven     int64
	Trash      []string // on To
	Changing   []string // that From's job went on writing: they are there as they were, or not
	Stopped    bool     // the job on From has ended
	Checkpoint string   // on To; "" where there is none that is complete
	Passed     []string // newer ones that are not complete, with why
	Job        *tmux.Job
	NoEnv      bool // the job's own variables are not known: From cannot be reached
	Installed  *Installed
}

// ErrStillRuns refuses a move that does not say what becomes of the job.
var ErrStillRuns = errors.New("it still runs there: --stop-job ends it once its files are proven on the other, --keep lets both run")

// ErrUnfinishedMove is wrapped where another move of the instance is not finished.
var ErrUnfinishedMove = errors.New("an earlier move is not finished")

// ErrAlreadyMoved is wrapped where the job was moved before.
var ErrAlreadyMoved = errors.New("it was moved already")

// Move carries work from one instance to another and starts its job there. confirm
// sees the plan before anything is changed. It may be run again after any end.
func (f *Fleet) Move(ctx context.Context, spec MoveSpec, confirm func(MovePlan) error, stage func(MoveStage), report func(sync.Progress)) (Moved, error) {
	m := &mover{f: f, spec: spec, a: spec.From, b: spec.To, stage: stage, report: report, sent: map[string][]version{}}
	err := m.begin(ctx, confirm)
	if err != nil {
		err = fmt.Errorf("move %s to %s: %w", spec.From.Name(), spec.To.Name(), err)
	}
	return m.out, err
}

// mover is one move under way.
type mover struct {
	f      *Fleet
	spec   MoveSpec
	a, b   *Session
	stage  func(MoveStage)
	report func(sync.Progress)
	out    Moved
	log    moveLog
	job    *tmux.Job // on From
	files  []moveFile
	sent   map[string][]version // by path on To: what was set out to be brought
	// Where From is gone:
	kept  []*keeping
	seen  map[string]seenFile // by path on To
	lacks map[string]bool     // of them: not there as they were
}

func (m *mover) begin(ctx context.Context, confirm func(MovePlan) error) error {
	if m.a == m.b {
		return errors.New("both are one instance")
	}
	held, err := m.f.alone("move-"+m.a.uid, "a move of it")
	if err != nil {
		return err
	}
	defer held.Unlock()
	defer m.f.work()()
	defer m.closeKept()
	m.stage(MoveLooks)
	if err := m.b.Ready(ctx); err != nil {
		return err
	}
	away := m.a.Ready(ctx)
	if away != nil && (remote.NeedsPerson(away) || ctx.Err() != nil) {
		return away
	}
	if m.log, err = m.loadLog(ctx); err != nil {
		return err
	}
	if err := m.resume(ctx); err != nil {
		return err
	}
	if err := m.findJob(ctx, away); err != nil {
		return err
	}
	if err := m.moved(); err != nil {
		return err
	}
	if err := m.plan(ctx, away); err != nil {
		return err
	}
	if confirm != nil {
		if err := confirm(m.out.Plan); err != nil {
			return err
		}
	}
	if !m.log.under {
		m.log.data = moveData{Run: jobID("move"), To: m.b.uid, ToName: m.b.Name(), Paths: m.out.Plan.Paths, Saved: away != nil}
		if away == nil { // the plan looked at these
			m.log.data.Mine = placesOf(m.out.Plan.Paths)
		}
		if m.job != nil {
			m.log.data.Job, m.log.data.NewJob = m.job.ID, jobID(m.job.Name)
		}
		if err := m.note(ctx, moveBegun); err != nil {
			return err
		}
	}
	return m.run(ctx, away)
}

// alone takes the lock name while what is done; another rentop that does it refuses.
func (f *Fleet) alone(name, what string) (*lock.Lock, error) {
	held, err := lock.Try(filepath.Join(f.opt.Dirs.State, "locks", name))
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s is under way; run this again when that has ended", err, what)
	}
	if err != nil {
		return nil, fmt.Errorf("keep other rentops from it: %w", err)
	}
	return held, nil
}

// run is the move itself. What the journal has as done, and cannot be undone, is not
// done twice; files are compared anew.
func (m *mover) run(ctx context.Context, away error) error {
	if !m.log.did[moveStarting] { // from then on the files there are the job's
		if err := m.carryAll(ctx, away); err != nil {
			return m.gone(ctx, away, err)
		}
		if err := m.install(ctx); err != nil {
			return err
		}
	}
	if m.job != nil {
		if err := m.startThere(ctx, away); err != nil {
			return err
		}
	}
	if err := m.note(ctx, moveDone); err != nil {
		return err
	}
	m.dropSeen()
	return nil
}

// carryAll brings the files; where the job is to end on From, twice: as it runs, and
// what it wrote last.
func (m *mover) carryAll(ctx context.Context, away error) error {
	if away != nil {
		return m.carrySaved(ctx)
	}
	if err := m.ownCarried(ctx); err != nil {
		return err
	}
	if err := m.carry(ctx); err != nil {
		return err
	}
	if m.job != nil && running(*m.job) && m.spec.StopJob {
		m.stage(MoveStops)
		if err := m.note(ctx, moveStopping); err != nil {
			return err
		}
		job, err := m.a.KillJob(ctx, m.job.ID)
		if err != nil {
			return err
		}
		m.job = &job
		if err := m.note(ctx, moveStopped); err != nil {
			return err
		}
		if err := m.carry(ctx); err != nil {
			return err
		}
	}
	m.out.Stopped = m.job != nil && !running(*m.job)
	if err := m.prove(ctx); err != nil {
		return err
	}
	return m.note(ctx, moveProven)
}

// gone adds to an error what helps where the instance went away under a move.
func (m *mover) gone(ctx context.Context, was, err error) error {
	var away unreachable
	if was != nil || ctx.Err() != nil || !errors.As(err, &away) && !errors.Is(err, remote.ErrCut) {
		return err
	}
	return fmt.Errorf("%w. Run it again: if %s is gone for good, it goes on from what was carried and from what was saved", err, m.a.Name())
}

func placesOf(paths []MovePath) []string {
	out := make([]string, len(paths))
	for i, mp := range paths {
		out[i] = mp.To
	}
	return out
}

func running(j tmux.Job) bool { return j.State == tmux.Running || j.State == tmux.Starting }

func (m *mover) install(ctx context.Context) error {
	if !m.spec.Install || m.out.Plan.EnvErr != nil || len(m.out.Plan.Env.Steps) == 0 {
		return nil
	}
	m.stage(MoveInstalls)
	var err error
	if m.out.Installed, err = m.b.install(ctx, m.out.Plan.Env); err != nil {
		return err
	}
	if n := m.out.Installed.Failed(); n > 0 {
		return fmt.Errorf("%d of %d commands that install failed there, so the job was not started; the files are there. Mend that and run it again, or leave out --install", n, len(m.out.Installed.Steps))
	}
	return nil
}

// findJob chooses the job, and refuses to leave open what becomes of it.
func (m *mover) findJob(ctx context.Context, away error) error {
	if m.spec.NoJob {
		return nil
	}
	which := m.spec.Job
	if m.log.under {
		if m.log.data.Job == "" {
			return nil
		}
		which = m.log.data.Job
	}
	if away != nil {
		return m.jobOfLedger(ctx, which)
	}
	if which != "" {
		j, err := m.a.findJob(ctx, which)
		if err != nil {
			return err
		}
		m.job = &j
	} else {
		jobs, err := m.a.Jobs(ctx)
		if err != nil {
			return err
		}
		var names []string
		for _, j := range jobs {
			if running(j) {
				names = append(names, j.ID)
			}
		}
		if len(names) > 1 {
			return fmt.Errorf("several jobs run there: say which with --job: %s", strings.Join(names, ", "))
		}
		i := slices.IndexFunc(jobs, func(j tmux.Job) bool { return len(names) == 0 || running(j) })
		if i >= 0 {
			m.job = &jobs[i]
		}
	}
	if m.job != nil && running(*m.job) && !m.spec.StopJob && !m.spec.Keep && !m.log.did[moveStarting] {
		return fmt.Errorf("job %s on %s: %w", m.job.ID, m.a.Name(), ErrStillRuns)
	}
	return nil
}
