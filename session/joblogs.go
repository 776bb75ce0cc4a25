package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/sync"
)

// maxLog bounds the log that is brought home unasked; a longer one is the person's
// to pull, and the release checklist names it.
const maxLog = 64 << 20

// jobsForRelease lists the jobs and brings home the logs of those that ended: a
// log must not be what a teardown loses.
func (s *Session) jobsForRelease(ctx context.Context) ([]tmux.Job, error) {
	jobs, err := s.jobs().List(ctx)
	if err != nil {
		return nil, err
	}
	s.saveLogs(ctx, jobs)
	return jobs, nil
}

// saveLogs copies the logs of ended jobs to the state folder, and records them as
// being on both sides. What fails is tried again the next time.
func (s *Session) saveLogs(ctx context.Context, jobs []tmux.Job) {
	_, facts, err := s.connected(ctx)
	if err != nil || facts.Home == "" {
		return
	}
	rec, err := s.pushed()
	if err != nil {
		return
	}
	for _, j := range jobs {
		if j.State == tmux.Running || j.State == tmux.Starting || j.LogSize > maxLog || !filepath.IsLocal(j.ID+".log") {
			continue
		}
		there := strings.TrimSuffix(facts.Home, "/") + "/.rentop/jobs/" + j.ID + "/log"
		if known, ok, err := rec.Lookup(there); err != nil || ok && known.Size == j.LogSize && sizeOf(known.Local) == known.Size {
			continue
		}
		row, err := s.saveLog(ctx, j, there)
		if err != nil || rec.Add([]sync.Recorded{row}) != nil {
			continue
		}
	}
}

func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return st.Size()
}

// LogFile is where a job's log is kept here once the job has ended.
func (s *Session) LogFile(job string) string {
	return filepath.Join(s.f.opt.Dirs.State, "logs", s.cfg().Name, job+".log")
}

// saveLog writes beside and renames: a log here is whole or not here.
func (s *Session) saveLog(ctx context.Context, j tmux.Job, there string) (row sync.Recorded, err error) {
	here := s.LogFile(j.ID)
	if err := os.MkdirAll(filepath.Dir(here), 0o700); err != nil {
		return row, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(here), ".log-*")
	if err != nil {
		return row, err
	}
	defer os.Remove(tmp.Name())
	sum := sha256.New()
	w := &boundedLog{to: tmp, left: maxLog, sum: sum.Write}
	_, err = s.jobs().Follow(ctx, j.ID, 0, false, w)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return row, err
	}
	out, err := remote.Output(ctx, s, "stat -c %Y "+remote.Quote(there))
	if err != nil {
		return row, err
	}
	secs, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return row, fmt.Errorf("when the log was last written: %w", err)
	}
	if err := os.Rename(tmp.Name(), here); err != nil {
		return row, err
	}
	return sync.Recorded{
		Remote: there, Local: here, Size: maxLog - w.left, ModTime: time.Unix(secs, 0),
		SHA256: hex.EncodeToString(sum.Sum(nil)), At: s.f.opt.Now(),
	}, nil
}

// boundedLog writes to a file and a sum until its bound: the length that an
// instance told is not trusted.
type boundedLog struct {
	to   *os.File
	left int64
	sum  func([]byte) (int, error)
}

func (b *boundedLog) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, remote.ErrTooLong
	}
	b.left -= int64(len(p))
	if _, err := b.sum(p); err != nil {
		return 0, err
	}
	return b.to.Write(p)
}
