package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/session/release"
)

func (a *app) releaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "release NAME [flags]",
		Short: "Give an instance back, once nothing of value is left on it",
		Long: "Goes through the checklist: jobs, artifacts, files that exist nowhere else, git work, the\n" +
			"environment, a snapshot, what goes on costing money. Without --stop or --destroy it only checks,\n" +
			"names each thing that would be lost, and ends with 3 if there is any.\n\n" +
			"To stop or destroy, the instance's name is typed. Without a terminal --name NAME is that word:\n" +
			"it is refused with 3 where anything would be lost, unless --yes waives exactly the lines that fail.",
		Example: "  rentop release a100\n  rentop release a100 --destroy\n  rentop release a100 --stop --snapshot --name a100",
		Args:    cobra.ExactArgs(1),
	}
	f := c.Flags()
	f.Bool("check", false, "only check (also without a flag)")
	stop := f.Bool("stop", false, "stop it: compute is no longer billed, the disk stays")
	destroy := f.Bool("destroy", false, "destroy it: everything on it is gone")
	asJSON := jsonFlag(c)
	var r releaser
	f.BoolVar(&r.snapshot, "snapshot", false, "take a snapshot first: the provider's, else a portable archive")
	f.BoolVar(&r.waive, "yes", false, "waive the lines that fail; with --name")
	f.StringVar(&r.typed, "name", "", "the instance's `NAME` once more, as if typed")
	c.MarkFlagsMutuallyExclusive("check", "stop", "destroy")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		goal := release.CheckOnly
		switch {
		case *stop:
			goal = release.Stop
		case *destroy:
			goal = release.Destroy
		}
		switch {
		case goal == release.CheckOnly && (r.snapshot || r.waive || r.typed != ""):
			return badUsage("--snapshot, --yes and --name go with --stop or --destroy")
		case r.waive && r.typed == "":
			return badUsage("--yes goes with --name: rentop release %s --%s --yes --name %s", args[0], goal, args[0])
		case r.typed != "" && r.typed != args[0]:
			return refuse("--name says %q, the instance is %q: nothing was done", r.typed, args[0])
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			if goal == release.CheckOnly {
				return a.checkRelease(cmd.Context(), s, *asJSON)
			}
			r.app, r.session, r.list = a, s, newChecklist(a.Err)
			v, err := r.run(cmd.Context(), goal)
			if *asJSON && v.ID != "" {
				err = errors.Join(printJSON(a.Out, releaseOf(v)), err)
			}
			return err
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
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
	r.app.note("%s: %s; it has cost %s", v.Instance, v.Proof, v.Cost)
	for _, l := range v.Review {
		r.app.note("  %s", l)
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
	d, err := r.decide(ctx, v)
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
