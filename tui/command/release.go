package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/release"
)

func (a *app) releaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "release NAME… [flags]",
		Short: "Give instances back, once nothing of value is left on them",
		Long: "Goes through the checklist: jobs, artifacts, files that exist nowhere else, git work, the\n" +
			"environment, a snapshot, what goes on costing money. Without --stop or --destroy it only checks,\n" +
			"names each thing that would be lost, and ends with 3 if there is any.\n\n" +
			"To stop or destroy, the instance's name is typed. Without a terminal --name NAME is that word:\n" +
			"it is refused with 3 where anything would be lost, unless --yes waives exactly the lines that fail.\n\n" +
			"Of several each has its own list, its own name to type (--name for each) and its own end: one that\n" +
			"fails delays no other. The exit code is the highest of theirs, and --json is a list.",
		Example: "  rentop release a100\n  rentop release a100 --destroy\n  rentop release a100 --stop --snapshot --name a100\n" +
			"  rentop release a100 h100 --destroy --name a100 --name h100\n  rentop release a100 h100 --check --json",
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	f.Bool("check", false, "only check (also without a flag)")
	stop := f.Bool("stop", false, "stop it: compute is no longer billed, the disk stays")
	destroy := f.Bool("destroy", false, "destroy it: everything on it is gone")
	asJSON := jsonFlag(c)
	var w releaseWish
	f.BoolVar(&w.snapshot, "snapshot", false, "take a snapshot first: the provider's, else a portable archive")
	f.BoolVar(&w.waive, "yes", false, "waive the lines that fail; with --name")
	f.StringArrayVar(&w.typed, "name", nil, "an instance's `NAME` once more, as if typed")
	c.MarkFlagsMutuallyExclusive("check", "stop", "destroy")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		w.goal = release.CheckOnly
		switch {
		case *stop:
			w.goal = release.Stop
		case *destroy:
			w.goal = release.Destroy
		}
		if err := w.check(args); err != nil {
			return err
		}
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			var all []*session.Session
			for _, name := range args { // all are known before one is touched
				s, err := f.Session(name)
				if err != nil {
					return err
				}
				all = append(all, s)
			}
			switch {
			case len(all) > 1:
				return a.releaseSeveral(cmd.Context(), all, w, *asJSON)
			case w.goal == release.CheckOnly:
				return a.checkRelease(cmd.Context(), all[0], *asJSON)
			}
			return a.release(cmd.Context(), all[0], w, *asJSON)
		})
	}
	c.ValidArgsFunction = a.anyInstances
	return a.connects(c)
}

// releaseWish is what a command line asks for.
type releaseWish struct {
	goal            release.Goal
	snapshot, waive bool
	typed           []string
}

// check refuses what makes no sense, before anything is opened.
func (w releaseWish) check(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return badUsage("%s is named twice", name)
		}
	}
	switch {
	case w.goal == release.CheckOnly && (w.snapshot || w.waive || len(w.typed) > 0):
		return badUsage("--snapshot, --yes and --name go with --stop or --destroy")
	case w.waive && len(w.typed) == 0:
		return badUsage("--yes goes with --name: rentop release %s --%s --yes --name %s", names[0], w.goal, names[0])
	}
	for _, name := range w.typed {
		switch {
		case slices.Contains(names, name):
		case len(names) == 1:
			return refuse("--name says %q, the instance is %q: nothing was done", name, names[0])
		default:
			return refuse("--name says %q, which is none of the instances: nothing was done", name)
		}
	}
	return nil
}

// of is one instance's part of it.
func (w releaseWish) of(a *app, s *session.Session, list *checklist) releaser {
	r := releaser{app: a, session: s, list: list, snapshot: w.snapshot, waive: w.waive}
	if slices.Contains(w.typed, s.Name()) {
		r.typed = s.Name()
	}
	return r
}

func (a *app) release(ctx context.Context, s *session.Session, w releaseWish, asJSON bool) error {
	r := w.of(a, s, newChecklist(a.Err))
	v, err := r.run(ctx, w.goal)
	if v.Phase == release.Review {
		a.note("%s: %s; it has cost %s", v.Instance, v.Proof, v.Cost)
		for _, l := range v.Review {
			a.note("  %s", l)
		}
	}
	if asJSON && v.ID != "" {
		err = errors.Join(printJSON(a.Out, releaseOf(v)), err)
	}
	return err
}

func (a *app) checkRelease(ctx context.Context, s *session.Session, asJSON bool) error {
	v, err := s.CheckRelease(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(a.Out, releaseOf(v))
	} else {
		list := newChecklist(a.Out)
		list.show(v)
		list.end(v)
	}
	if err != nil {
		return err
	}
	return wouldLose(v)
}

// wouldLose is the refusal that a failing line is; nil where all is safe.
func wouldLose(v release.View) error {
	if n := len(v.Fails()); n > 0 {
		return refuse("%s: %d of %d checks fail: %s", v.Instance, n, len(v.Checks), lost(v))
	}
	return nil
}

// releaser runs one release and speaks for the person.
type releaser struct {
	app             *app
	session         *session.Session
	list            *checklist
	snapshot, waive bool
	typed           string
	floor           *floor // shared with others; nil where it is alone

	answered string // the picture that was answered
	snapped  bool   // the snapshot was asked for
	why      error  // why it was called off
}

func (r *releaser) run(ctx context.Context, goal release.Goal) (release.View, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v, err := r.session.Release(ctx, goal, func(v release.View) { r.seen(ctx, v) })
	r.list.kept(v)
	switch {
	case r.why != nil:
		return v, r.why
	case errors.Is(err, context.Canceled):
		r.app.note("interrupted; where it stood is kept: rentop release %s --%s goes on with every check anew", v.Instance, goal)
		return v, err
	case err != nil:
		return v, err
	case v.Phase == release.Cancelled:
		return v, refuse("%s: cancelled; nothing was torn down", v.Instance)
	}
	if len(v.Why) > 0 { // it may go on being billed
		return v, fmt.Errorf("%s: %s", v.Instance, v.Why)
	}
	return v, nil
}

// seen shows a picture and, where it waits for a word that was not given yet,
// gives it.
func (r *releaser) seen(ctx context.Context, v release.View) {
	r.list.show(v)
	if v.Phase != release.Waiting || r.answered == v.Shown+v.Why.String() {
		return
	}
	r.answered = v.Shown + v.Why.String()
	var d release.Decision
	var err error
	r.floor.hold(func() {
		r.list.whole(v)
		d, err = r.decide(ctx, v)
	})
	if err != nil {
		r.why, d = err, release.Decision{Kind: release.DecideCancel}
	}
	if err := r.session.Decide(d); err != nil && r.why == nil {
		r.why = err
	}
}

// decide is the next word: a snapshot that was asked for, then the name.
func (r *releaser) decide(ctx context.Context, v release.View) (release.Decision, error) {
	if r.snapshot && !r.snapped {
		r.snapped = true
		if len(v.Snapshots) == 0 {
			return release.Decision{}, refuse("%s: a snapshot can be taken neither by its provider nor from here; nothing was done", v.Instance)
		}
		return release.Decision{Kind: release.DecideSnapshot, Snapshot: v.Snapshots[0]}, nil
	}
	if r.typed == "" {
		return r.ask(ctx, v)
	}
	if err := wouldLose(v); err != nil && !r.waive {
		r.list.end(v)
		return release.Decision{}, fmt.Errorf("%w; save it, or add --yes to lose it", err)
	}
	return release.Decision{Kind: release.DecideName, Name: r.typed, Shown: v.Shown}, nil
}

// ask has the person look at the list and type a word.
func (r *releaser) ask(ctx context.Context, v release.View) (release.Decision, error) {
	r.list.end(v)
	for {
		word, err := r.app.person.question(ctx, fmt.Sprintf(
			"Type %s to %s it, or: pull (bring what is unsaved here), snapshot, again, cancel: ", v.Instance, v.Goal))
		if err != nil {
			if lose := wouldLose(v); lose != nil {
				return release.Decision{}, fmt.Errorf("%w; nothing was done", lose)
			}
			return release.Decision{}, refuse("%s: everything is safe; to %s it without a terminal add --name %s", v.Instance, v.Goal, v.Instance)
		}
		switch word {
		case v.Instance:
			return release.Decision{Kind: release.DecideName, Name: word, Shown: v.Shown}, nil
		case "pull":
			return release.Decision{Kind: release.DecidePull}, nil
		case "again":
			return release.Decision{Kind: release.DecideAgain}, nil
		case "cancel", "":
			return release.Decision{Kind: release.DecideCancel}, nil
		case "snapshot":
			if len(v.Snapshots) > 0 {
				return release.Decision{Kind: release.DecideSnapshot, Snapshot: v.Snapshots[0]}, nil
			}
			r.app.note("a snapshot can be taken neither by its provider nor from here")
		}
	}
}
