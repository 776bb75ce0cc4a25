package command

// Push and pull: what they share.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/sync"
)

func (a *app) pushCommand() *cobra.Command {
	return a.transferCommand(sync.Push, &cobra.Command{
		Use:   "push NAME [SRC DST] [flags]",
		Short: "Bring files to an instance, whole and verified",
		Long: "Puts the contents of the folder SRC here into DST there; a file SRC goes to the file DST, or into\n" +
			"DST where that is a folder. Relative paths there are from the login's home. Without SRC and DST\n" +
			"the instance's first sync pair is taken. What .gitignore and .rentopignore leave out stays here.",
		Example: "  rentop push a100 . project\n  rentop push a100 . project --watch --delete\n  rentop push a100 data.tar project/data.tar --verify",
	})
}

func (a *app) pullCommand() *cobra.Command {
	return a.transferCommand(sync.Pull, &cobra.Command{
		Use:   "pull NAME [SRC DST] [flags]",
		Short: "Bring files from an instance, whole and verified",
		Long: "Puts the contents of the folder SRC there into DST here; a file SRC goes to the file DST, or into\n" +
			"DST where that is a folder. Relative paths there are from the login's home. Without SRC and DST\n" +
			"the instance's first sync pair is taken.",
		Example: "  rentop pull a100 project/out ./out --verify\n  rentop pull a100 ckpt ./ckpt --watch",
	})
}

// watchHelp is --watch's, for either way.
var watchHelp = map[sync.Direction]string{
	sync.Push: "then push each change as it is saved, until Ctrl-C",
	sync.Pull: "then pull files as they are finished there, until Ctrl-C; never one that is being written",
}

func (a *app) transferCommand(d sync.Direction, c *cobra.Command) *cobra.Command {
	spec := session.TransferSpec{Direction: d}
	f := c.Flags()
	dry := f.Bool("dry-run", false, "say what would be done, and do nothing")
	yes := f.Bool("yes", false, "delete without asking; with --delete")
	asJSON := f.Bool("json", false, "print the plan (--dry-run) or the result as JSON")
	events := f.Bool("events", false, "print JSON lines while it runs: plan, progress, failures and last the result")
	watch := f.Bool("watch", false, watchHelp[d])
	var how session.PullWatch
	if d == sync.Pull {
		f.DurationVar(&how.Every, "interval", 5*time.Second, "look so often; with --watch")
		f.DurationVar(&how.Settle, "settle", 10*time.Second, "take a file that has not changed for so long; with --watch")
	}
	limit := f.String("limit", "", "use no more of the line than `RATE` bytes a second: 20M, 800K")
	f.BoolVar(&spec.Delete, "delete", false, "also delete at the destination what the source does not have; its list comes first")
	f.BoolVar(&spec.Force, "force", false, "delete although it is most of what is there; with --delete")
	f.BoolVar(&spec.Verify, "verify", false, "read every file again on both sides and compare SHA-256")
	f.BoolVar(&spec.Checksum, "checksum", false, "find what differs by SHA-256, not by size and time")
	f.StringVar(&spec.Manifest, "manifest", "", "with --verify: write `FILE` here, which sha256sum -c reads in the destination")
	f.StringArrayVar(&spec.Include, "include", nil, "take what `PATTERN`, as in .gitignore, names, whatever the ignore files say")
	f.StringArrayVar(&spec.Exclude, "exclude", nil, "leave out what `PATTERN`, as in .gitignore, names")
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 && len(args) != 3 {
			return badUsage("%s takes NAME alone, or NAME SRC DST", d)
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if (*yes || spec.Force) && !spec.Delete {
			return badUsage("--yes and --force go with --delete: nothing else here asks")
		}
		if len(args) == 3 {
			spec.Local, spec.Remote = args[1], args[2]
			if d == sync.Pull {
				spec.Local, spec.Remote = args[2], args[1]
			}
		}
		rate, err := sync.ParseLimit(*limit)
		if err != nil {
			return badUsage("--limit: %v", err)
		}
		switch {
		case *dry && *events:
			return badUsage("--events is for what runs; --dry-run --json prints the plan")
		case *watch && (*dry || spec.Verify || spec.Checksum):
			return badUsage("--watch does not go with --dry-run, --verify or --checksum")
		case *watch && len(spec.Include)+len(spec.Exclude) > 0:
			return badUsage("--watch does not go with --include or --exclude: write the patterns into .rentopignore, which it follows")
		case spec.Manifest != "" && (!spec.Verify || *dry):
			return badUsage("--manifest goes with --verify: it says what was read again")
		case *watch && spec.Delete && d == sync.Pull:
			return badUsage("pull --watch deletes nothing")
		case !*watch && (cmd.Flags().Changed("interval") || cmd.Flags().Changed("settle")):
			return badUsage("--interval and --settle go with --watch")
		case how.Every < 0 || how.Settle < 0:
			return badUsage("--interval and --settle are times such as 5s")
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			if rate > 0 {
				s.LimitTransfers(rate)
			}
			if *dry {
				return a.dryRun(cmd.Context(), s, spec, *asJSON)
			}
			if *watch {
				return a.watch(cmd.Context(), s, spec, how, *yes, a.teller(spec.Direction, *asJSON, *events))
			}
			return a.transfer(cmd.Context(), s, spec, *yes, a.teller(spec.Direction, *asJSON, *events))
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

func (a *app) dryRun(ctx context.Context, s *session.Session, spec session.TransferSpec, asJSON bool) error {
	plan, err := s.PlanTransfer(ctx, spec)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(a.Out, planned{outline: outlined(s.Outline(spec.Direction, plan)), Direction: spec.Direction,
			Local: plan.Local(), Remote: plan.Remote(), Actions: plan.Rows(), Ignored: plan.Ignored})
	} else if _, err = fmt.Fprint(a.Out, plan.String()); err == nil {
		_, err = fmt.Fprintln(a.Out, outlineLine(s.Outline(spec.Direction, plan)))
	}
	if err == nil && plan.Refused != nil {
		return plan.Refused
	}
	return err
}

// confirming is what looks at a plan before it is carried out. After a cut the plan
// is another one: what was agreed to is not asked again.
func (a *app) confirming(ctx context.Context, spec session.TransferSpec, yes bool, t *teller) func(*sync.Plan) error {
	agreed := map[string]bool{} // to be deleted
	return func(plan *sync.Plan) error {
		if plan.Refused != nil {
			return plan.Refused
		}
		if !spec.Delete || yes {
			return nil
		}
		removes := plan.Removes()
		if !slices.ContainsFunc(removes, func(path string) bool { return !agreed[path] }) {
			return nil
		}
		t.clear()
		if err := a.confirmDeletes(ctx, spec.Direction, plan); err != nil {
			return err
		}
		for _, path := range removes {
			agreed[path] = true
		}
		return nil
	}
}

func (a *app) transfer(ctx context.Context, s *session.Session, spec session.TransferSpec, yes bool, t *teller) error {
	var confirm func(*sync.Plan) error // nil: the first byte need not wait for the plan
	if spec.Delete || t.events {
		check := a.confirming(ctx, spec, yes, t)
		confirm = func(plan *sync.Plan) error {
			t.plan(s.Outline(spec.Direction, plan))
			return check(plan)
		}
	}
	res, err := s.Transfer(ctx, spec, confirm, t.progress)
	return a.ended(fmt.Sprintf("%s: %s", s.Name(), spec.Direction), t, res, err)
}

// ended tells how a transfer has ended, and what its command ends with.
func (a *app) ended(what string, t *teller, res *sync.Result, err error) error {
	t.clear()
	if res == nil {
		return err
	}
	if t.json || t.events || err == nil || res.Files > 0 || len(res.Deleted) > 0 || res.FailedAll > 0 {
		if perr := t.result(res); err == nil {
			err = perr
		}
	}
	switch n := res.FailedAll; {
	case err != nil:
		a.note("%s", stopped(res))
	case n > 0:
		err = fmt.Errorf("%s: %d failed, each named above with its reason; the others are there, whole. Mend that and run it again: only what is missing is moved", what, n)
	}
	return err
}

// stopped says what is left of a transfer that ended before its end.
func stopped(res *sync.Result) string {
	if kept := res.Bytes + res.Kept; kept > 0 {
		return fmt.Sprintf("it did not come to its end; run it again: %s are kept and not moved again", sync.Size(kept))
	}
	return "it did not come to its end, and no file is there whole yet; run it again"
}

// confirmDeletes shows what would be deleted, and asks.
func (a *app) confirmDeletes(ctx context.Context, d sync.Direction, plan *sync.Plan) error {
	side := plan.Remote() + " there"
	if d == sync.Pull {
		side = plan.Local() + " here"
	}
	a.note("to be deleted from %s:", remote.Clean(side))
	removes := plan.Removes()
	for _, path := range removes {
		a.note("  %s", remote.Clean(path))
	}
	text, err := a.person.question(ctx, fmt.Sprintf("Delete these %d? (yes/no) ", len(removes)))
	if errors.Is(err, remote.ErrNobodyToAsk) {
		return refuse("nothing was done: the list above would be deleted; if that is right, add --yes")
	}
	if err != nil {
		return err
	}
	if t := strings.ToLower(strings.TrimSpace(text)); t != "yes" && t != "y" {
		return refuse("nothing was done")
	}
	return nil
}
