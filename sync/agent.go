package sync

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"rentop/remote"
	"rentop/remote/agent/link"
	"rentop/sync/far"
)

// This file is the transport over the helper on the instance, which package far
// speaks to. It is the fastest: one stream for small files, only what differs of
// large ones, and no round trip a file.

// agentTransport is a Streamer.
type agentTransport struct {
	c     *far.Client
	name  string
	close func() error // what else ends with it; may be nil
}

var (
	_ RuledWalker = (*agentTransport)(nil)
	_ Spacer      = (*agentTransport)(nil)
)

// NewAgent is the transport over a link to a helper that serves far.Serve. It
// owns the link; close is called after it was ended, and may be nil.
func NewAgent(l link.Link, close func() error) Streamer {
	return &agentTransport{c: far.NewClient(l), name: "agent", close: close}
}

func (t *agentTransport) Name() (string, string) { return t.name, "" }

func (t *agentTransport) Close() error {
	err := t.c.Close()
	if t.close != nil {
		err = errors.Join(err, t.close())
	}
	return err
}

// agentError gives what the helper says its meaning here, cleaned.
func agentError(err error) error {
	var e *far.Error
	if !errors.As(err, &e) {
		return err
	}
	where := " on the instance"
	if e.Here {
		where = " on this machine"
	}
	text := remote.Short(e.Text, 300)
	switch e.Class {
	case far.NotExist:
		return &plainFailure{text, fs.ErrNotExist}
	case far.Denied:
		return fmt.Errorf("%w%s", fs.ErrPermission, where)
	case far.Full:
		return fmt.Errorf("%w%s: %s", ErrFull, where, text)
	case far.Changed:
		if text == ErrChanged.Error() {
			return ErrChanged
		}
		return fmt.Errorf("%s: %w", text, ErrChanged)
	case far.Differs:
		return ErrDiffers
	case far.Stopped:
		return context.Canceled
	}
	return errors.New(text)
}

// plainFailure is a text that stands for a known error.
type plainFailure struct {
	text string
	is   error
}

func (e *plainFailure) Error() string { return e.text }
func (e *plainFailure) Unwrap() error { return e.is }

// whole is an error that ended a call, with what was tried.
func (t *agentTransport) whole(ctx context.Context, what, root string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s %s on the instance: %w", what, remote.Clean(root), agentError(err))
}

func (t *agentTransport) Resolve(ctx context.Context, p string) (string, Entry, error) {
	abs, e, err := t.c.Resolve(ctx, p)
	if errors.Is(err, fs.ErrNotExist) {
		return abs, e, err
	}
	return abs, e, t.whole(ctx, "looking up", p, err)
}

func (t *agentTransport) List(ctx context.Context, root string, emit func(Entry) error) error {
	return t.Walk(ctx, root, emit)
}

func (t *agentTransport) Walk(ctx context.Context, root string, emit func(Entry) error) error {
	_, err := t.WalkRuled(ctx, root, WalkRules{}, emit)
	return err
}

func (t *agentTransport) WalkRuled(ctx context.Context, root string, r WalkRules, emit func(Entry) error) (ignored int64, err error) {
	var bad []Failure
	w := far.Walk{GitIgnore: r.GitIgnore, OwnIgnore: r.OwnIgnore, Include: r.Include, Exclude: r.Exclude, Problem: func(p string, _ fs.FileMode, err error) {
		if len(bad) < maxProblems {
			bad = append(bad, Failure{Path: remote.Short(p, 300), Err: agentError(err)})
		}
	}}
	ignored, err = t.c.List(ctx, root, w, emit)
	if err != nil {
		return ignored, t.whole(ctx, "listing", root, err)
	}
	if len(bad) > 0 {
		return ignored, &ListError{Problems: bad}
	}
	return ignored, nil
}

func (t *agentTransport) Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error {
	return t.whole(ctx, "looking into", root, t.c.Stat(ctx, root, paths, emit))
}

func (t *agentTransport) Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error {
	return t.whole(ctx, "reading", root, t.c.Hash(ctx, root, paths, func(p string, sum []byte, err error) {
		done(p, hex.EncodeToString(sum), agentError(err))
	}))
}

// Space is the room of the file system that holds root.
func (t *agentTransport) Space(ctx context.Context, root string) (free, total int64, err error) {
	free, total, err = t.c.Space(ctx, root)
	return free, total, t.whole(ctx, "asking for the room of", root, err)
}

// farOps are the helper's names of what it does.
var farOps = map[Op]far.Op{Send: far.Send, Mkdir: far.Mkdir, Link: far.Link, Attr: far.Attr, Delete: far.Delete, Move: far.Move}

// item is a as the helper takes it.
func item(a Action) (far.Item, error) {
	op, ok := farOps[a.Op]
	if !ok {
		return far.Item{}, fmt.Errorf("cannot %s here", a.Op)
	}
	return far.Item{Op: op, Entry: a.Entry, To: a.To, Fresh: a.Why == "new", Basis: a.Basis, Ref: a}, nil
}

func (t *agentTransport) Apply(ctx context.Context, root string, actions []Action, done func(Action, error)) error {
	items := make([]far.Item, 0, len(actions))
	for _, a := range actions {
		it, err := item(a)
		if err != nil {
			return err
		}
		items = append(items, it)
	}
	return t.whole(ctx, "changing", root, t.c.Apply(ctx, root, items, func(it far.Item, err error) {
		done(it.Ref.(Action), agentError(err))
	}))
}

// options connect a transfer to its meter.
func options(m Meter, done func(Action, error), retry bool) far.Options {
	return far.Options{Retry: retry, Content: m.Content, Wire: m.Wire, Current: m.Current, Done: func(it far.Item, err error) {
		a := it.Ref.(Action)
		if err == nil && a.Op == Send {
			a.Entry.Size, a.Entry.ModTime, a.Entry.SHA256 = it.Entry.Size, it.Entry.ModTime, it.Entry.SHA256
		}
		done(a, agentError(err))
	}}
}

func (t *agentTransport) Push(ctx context.Context, src, root string, actions <-chan Action, m Meter, done func(Action, error)) error {
	return t.stream(ctx, actions, done, func(ctx context.Context, items <-chan far.Item, done func(Action, error)) error {
		return t.whole(ctx, "sending to", root, t.c.Push(ctx, filepath.FromSlash(src), root, items, options(m, done, true)))
	})
}

func (t *agentTransport) Pull(ctx context.Context, root, dst string, actions <-chan Action, m Meter, done func(Action, error)) error {
	return t.stream(ctx, actions, done, func(ctx context.Context, items <-chan far.Item, done func(Action, error)) error {
		return t.whole(ctx, "fetching from", root, t.c.Pull(ctx, root, dst, items, options(m, done, true)))
	})
}

// stream turns actions into items as they come.
func (t *agentTransport) stream(ctx context.Context, actions <-chan Action, done func(Action, error), run func(context.Context, <-chan far.Item, func(Action, error)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	items := make(chan far.Item, 64)
	fed := make(chan error, 1)
	go func() {
		defer close(items)
		for {
			select {
			case a, ok := <-actions:
				if !ok {
					fed <- nil
					return
				}
				it, err := item(a)
				if err != nil {
					fed <- err
					return
				}
				select {
				case items <- it:
				case <-ctx.Done():
					fed <- nil
					return
				}
			case <-ctx.Done():
				fed <- nil
				return
			}
		}
	}()
	err := run(ctx, items, done)
	cancel()
	return errOr(err, <-fed)
}

func (t *agentTransport) Send(ctx context.Context, src, root string, files []Entry, m Meter, done func(Entry, error)) error {
	return t.move(ctx, files, m, done, func(ctx context.Context, items <-chan far.Item, o far.Options) error {
		return t.whole(ctx, "sending to", root, t.c.Push(ctx, filepath.FromSlash(src), root, items, o))
	})
}

func (t *agentTransport) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	return t.move(ctx, files, m, done, func(ctx context.Context, items <-chan far.Item, o far.Options) error {
		return t.whole(ctx, "fetching from", root, t.c.Pull(ctx, root, dst, items, o))
	})
}

// move is one call for a list of files. What changed meanwhile is the caller's to
// try again.
func (t *agentTransport) move(ctx context.Context, files []Entry, m Meter, done func(Entry, error), run func(context.Context, <-chan far.Item, far.Options) error) error {
	items := make(chan far.Item)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(items)
		for _, e := range files {
			select {
			case items <- far.Item{Op: far.Send, Entry: e, Ref: Action{Op: Send, Entry: e}}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return run(ctx, items, options(m, func(a Action, err error) { done(a.Entry, err) }, false))
}
