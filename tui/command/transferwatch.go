package command

// push --watch and pull --watch: a line, or a JSON line, for each change.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rentop/remote"
	"rentop/session"
	"rentop/sync"
)

// watch runs until it is interrupted, which is its good end.
func (a *app) watch(ctx context.Context, s *session.Session, spec session.TransferSpec, how session.PullWatch, yes bool, t *teller) error {
	tell := func(e session.WatchEvent) {
		t.clear()
		t.watched(e, s.Name())
	}
	var err error
	if spec.Direction == sync.Push {
		err = s.WatchPush(ctx, spec, a.confirming(ctx, spec, yes, t), tell, t.progress)
	} else {
		err = s.WatchPull(ctx, spec, how, tell, t.progress)
	}
	t.clear()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// watchEvent is a WatchEvent in JSON. The fields of a transfer are there for ready
// and moved.
type watchEvent struct {
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	Error string    `json:"error,omitempty"`
	*transferred
	Held []string `json:"held,omitempty"`
}

func (t *teller) watched(e session.WatchEvent, name string) {
	if t.json || t.events {
		line := watchEvent{Event: string(e.Kind), At: e.At.UTC().Truncate(time.Millisecond), Held: e.Change.Held}
		if e.Err != nil {
			line.Error = remote.Clean(e.Err.Error())
		}
		if e.Change.Result != nil {
			done := summary(t.direction, e.Change.Result)
			line.transferred = &done
		}
		_ = t.event(line) // a reader that is gone ends us by its signal
		return
	}
	at := e.At.Format("15:04:05")
	switch e.Kind {
	case session.WatchLost:
		t.a.note("%s the connection is away, trying to come back: %s", at, remote.Clean(e.Err.Error()))
	case session.WatchPolling:
		t.a.note("%s %s", at, remote.Clean(e.Err.Error()))
	case session.WatchReady:
		if e.Change.Files > 0 || len(e.Change.Deleted)+len(e.Change.Failed) > 0 {
			t.a.note("%s %s", at, lastLine(t.direction, e.Change.Result))
		}
		where := "changes here are pushed as they are saved"
		if t.direction == sync.Pull {
			where = "files are pulled as they are finished there"
		}
		t.a.note("%s watching %s: %s; Ctrl-C ends it", at, name, where)
	default:
		fmt.Fprintf(t.a.Out, "%s %s\n", at, changeLine(t.direction, e))
	}
	if e.Change.Result != nil {
		for _, f := range e.Change.Failed {
			t.a.note("%s failed: %s: %s", at, remote.Clean(f.Path), remote.Clean(f.Err.Error()))
		}
	}
	if n := len(e.Change.Held); n > 0 {
		t.a.note("%s %s removals are held back: they are more than half of what is there. To carry them out: rentop push %s … --delete", at, commas(n), name)
	}
}

// changeLine is one change: its files by name as long as they are few.
func changeLine(d sync.Direction, e session.WatchEvent) string {
	verb, r := verbs[d], e.Change.Result
	what := ""
	switch n := int(r.Files); {
	case n > 3:
		what = fmt.Sprintf("%s %s files", verb, commas(n))
	case n > 0:
		what = verb
		for i, f := range r.Sent {
			if i > 0 {
				what += ","
			}
			what += " " + remote.Clean(f.Path)
		}
	case len(r.Deleted) == 0:
		what = verb + " attributes"
	}
	if r.Bytes > 0 {
		what += ", " + sync.Size(r.Bytes)
	}
	if n := len(r.Deleted); n > 0 {
		if what != "" {
			what += ", "
		}
		what += fmt.Sprintf("%s deleted", commas(n))
	}
	if n := int(r.FailedAll); n > 0 {
		what += fmt.Sprintf(", %s failed", commas(n))
	}
	return fmt.Sprintf("%s in %s", what, e.Took.Round(time.Millisecond))
}
