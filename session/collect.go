package session

import (
	"context"
	stdsync "sync"
	"time"

	"rentop/remote"
	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session/phrase"
)

// How often the parts of a live session are looked at.
const (
	jobsEvery     = 5 * time.Second  // while one runs
	idleJobs      = 20 * time.Second // while none does: another rentop may start one
	watchedEvery  = time.Minute
	savedEvery    = 10 * time.Minute
	receiptsEvery = time.Minute
	observeEvery  = 10 * time.Minute // a line in the ledger that says: still running
)

// collect keeps the view of a live connection fresh until ctx ends.
func (s *Session) collect(ctx context.Context, wg *stdsync.WaitGroup, conn *remote.Conn, facts *remote.Facts) {
	wg.Go(func() { s.collectSamples(ctx, conn, facts) })
	wg.Go(func() {
		var last time.Time
		every(ctx, jobsEvery, func() {
			if now := time.Now(); s.View().Running > 0 || now.Sub(last) >= idleJobs-jobsEvery/2 {
				last = now
				s.refreshJobs(ctx)
			}
		})
	})
	wg.Go(func() { s.watchGuard(ctx, conn, facts) })
	wg.Go(func() {
		every(ctx, observeEvery, func() { s.observeRunning(facts) })
	})
	wg.Go(func() {
		every(ctx, receiptsEvery, func() {
			if s.usage.due(s.f.opt.Now()) {
				s.keepUsage(ctx)
			}
			s.refreshReceipts(ctx)
		})
	})
	wg.Go(func() {
		every(ctx, savedEvery, func() { s.refreshSaved(ctx) })
	})
	if len(s.cfg().Watch) > 0 {
		wg.Go(func() {
			every(ctx, watchedEvery, func() { s.refreshWatched(ctx, conn) })
		})
	}
}

// every calls f now and then each d, until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		f()
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// collectSamples follows the sampler; where it ends although the connection
// lives (driver reloaded, nvidia-smi killed), it is started again.
func (s *Session) collectSamples(ctx context.Context, conn *remote.Conn, facts *remote.Facts) {
	delay := time.Second
	helper := s.gpuHelper(conn, facts)
	for ctx.Err() == nil {
		err := gpu.Follow(ctx, conn, facts, gpu.Options{Clock: s.f.opt.Now}, helper, func(sm gpu.Sample) {
			delay = time.Second
			s.sendQuietly(func(st *state) {
				st.urgent = st.urgent || st.sample == nil // the first is waited for
				st.sample = &sm
				st.history.add(&sm)
				st.day.add(&sm)
			})
			s.usage.add(&sm)
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.f.notice(s.cfg().Name, Warn, phrase.Say("notice.samples", err))
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		delay = min(2*delay, 30*time.Second)
	}
}

// Sample takes one sample, for a command.
func (s *Session) Sample(ctx context.Context) (*gpu.Sample, error) {
	conn, facts, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	return gpu.Once(ctx, conn, facts, gpu.Options{Clock: s.f.opt.Now})
}

// Samples calls emit for each sample until ctx ends, for a command.
func (s *Session) Samples(ctx context.Context, emit func(gpu.Sample)) error {
	conn, facts, err := s.connected(ctx)
	if err != nil {
		return err
	}
	return gpu.Follow(ctx, conn, facts, gpu.Options{Clock: s.f.opt.Now}, s.gpuHelper(conn, facts), emit)
}

// Facts is what the probe found out about the instance.
func (s *Session) Facts(ctx context.Context) (*remote.Facts, error) {
	_, facts, err := s.connected(ctx)
	return facts, err
}

func (s *Session) refreshJobs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	jobs, _, err := s.jobs().Newest(ctx) // the older ended ones are Jobs' to tell
	if ctx.Err() != nil {
		return
	}
	newestFirst(jobs)
	s.sendQuietly(func(st *state) {
		if err != nil {
			st.jobsErr = remote.Clean(err.Error())
			return
		}
		s.jobsSeen(st, jobs)
	})
}

func (s *Session) jobs() *tmux.Jobs { return tmux.New(s, s.f.opt.Now) }
