package session

import (
	"context"
	"encoding/json"
	"fmt"

	"rentop/session/ledger"
)

// This file is the journal of moves. It holds no variable of a job's: they may be
// secrets, and are read from the instance when they are needed.

// moveData is the Data of ledger.Moved.
type moveData struct {
	Run        string     `json:"run"`
	Step       string     `json:"step"`
	To         string     `json:"to"` // uid
	ToName     string     `json:"to_name"`
	Job        string     `json:"job,omitempty"`     // on From
	NewJob     string     `json:"new_job,omitempty"` // its ID there: to start it twice starts it once
	Paths      []MovePath `json:"paths,omitempty"`
	Saved      bool       `json:"saved,omitempty"`   // From could not be reached: the paths are its snapshot's
	Mine       []string   `json:"mine,omitempty"`    // folders on To: what is there came with this move
	Skipped    []string   `json:"skipped,omitempty"` // there, and not this move's
	Checkpoint string     `json:"checkpoint,omitempty"`
	Command    string     `json:"command,omitempty"` // as it was started there
	Dir        string     `json:"dir,omitempty"`
}

// Steps of a move.
const (
	moveBegun    = "begun"    // before the first file
	moveStopping = "stopping" // before the job on From is ended
	moveStopped  = "stopped"
	moveBringing = "bringing" // before what was saved of From comes to a place there
	moveProven   = "proven"   // every file was read on both sides
	moveStarting = "starting" // before the job is started there: what with
	moveStarted  = "started"
	moveDone     = "done"     // the end
	moveGivenUp  = "given up" // the end
)

// moveLog is where the last move of an instance stands.
type moveLog struct {
	under bool // begun and not ended
	data  moveData
	did   map[string]bool
	ended map[string]moveData // that were done, by job: the last of each
}

func (m *mover) loadLog(ctx context.Context) (moveLog, error) {
	events, err := m.f.ledger.Events(ctx, ledger.Filter{Instance: m.a.uid, Kinds: []ledger.Kind{ledger.Moved}})
	if err != nil {
		return moveLog{}, err
	}
	l := moveLog{ended: map[string]moveData{}}
	for _, e := range events {
		var d moveData
		if json.Unmarshal(e.Data, &d) != nil {
			return l, fmt.Errorf("read the journal of moves: %.200s", e.Data)
		}
		if d.Step == moveBegun || d.Run != l.data.Run {
			l = moveLog{under: true, did: map[string]bool{}, ended: l.ended}
		}
		l.data = d
		l.did[d.Step] = true
		switch d.Step {
		case moveDone:
			l.ended[d.Job] = d
			l = moveLog{did: map[string]bool{}, ended: l.ended}
		case moveGivenUp:
			l = moveLog{did: map[string]bool{}, ended: l.ended}
		}
	}
	if l.did == nil {
		l.did = map[string]bool{}
	}
	return l, nil
}

// note writes a step. It is written also where the person leaves just now.
func (m *mover) note(ctx context.Context, step string) error {
	m.log.data.Step = step
	if _, err := m.f.ledger.Append(context.WithoutCancel(ctx), ledger.NewEvent(ledger.Moved, m.a.uid, "rentop", m.log.data)); err != nil {
		return fmt.Errorf("write down %q: %w; nothing further was done", step, err)
	}
	m.log.under = true
	m.log.did[step] = true
	return nil
}

// resume takes up a move that was not finished, and refuses to mix it with another.
func (m *mover) resume(ctx context.Context) error {
	l := &m.log
	if l.under && m.spec.Anew {
		if err := m.note(ctx, moveGivenUp); err != nil {
			return err
		}
		m.dropSeen()
		*l = moveLog{did: map[string]bool{}, ended: l.ended}
	}
	if !l.under {
		return nil
	}
	if l.data.To != m.b.uid {
		return fmt.Errorf("%w: it goes to %s; run that again, or give it up with --anew", ErrUnfinishedMove, l.data.ToName)
	}
	asksForJob := m.spec.Job != "" || m.spec.StopJob || m.spec.Keep || m.spec.Command != ""
	switch {
	case l.data.Job == "" && asksForJob:
		return fmt.Errorf("%w: it carries files only; end it with --no-job, or give it up with --anew", ErrUnfinishedMove)
	case l.data.Job != "" && m.spec.NoJob:
		return fmt.Errorf("%w: it is of the job %s; run that again, or give it up with --anew", ErrUnfinishedMove, l.data.Job)
	}
	if j := m.spec.Job; j != "" {
		job, err := m.a.findJob(ctx, j)
		if err == nil && job.ID != l.data.Job {
			return fmt.Errorf("%w: it is of the job %s; run that again, or give it up with --anew", ErrUnfinishedMove, l.data.Job)
		}
	}
	if l.data.Mine == nil && !l.data.Saved { // an older rentop's
		l.data.Mine = placesOf(l.data.Paths)
	}
	m.out.Plan.Resumed = true
	return nil
}

// moved refuses to start a job once more that was moved before.
func (m *mover) moved() error {
	if m.log.under || m.spec.Anew || m.job == nil {
		return nil
	}
	e, was := m.log.ended[m.job.ID]
	if !was {
		return nil
	}
	return fmt.Errorf("%w: %s runs on %s, or ran, as %s (rentop jobs %s); --anew carries its files again and starts it once more", ErrAlreadyMoved, e.Job, e.ToName, e.NewJob, e.ToName)
}
