package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session/ledger"
	"rentop/sync/whole"
)

// This file starts a moved job on its new instance, from its newest complete checkpoint.

// CheckpointVariable is where a moved job finds its checkpoint. No option of a trainer
// is guessed: its command reads this, or is given anew with {checkpoint} in it.
const CheckpointVariable = "RENTOP_CHECKPOINT"

const checkpointWord = "{checkpoint}"

// jobOfLedger is the job as this computer knows it, where the instance cannot be asked.
func (m *mover) jobOfLedger(ctx context.Context, which string) error {
	events, err := m.f.ledger.Events(ctx, ledger.Filter{Instance: m.a.uid, Kinds: []ledger.Kind{ledger.JobStarted}})
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		var j tmux.Job
		if json.Unmarshal(e.Data, &j) == nil && j.ID != "" && (which == "" || j.ID == which || j.Name == which) {
			j.State = tmux.Lost
			m.job = &j
			return nil
		}
	}
	if which != "" {
		return fmt.Errorf("%w: %q on %s, which cannot be asked", errNotHere, remote.Clean(which), m.a.Name())
	}
	return nil
}

// startThere starts the job on To, once: its ID was chosen before the first file moved,
// and what it is started with is written down before.
func (m *mover) startThere(ctx context.Context, away error) error {
	m.stage(MoveStarts)
	spec := tmux.Spec{Command: m.job.Command, Dir: m.job.Dir, Name: m.job.Name}
	var err error
	if away == nil {
		if spec, err = m.a.jobs().Spec(ctx, m.job.ID); err != nil {
			return fmt.Errorf("read what %s was started with: %w", m.job.ID, err)
		}
	} else {
		m.out.NoEnv = true
	}
	spec.ID, spec.Name = m.log.data.NewJob, m.job.Name
	spec.Env = maps.Clone(spec.Env)
	if m.log.did[moveStarting] { // once decided it stays so
		m.out.Checkpoint = m.log.data.Checkpoint
		spec.Command, spec.Dir = m.log.data.Command, m.log.data.Dir
	} else {
		if m.out.Checkpoint, m.out.Passed, err = m.newest(ctx); err != nil {
			return err
		}
		if spec.Dir, err = m.dirThere(ctx, spec.Dir, away); err != nil {
			return err
		}
		if m.spec.Command != "" {
			spec.Command = m.spec.Command
		}
		if strings.Contains(spec.Command, checkpointWord) {
			if m.out.Checkpoint == "" {
				return fmt.Errorf("no complete checkpoint is among the files, and the command asks for one; the job was not started. %s", orNone(m.out.Passed))
			}
			spec.Command = strings.ReplaceAll(spec.Command, checkpointWord, remote.Quote(m.out.Checkpoint))
		}
		m.log.data.Checkpoint, m.log.data.Command, m.log.data.Dir = m.out.Checkpoint, spec.Command, spec.Dir
		if err := m.note(ctx, moveStarting); err != nil {
			return err
		}
	}
	if m.out.Checkpoint != "" {
		if spec.Env == nil {
			spec.Env = map[string]string{}
		}
		spec.Env[CheckpointVariable] = m.out.Checkpoint
	}
	job, err := m.b.startJob(ctx, spec)
	if err != nil {
		return err
	}
	m.out.Job = &job
	return m.note(ctx, moveStarted)
}

func orNone(passed []string) string {
	if len(passed) == 0 {
		return "Give another --command"
	}
	return "Passed over: " + strings.Join(passed, "; ")
}

// dirThere is the job's folder on To.
func (m *mover) dirThere(ctx context.Context, dir string, away error) (string, error) {
	if !path.IsAbs(dir) {
		return dir, nil // from the home, which is the home there
	}
	for _, mp := range m.log.data.Paths {
		if dir == mp.From || strings.HasPrefix(dir, mp.From+"/") {
			return mp.To + strings.TrimPrefix(dir, mp.From), nil
		}
	}
	if away != nil {
		if rest, ok := usualHome(dir); ok {
			return "~" + rest, nil
		}
		return dir, nil
	}
	homeA, err := remote.Output(ctx, m.a, `printf '%s' "$HOME"`)
	if err != nil {
		return "", err
	}
	if rest, ok := strings.CutPrefix(dir, string(homeA)); ok && len(homeA) > 1 && (rest == "" || rest[0] == '/') {
		return "~" + rest, nil
	}
	return dir, nil
}

// maxTried is how many checkpoints are looked into, from the newest.
const maxTried = 20

// newest finds the newest complete checkpoint among the files on To, and says why newer
// ones were passed over.
func (m *mover) newest(ctx context.Context) (checkpoint string, passed []string, err error) {
	type candidate struct {
		path  string
		files []moveFile
		last  time.Time
	}
	byPath := map[string]*candidate{}
	for _, f := range m.files {
		name := checkpointOf(f.Rel)
		if name == "" {
			continue
		}
		full := path.Join(f.root, name)
		c := byPath[full]
		if c == nil {
			c = &candidate{path: full}
			byPath[full] = c
		}
		c.files = append(c.files, f)
		if f.ModTime.After(c.last) {
			c.last = f.ModTime
		}
	}
	for _, c := range byPath {
		if !slices.ContainsFunc(c.files, func(f moveFile) bool { return f.Path == c.path || strings.HasPrefix(f.Path, c.path+"/") }) {
			c.path = path.Dir(c.files[0].Path) // the parts of one file: their folder
		}
	}
	list := slices.SortedFunc(maps.Values(byPath), func(a, b *candidate) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(len(b.path), len(a.path)), strings.Compare(b.path, a.path))
	})
	for i, c := range list {
		if i == maxTried {
			break
		}
		why := m.incomplete(ctx, c.path, c.files)
		if errors.Is(why, errNotAsked) || ctx.Err() != nil {
			return "", passed, errors.Join(why, ctx.Err())
		}
		if why == nil {
			return c.path, passed, nil
		}
		passed = append(passed, c.path+": "+remote.Short(why.Error(), 160))
	}
	return "", passed, nil
}

// errNotAsked is wrapped where the instance could not be asked about a file.
var errNotAsked = errors.New("it could not be looked into")

// incomplete says why a checkpoint cannot be relied on; nil where it can.
func (m *mover) incomplete(ctx context.Context, full string, files []moveFile) error {
	for _, p := range m.out.Changing {
		if p == full || strings.HasPrefix(p, full+"/") {
			return errors.New("it was being written")
		}
	}
	for p := range m.lacks {
		if p == full || strings.HasPrefix(p, full+"/") {
			return fmt.Errorf("%s of it was lost with %s", path.Base(p), m.a.Name())
		}
	}
	shards := map[string]map[int]bool{}
	marked := false
	for _, f := range files {
		if temporary(f.Rel) {
			return fmt.Errorf("%s is not finished", path.Base(f.Rel))
		}
		marked = marked || wholeMark(f.Rel)
		if s := shardName.FindStringSubmatch(path.Base(f.Rel)); s != nil {
			set := path.Join(path.Dir(f.Rel), s[1]) + s[3] + s[4]
			if shards[set] == nil {
				shards[set] = map[int]bool{}
			}
			n, _ := strconv.Atoi(s[2])
			shards[set][n] = true
		}
	}
	for set, have := range shards {
		if !allShards("", set, have) {
			return errors.New("parts of it are missing")
		}
	}
	// Without a mark only a trainer that has ended, or rests, is known to be done with it.
	if m.job != nil && running(*m.job) && !marked {
		for _, f := range files {
			if m.f.opt.Now().Sub(f.ModTime) < time.Minute {
				return errors.New("its job may be writing it still")
			}
		}
	}
	for _, f := range files {
		if f.Size == 0 && whole.Tells(f.Rel) {
			return fmt.Errorf("%s is empty", path.Base(f.Rel))
		}
		err := wholeThere(ctx, m.b, f.Found)
		if err != nil && !errors.Is(err, whole.ErrCut) {
			return fmt.Errorf("%w: %w", errNotAsked, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path.Base(f.Rel), err)
		}
	}
	return nil
}
