package session

import (
	"context"
	stdsync "sync"
	"time"

	"rentop/remote"
)

// This file keeps saving a session's artifacts as they are finished, while a screen is
// open: what rentop save --watch does in a terminal of its own.

// SavingView is the continuous saving of a session's artifacts.
type SavingView struct {
	Since  time.Time
	Files  int // that were saved
	Bytes  int64
	Failed int       // tries of a file
	At     time.Time // of the last file that was saved; zero: none yet
	Last   string    // it
	Err    string    // why nothing goes on now; "" while it does
	Ended  bool      // it gave up, for Err
}

// saveEvery is between two looks where an artifact says nothing of its own.
const saveEvery = time.Minute

// saveKeeper has the one that runs, if any.
type saveKeeper struct {
	mu   stdsync.Mutex
	stop context.CancelFunc // nil: none runs
	how  PullWatch          // zero: the usual
}

// KeepSaving begins to save, or ends that. To do either twice does it once.
func (s *Session) KeepSaving(on bool) error {
	k := &s.saves
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case on && len(s.cfg().Artifacts) == 0:
		return errNoArtifacts
	case !on && k.stop != nil:
		k.stop()
		k.stop = nil
		s.showSaving(nil)
	case on && k.stop == nil:
		ctx, stop := context.WithCancel(s.ctx)
		k.stop = stop
		how := k.how
		if how.Every == 0 {
			how.Every = saveEvery
		}
		s.owned.Go(func() { s.keepSaving(ctx, stop, how) })
	}
	return nil
}

func (s *Session) showSaving(v *SavingView) { s.send(func(st *state) { st.saving = v }) }

func (s *Session) keepSaving(ctx context.Context, stop context.CancelFunc, how PullWatch) {
	defer stop()
	v := SavingView{Since: s.f.opt.Now()}
	show := func() {
		if now := v; ctx.Err() == nil {
			s.showSaving(&now)
		}
	}
	show()
	err := s.WatchSave(ctx, how, func(e SaveEvent) {
		v.Err = ""
		if e.Kind == WatchLost && e.Err != nil {
			v.Err = remote.Short(e.Err.Error(), 200)
		}
		for _, f := range e.Saved {
			if f.Err != nil {
				v.Failed++
				v.Err = remote.Short(f.Err.Error(), 200)
				continue
			}
			v.Files++
			v.Bytes += f.Size
			v.At, v.Last = e.At, remote.Short(f.Path, 200)
		}
		show()
	})
	if err == nil || ctx.Err() != nil {
		return
	}
	v.Err, v.Ended = remote.Short(err.Error(), 200), true
	show()
	s.saves.mu.Lock()
	defer s.saves.mu.Unlock()
	if ctx.Err() == nil { // else it was ended meanwhile, and another may have begun
		s.saves.stop = nil
	}
}
