package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rentop/session"
	"rentop/sync"
)

func (a *app) copyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "copy A:SRC B:DST [flags]",
		Short: "Bring files from one instance to another, whole and verified",
		Long: "Puts the contents of the folder SRC on the instance A into DST on the instance B; a file SRC goes to\n" +
			"the file DST, or into DST where that is a folder. The bytes pass through this machine's memory and\n" +
			"never touch its disk; the two instances need not reach each other. Nothing is deleted, no ignore file\n" +
			"leaves anything out, and the SHA-256 of each file is compared between the two.",
		Example: "  rentop copy a100:ckpt h100:ckpt --dry-run\n  rentop copy a100:project/data.tar h100:project/",
		Args:    cobra.ExactArgs(2),
	}
	f := c.Flags()
	dry := f.Bool("dry-run", false, "say what would be done, and do nothing")
	asJSON := f.Bool("json", false, "print the plan (--dry-run) or the result as JSON")
	events := f.Bool("events", false, "print JSON lines while it runs: plan, progress, failures and last the result")
	checksum := f.Bool("checksum", false, "find what differs by SHA-256, not by size and time")
	limit := f.String("limit", "", "use no more of the line than `RATE` bytes a second each way: 20M, 800K")
	del := f.Bool("delete", false, "refused: a copy between instances deletes nothing")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *del {
			return badUsage("a copy between instances deletes nothing; remove there what is not wanted with rentop exec")
		}
		rate, err := sync.ParseLimit(*limit)
		if err != nil {
			return badUsage("--limit: %v", err)
		}
		if *dry && *events {
			return badUsage("--events is for what runs; --dry-run --json prints the plan")
		}
		var names, paths [2]string
		for i, arg := range args {
			name, path, ok := strings.Cut(arg, ":")
			if !ok || name == "" || path == "" {
				return badUsage("%q is not INSTANCE:PATH; between an instance and this machine it is push or pull", arg)
			}
			names[i], paths[i] = name, path
		}
		if names[0] == names[1] {
			return badUsage("both ends are %s: rentop exec %s -- cp -a %s %s copies there", names[0], names[0], paths[0], paths[1])
		}
		return a.fleet(cmd.Context(), func(fleet *session.Fleet) error {
			spec := session.CopySpec{FromPath: paths[0], ToPath: paths[1], Checksum: *checksum}
			if spec.From, err = fleet.Session(names[0]); err != nil {
				return err
			}
			if spec.To, err = fleet.Session(names[1]); err != nil {
				return err
			}
			if rate > 0 {
				spec.From.LimitTransfers(rate)
				spec.To.LimitTransfers(rate)
			}
			if *dry {
				return a.copyDry(cmd.Context(), fleet, spec, *asJSON)
			}
			return a.copy(cmd.Context(), fleet, spec, a.teller(sync.Between, *asJSON, *events))
		})
	}
	c.ValidArgsFunction = a.instancePaths
	return a.connects(c)
}

// instancePaths completes an instance's name with its colon.
func (a *app) instancePaths(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 || strings.Contains(typed, ":") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.instanceNames(cmd, nil, typed)
	for i := range names {
		names[i] += ":"
	}
	return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func (a *app) copyDry(ctx context.Context, fleet *session.Fleet, spec session.CopySpec, asJSON bool) error {
	plan, err := fleet.PlanCopy(ctx, spec)
	if err != nil {
		return err
	}
	o := spec.Outline(plan)
	if asJSON {
		return printJSON(a.Out, planned{outline: outlined(o), Direction: sync.Between,
			Local: spec.From.Name() + ":" + plan.Local(), Remote: spec.To.Name() + ":" + plan.Remote(), Actions: plan.Rows()})
	}
	_, err = fmt.Fprintf(a.Out, "%s%s\n", plan, outlineLine(o))
	return err
}

func (a *app) copy(ctx context.Context, fleet *session.Fleet, spec session.CopySpec, t *teller) error {
	var confirm func(*sync.Plan) error
	if t.events {
		confirm = func(p *sync.Plan) error { t.plan(spec.Outline(p)); return nil }
	}
	res, err := fleet.Copy(ctx, spec, confirm, t.progress)
	return a.ended(fmt.Sprintf("%s: copy", spec.To.Name()), t, res, err)
}
