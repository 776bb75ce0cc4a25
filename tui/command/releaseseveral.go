package command

// Several releases at once: each has its own gate and its own end.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	stdsync "sync"

	"rentop/remote"
	"rentop/session"
	"rentop/session/release"
)

// floor is the terminal that several releases share: lines of others wait while one
// asks.
type floor struct {
	out  io.Writer
	turn stdsync.Mutex // whose it is

	mu   stdsync.Mutex // protects what follows
	held bool
	wait bytes.Buffer
}

// hold runs f, which has the terminal alone. Without a floor nobody else is there.
func (f *floor) hold(do func()) {
	if f == nil {
		do()
		return
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	f.mu.Lock()
	f.held = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = false
		_, _ = f.wait.WriteTo(f.out)
	}()
	do()
}

func (f *floor) line(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held {
		f.wait.WriteString(s)
		return
	}
	_, _ = io.WriteString(f.out, s)
}

// linesOf writes whole lines, each behind whose it is.
type linesOf struct {
	f    *floor
	who  string
	part []byte
}

func (w *linesOf) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		line, rest, whole := bytes.Cut(w.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.f.line(w.who + ": " + string(line) + "\n")
		w.part = rest
	}
}

// oneOf is how one of several ended.
type oneOf struct {
	view release.View
	err  error
}

// releasedOne is one of several in JSON: as a release alone, and how it ended.
type releasedOne struct {
	released
	Error    string `json:"error"` // "" where there is none
	ExitCode int    `json:"exit_code"`
}

// severalError says how many did not end well; it ends with the worst exit code.
type severalError struct {
	text string
	errs []error
}

func (e *severalError) Error() string   { return e.text }
func (e *severalError) Unwrap() []error { return e.errs }

func (a *app) releaseSeveral(ctx context.Context, all []*session.Session, w releaseWish, asJSON bool) error {
	out := a.Err
	if w.goal == release.CheckOnly && !asJSON {
		out = a.Out
	}
	if w.goal == release.CheckOnly && asJSON {
		out = io.Discard
	}
	f := &floor{out: out}
	ends := make([]oneOf, len(all))
	var wg stdsync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			e := &ends[i]
			if w.goal == release.CheckOnly {
				e.view, e.err = f.checkOne(ctx, s)
				return
			}
			list := newChecklist(&linesOf{f: f, who: s.Name()})
			list.block = out
			r := w.of(a, s, list)
			r.floor = f
			e.view, e.err = r.run(ctx, w.goal)
		})
	}
	wg.Wait()
	var bad []string
	var errs []error
	list := []releasedOne{}
	fmt.Fprintln(out)
	for i, e := range ends {
		name := all[i].Name()
		fmt.Fprintf(out, "%s: %s\n", name, e.said(name))
		for _, l := range e.view.Review {
			fmt.Fprintf(out, "  %s\n", l)
		}
		one := releasedOne{released: releaseOf(e.view), Error: e.why(name)}
		one.Instance, one.Goal, one.Cost = name, string(w.goal), cmp.Or(one.Cost, "?")
		if e.err != nil {
			bad, errs = append(bad, name), append(errs, e.err)
			one.ExitCode = exitCode(e.err)
		}
		list = append(list, one)
	}
	var err error
	if asJSON {
		err = printJSON(a.Out, list)
	}
	switch {
	case len(errs) > 0 && ctx.Err() != nil:
		return errors.Join(err, errors.Join(errs...))
	case len(errs) > 0:
		what := "did not end as asked for"
		if w.goal == release.CheckOnly {
			what = "would lose something, or could not be checked"
		}
		return errors.Join(err, &severalError{fmt.Sprintf("%d of %d %s: %s", len(bad), len(all), what, strings.Join(bad, ", ")), errs})
	}
	return err
}

// checkOne makes one list and shows it at once.
func (f *floor) checkOne(ctx context.Context, s *session.Session) (release.View, error) {
	v, err := s.CheckRelease(ctx)
	if err != nil {
		return v, err
	}
	f.hold(func() {
		fmt.Fprintf(f.out, "%s:\n", s.Name())
		list := newChecklist(f.out)
		list.show(v)
		list.end(v)
	})
	return v, wouldLose(v)
}

// why is what stands against it, without its name, which stands beside; "" is nothing.
func (e oneOf) why(name string) string {
	if e.err == nil {
		return ""
	}
	return strings.TrimPrefix(remote.Clean(e.err.Error()), name+": ")
}

// said is how one ended, in a clause.
func (e oneOf) said(name string) string {
	var said []string
	if e.view.Phase == release.Review {
		said = append(said, fmt.Sprintf("%s; it has cost %s", e.view.Proof, e.view.Cost))
	}
	var no *refusal
	switch why := e.why(name); {
	case why == "" && len(said) == 0:
		said = append(said, "everything is safe")
	case errors.As(e.err, &no):
		said = append(said, "refused: "+why)
	case why != "":
		said = append(said, "failed: "+why)
	}
	return strings.Join(said, "; ")
}
