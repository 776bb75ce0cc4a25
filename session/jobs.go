package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session/ledger"
	"rentop/session/phrase"
)

// JobSpec is a job as a person starts it. Name "" is taken from the command.
type JobSpec struct {
	Name    string
	Command string
	Dir     string
	Env     map[string]string
}

// StartJob starts a job and returns when it provably runs (or has ended already).
// A cut while it starts is survived: the same job is asked for again, and runs once.
func (s *Session) StartJob(ctx context.Context, spec JobSpec) (tmux.Job, error) {
	if strings.TrimSpace(spec.Command) == "" {
		return tmux.Job{}, fmt.Errorf("%s: a job needs a command", s.cfg().Name)
	}
	if spec.Name == "" {
		spec.Name = jobName(spec.Command)
	}
	id := jobID(spec.Name)
	t := tmux.Spec{ID: id, Name: spec.Name, Command: spec.Command, Dir: spec.Dir, Env: spec.Env}
	return s.startJob(ctx, t)
}

func (s *Session) startJob(ctx context.Context, t tmux.Spec) (tmux.Job, error) {
	var job tmux.Job
	err := s.again(ctx, func() (err error) {
		job, err = s.jobs().Start(ctx, t)
		return err
	})
	if err != nil {
		return job, fmt.Errorf("%s: start the job: %w", s.cfg().Name, err)
	}
	if err := s.recordJob(ctx, ledger.JobStarted, job); err != nil {
		return job, fmt.Errorf("%s: the job runs as %s, but the ledger could not be written: %w", s.cfg().Name, job.ID, err)
	}
	s.refreshJobs(ctx)
	return job, nil
}

// jobID is unique, sorts by nothing, and can be read by a person.
func jobID(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if b.Len() >= 20 {
			break
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	stem := strings.Trim(b.String(), "-")
	if stem == "" {
		stem = "job"
	}
	return stem + "-" + strings.ToLower(rand.Text()[:6])
}

// Jobs lists the instance's jobs, newest first.
func (s *Session) Jobs(ctx context.Context) ([]tmux.Job, error) {
	jobs, err := s.listJobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: list jobs: %w", s.cfg().Name, err)
	}
	s.sendWait(func(st *state) { s.jobsSeen(st, jobs) })
	return jobs, nil
}

// listJobs asks the instance for all jobs.
func (s *Session) listJobs(ctx context.Context) ([]tmux.Job, error) {
	jobs, err := s.jobs().List(ctx)
	newestFirst(jobs)
	return jobs, err
}

// newestFirst sorts. A job that has only been claimed has no start yet: it is the
// newest.
func newestFirst(jobs []tmux.Job) {
	slices.SortStableFunc(jobs, func(a, b tmux.Job) int {
		if x, y := a.StartedAt.IsZero(), b.StartedAt.IsZero(); x != y {
			if x {
				return -1
			}
			return 1
		}
		return b.StartedAt.Compare(a.StartedAt)
	})
}

// findJob takes an ID, a name (its newest job) or the beginning of an ID.
func (s *Session) findJob(ctx context.Context, which string) (tmux.Job, error) {
	jobs, err := s.Jobs(ctx)
	if err != nil {
		return tmux.Job{}, err
	}
	for _, match := range []func(tmux.Job) bool{
		func(j tmux.Job) bool { return j.ID == which },
		func(j tmux.Job) bool { return j.Name == which },
		func(j tmux.Job) bool { return which != "" && strings.HasPrefix(j.ID, which) },
	} {
		for _, j := range jobs {
			if match(j) {
				return j, nil
			}
		}
	}
	var names []string
	for _, j := range jobs {
		names = append(names, j.ID)
	}
	if len(names) == 0 {
		return tmux.Job{}, fmt.Errorf("%w: %q on %s; it has none", errNotHere, remote.Clean(which), s.cfg().Name)
	}
	return tmux.Job{}, fmt.Errorf("%w: %q on %s; there are: %s", errNotHere, remote.Clean(which), s.cfg().Name, strings.Join(names, ", "))
}

// Follow writes a job's log to w from an offset on; with follow it goes on until
// the job ends, over any cut, without a byte lost or doubled. It returns the
// offset reached.
func (s *Session) Follow(ctx context.Context, which string, from int64, follow bool, w io.Writer) (int64, error) {
	job, err := s.findJob(ctx, which)
	if err != nil {
		return from, err
	}
	err = s.again(ctx, func() (err error) {
		from, err = s.jobs().Follow(ctx, job.ID, from, follow, w)
		return err
	})
	return from, err
}

// KillJob ends a job with all its children.
func (s *Session) KillJob(ctx context.Context, which string) (tmux.Job, error) {
	job, err := s.findJob(ctx, which)
	if err != nil {
		return job, err
	}
	err = s.again(ctx, func() (err error) {
		job, err = s.jobs().Kill(ctx, job.ID)
		return err
	})
	if err != nil {
		return job, fmt.Errorf("%s: kill %s: %w", s.cfg().Name, job.ID, err)
	}
	s.refreshJobs(ctx)
	return job, nil
}

// RestartJob starts an ended job's command once more, as a new job.
func (s *Session) RestartJob(ctx context.Context, which string) (tmux.Job, error) {
	old, err := s.findJob(ctx, which)
	if err != nil {
		return old, err
	}
	if old.State == tmux.Running || old.State == tmux.Starting {
		return old, fmt.Errorf("%s: %s is still running; kill it first", s.cfg().Name, old.ID)
	}
	id := jobID(old.Name)
	var job tmux.Job
	err = s.again(ctx, func() (err error) {
		job, err = s.jobs().Restart(ctx, old.ID, id)
		return err
	})
	if err != nil {
		return job, fmt.Errorf("%s: restart %s: %w", s.cfg().Name, old.ID, err)
	}
	if err := s.recordJob(ctx, ledger.JobStarted, job); err != nil {
		return job, err
	}
	s.refreshJobs(ctx)
	return job, nil
}

// JobTerminal attaches the person's terminal to a running job.
func (s *Session) JobTerminal(ctx context.Context, which string, t remote.TerminalOptions) (int, error) {
	job, err := s.findJob(ctx, which)
	if err != nil {
		return 0, err
	}
	if !job.Tmux || job.State != tmux.Running {
		return 0, fmt.Errorf("%s: %s cannot be attached (%s); its log can be read: rentop logs %s %s", s.cfg().Name, job.ID, job.State, s.cfg().Name, job.ID)
	}
	conn, _, err := s.connected(ctx)
	if err != nil {
		return 0, err
	}
	if t.Script, err = tmux.AttachScript(job.ID); err != nil {
		return 0, err
	}
	return conn.Terminal(ctx, t)
}

// jobsSeen takes a fresh list: ends that the ledger does not have are written.
func (s *Session) jobsSeen(st *state, jobs []tmux.Job) {
	first := st.jobs == nil
	if !slices.EqualFunc(st.jobs, jobs, sameJob) {
		st.urgent = true
	}
	st.jobs, st.jobsErr, st.dirty = jobs, "", true
	s.usage.follow(jobs)
	var ended []tmux.Job
	for _, j := range jobs {
		if j.State == tmux.Running || j.State == tmux.Starting || st.ended[j.ID] {
			continue
		}
		st.ended[j.ID] = true
		ended = append(ended, j)
		if !first {
			s.f.notice(s.cfg().Name, jobLevel(j), jobEnd(j))
		}
	}
	if len(ended) > 0 {
		s.owned.Go(func() { s.keepEnded(ended) })
	}
}

// keepEnded writes ends to the ledger and, on the screen, brings the logs home.
func (s *Session) keepEnded(jobs []tmux.Job) {
	written := context.WithoutCancel(s.ctx) // a command that followed the job ends with it
	for _, j := range jobs {
		if err := s.recordJob(written, ledger.JobEnded, j); err != nil {
			s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.ledger.write", err))
		}
		s.keepJobUsage(j)
	}
	if s.f.opt.Live {
		s.refreshReceipts(s.ctx)
		s.saveLogs(s.ctx, jobs)
	}
}

// sameJob leaves out what changes all the time: the log.
func sameJob(a, b tmux.Job) bool { return a.ID == b.ID && a.State == b.State }

func jobLevel(j tmux.Job) Level {
	if j.State == tmux.Done && j.ExitCode != nil && *j.ExitCode == 0 {
		return Info
	}
	return Warn
}

// jobEnd is one sentence about how a job ended.
func jobEnd(j tmux.Job) phrase.Text {
	switch {
	case j.State == tmux.Done && j.ExitCode != nil && *j.ExitCode == 0:
		return phrase.Say("job.done", j.Name)
	case j.State == tmux.Done && j.ExitCode != nil:
		return phrase.Say("job.failed", j.Name, *j.ExitCode)
	case j.State == tmux.Killed:
		return phrase.Say("job.killed", j.Name)
	}
	return phrase.Say("job.lost", j.Name, j.Why)
}

func (s *Session) recordJob(ctx context.Context, kind ledger.Kind, j tmux.Job) error {
	at := j.StartedAt
	if kind == ledger.JobEnded {
		at = j.EndedAt
	}
	if at.IsZero() {
		at = s.f.opt.Now()
	}
	e := ledger.NewEvent(kind, s.uid, "ssh", j)
	e.At = at
	_, err := s.f.ledger.Append(ctx, e)
	return err
}
