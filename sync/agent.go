package sync

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	stdsync "sync"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/agent/link"
	"rentop/sync/far"
)

// This file is the transport over the helper on the instance, which package far
// speaks to. It is the fastest: one stream for small files, only what differs of
// large ones, and no round trip a file.

// agentTransport is a Streamer.
type agentTransport struct {
	name string
	open func(ctx context.Context) (*helper, error)

	mu stdsync.Mutex // protects h
	h  *helper
}

// helper is one that runs.
type helper struct {
	c       *far.Client
	explain func(error) error // adds why it ended
	close   func() error
}

var (
	_ RuledWalker = (*agentTransport)(nil)
	_ Spacer      = (*agentTransport)(nil)
)

// NewAgent is the transport over a link to a helper that serves far.Serve. It
// owns the link.
func NewAgent(l link.Link) Streamer {
	c := far.NewClient(l)
	return &agentTransport{name: "agent", h: &helper{c: c, explain: func(err error) error { return err }, close: c.Close}}
}

// openAgent starts the helper on h, where it is put if need be.
func openAgent(ctx context.Context, h agent.Host, facts *remote.Facts, o agent.Options) (*agentTransport, error) {
	t := &agentTransport{name: "agent"}
	t.open = func(ctx context.Context) (*helper, error) {
		s, err := agent.Open(ctx, h, facts, "sync", o)
		if err != nil {
			return nil, err
		}
		c := far.NewClient(s.Link())
		return &helper{c: c, explain: s.Explain, close: func() error { return errors.Join(c.Close(), s.Close()) }}, nil
	}
	var err error
	t.h, err = t.open(ctx)
	return t, err
}

// client is the helper; one that has ended is started again.
func (t *agentTransport) client(ctx context.Context) (*helper, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.h.c.Err() == nil || t.open == nil {
		return t.h, nil
	}
	h, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	t.h.close()
	t.h = h
	return h, nil
}

func (t *agentTransport) Name() (string, string) { return t.name, "" }

func (t *agentTransport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.h.close()
	if errors.Is(err, link.ErrCut) || errors.Is(err, link.ErrClosed) {
		return nil // whoever it matters to has heard of it
	}
	return err
}

// agentError gives what the helper says its meaning here, cleaned.
func agentError(err error) error {
	var e *far.Error
	if !errors.As(err, &e) {
		return plainError(err) // a pull's own
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

// do makes one call; its error says what was tried.
func (t *agentTransport) do(ctx context.Context, what, root string, call func(c *far.Client) error) error {
	h, err := t.client(ctx)
	if err == nil {
		err = call(h.c)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case h != nil && h.c.Err() != nil:
		err = h.explain(err)
	}
	return fmt.Errorf("%s %s on the instance: %w", what, remote.Clean(root), agentError(err))
}

func (t *agentTransport) Resolve(ctx context.Context, p string) (abs string, e Entry, err error) {
	missing := false
	err = t.do(ctx, "looking up", p, func(c *far.Client) (err error) {
		if abs, e, err = c.Resolve(ctx, p); abs != "" && errors.Is(err, fs.ErrNotExist) {
			missing = true
			return nil
		}
		return err
	})
	if missing {
		err = &fs.PathError{Op: "stat", Path: abs, Err: fs.ErrNotExist}
	}
	return abs, e, err
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
	seen := 0
	err = t.do(ctx, "listing", root, func(c *far.Client) (err error) {
		ignored, err = c.List(ctx, root, w, func(e Entry) error {
			if seen++; seen > maxEntries {
				return fmt.Errorf("%w: more than %d files; choose a smaller folder", remote.ErrTooLong, maxEntries)
			}
			return emit(e)
		})
		return err
	})
	if err != nil {
		return ignored, err
	}
	if len(bad) > 0 {
		return ignored, &ListError{Problems: bad}
	}
	return ignored, nil
}

func (t *agentTransport) Stat(ctx context.Context, root string, paths []string, emit func(Entry) error) error {
	return t.do(ctx, "looking into", root, func(c *far.Client) error { return c.Stat(ctx, root, paths, emit) })
}

func (t *agentTransport) Hash(ctx context.Context, root string, paths []string, done func(path, sha256 string, err error)) error {
	return t.do(ctx, "reading", root, func(c *far.Client) error {
		return c.Hash(ctx, root, paths, func(p string, sum []byte, err error) { done(p, hex.EncodeToString(sum), agentError(err)) })
	})
}

// Space is the room of the file system that holds root.
func (t *agentTransport) Space(ctx context.Context, root string) (free, total int64, err error) {
	err = t.do(ctx, "asking for the room of", root, func(c *far.Client) (err error) {
		free, total, err = c.Space(ctx, root)
		return err
	})
	return free, total, err
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
	return t.do(ctx, "changing", root, func(c *far.Client) error {
		return c.Apply(ctx, root, items, func(it far.Item, err error) { done(it.Ref.(Action), agentError(err)) })
	})
}

// options connect a transfer to its meter.
func options(m Meter, done func(Action, error), retry bool) far.Options {
	return far.Options{Retry: retry, Content: m.Content, Wire: m.Wire, Current: m.Current, Kept: func(n int64) { keep(m, n) }, Reused: func(n int64) { reuse(m, n) }, Reading: func(n int64) { reading(m, n) }, Done: func(it far.Item, err error) {
		a := it.Ref.(Action)
		if err == nil && a.Op == Send {
			a.Entry.Size, a.Entry.ModTime, a.Entry.SHA256 = it.Entry.Size, it.Entry.ModTime, it.Entry.SHA256
		}
		done(a, agentError(err))
	}}
}

func (t *agentTransport) Push(ctx context.Context, src, root string, actions <-chan Action, m Meter, done func(Action, error)) error {
	return t.stream(ctx, actions, done, func(ctx context.Context, items <-chan far.Item, done func(Action, error)) error {
		return t.do(ctx, "sending to", root, func(c *far.Client) error {
			return c.Push(ctx, filepath.FromSlash(src), root, items, options(m, done, true))
		})
	})
}

func (t *agentTransport) Pull(ctx context.Context, root, dst string, actions <-chan Action, m Meter, done func(Action, error)) error {
	return t.stream(ctx, actions, done, func(ctx context.Context, items <-chan far.Item, done func(Action, error)) error {
		return t.do(ctx, "fetching from", root, func(c *far.Client) error {
			return c.Pull(ctx, root, dst, items, options(m, done, true))
		})
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
		return t.do(ctx, "sending to", root, func(c *far.Client) error {
			return c.Push(ctx, filepath.FromSlash(src), root, items, o)
		})
	})
}

func (t *agentTransport) Fetch(ctx context.Context, root, dst string, files []Entry, m Meter, done func(Entry, error)) error {
	return t.move(ctx, files, m, done, func(ctx context.Context, items <-chan far.Item, o far.Options) error {
		return t.do(ctx, "fetching from", root, func(c *far.Client) error { return c.Pull(ctx, root, dst, items, o) })
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
