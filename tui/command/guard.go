package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/gpu/guard"
	"rentop/session"
)

// guardView is a guard in JSON. Names are added, never changed.
type guardView struct {
	Instance string       `json:"instance"`
	Armed    bool         `json:"armed"` // proven: read back from the living process
	DryRun   bool         `json:"dry_run"`
	Phase    string       `json:"phase"` // "", watching, saving, acting, waiting, stopping, done, unsure, off, refused
	Rules    []guardRule  `json:"rules"`
	Then     string       `json:"then"` // stop, nothing or the command
	Save     string       `json:"save"`
	ArmedAt  *time.Time   `json:"armed_at"`
	SeenAt   *time.Time   `json:"seen_at"`
	Source   string       `json:"source"`
	Problem  string       `json:"problem"`
	Text     string       `json:"text"`
	Journal  []guardEntry `json:"journal"`
	Reclaim  *reclaimView `json:"reclaim"` // null: no notice was given
}

// reclaimView is a provider's notice that it takes the machine back.
type reclaimView struct {
	At    *time.Time `json:"at"` // null: not told
	Saved bool       `json:"saved"`
	Error string     `json:"error"`
}

type guardRule struct {
	Kind  string     `json:"kind"`
	Text  string     `json:"text"`
	Due   *time.Time `json:"due"` // null where it does not count down
	Left  *int64     `json:"left_seconds"`
	Why   string     `json:"why"` // why it does not
	Doubt string     `json:"doubt"`
	Met   bool       `json:"met"`
}

type guardEntry struct {
	At      *time.Time `json:"at"` // by the instance's clock
	What    string     `json:"what"`
	Rule    string     `json:"rule"`
	Attempt int        `json:"attempt"`
	Error   string     `json:"error"`
	Out     string     `json:"out"`
}

func guardOf(name string, g session.Guard, dry bool) guardView {
	v := guardView{Instance: name, Armed: g.Armed, DryRun: dry, Phase: g.Phase, Rules: []guardRule{}, Then: g.Then, Save: g.Save,
		ArmedAt: instant(g.ArmedAt), SeenAt: instant(g.SeenAt), Source: g.Source, Problem: g.Problem.String(), Text: g.Text.String(), Journal: []guardEntry{}}
	for _, r := range g.Rules {
		one := guardRule{Kind: r.Kind, Text: r.Text.String(), Due: instant(r.Due), Why: r.Why.String(), Doubt: r.Doubt.String(), Met: r.Met}
		if r.Left != nil {
			n := int64(*r.Left / time.Second)
			one.Left = &n
		}
		v.Rules = append(v.Rules, one)
	}
	if r := g.Reclaim; r != nil {
		v.Reclaim = &reclaimView{instant(r.At), r.Saved, r.Error}
	}
	for _, e := range g.Journal {
		v.Journal = append(v.Journal, guardEntry{instant(e.At), e.What, string(e.Rule), e.Attempt, e.Error, e.Out})
	}
	return v
}

func (a *app) guardCommand() *cobra.Command {
	var want session.GuardSpec
	var at, reclaim string
	c := &cobra.Command{
		Use:   "guard NAME [flags]",
		Short: "Rules that stop an instance while nobody is connected",
		Long: "Leaves a guard on the instance: a process that keeps the history of its GPUs and stops it,\n" +
			"or runs your command there, as soon as one of its rules is met; with your laptop closed,\n" +
			"the network gone and rentop killed. No credential of yours is needed there. Without flags\n" +
			"it reads back the guard that is there; \"armed\" is said only of a process that answers.",
		Example: "  rentop guard a100 --idle 20m --save 'sh backup.sh'\n  rentop guard spot --reclaim --save 'sh backup.sh'\n  rentop guard a100 --after train --at 08:00\n  rentop guard a100 --off",
		Args:    cobra.ExactArgs(1),
	}
	f := c.Flags()
	f.DurationVar(&want.Idle, "idle", 0, "when no GPU has worked and no job has run for `20m`")
	f.StringVar(&want.After, "after", "", "when this `JOB` has ended")
	f.StringVar(&at, "at", "", "at this `TIME`: 23:30, 2h from now, 2026-12-01 08:00")
	f.StringVar(&want.Budget, "budget", "", "when it has cost this `AMOUNT`, at today's rate")
	f.BoolVar(&want.Lease, "lease", false, "when its prepaid time ends")
	f.StringVar(&reclaim, "reclaim", "", "when its provider announces there that it is taken back: --save runs at once; asked at its\nusual address, or at `=URL`")
	f.Lookup("reclaim").NoOptDefVal = usualAddress
	f.StringVar(&want.Then, "then", "", "what is done: stop, nothing, or a `COMMAND` there (default stop)")
	f.StringVar(&want.Save, "save", "", "run this `COMMAND` there first; while it fails, nothing else is done")
	dry := f.Bool("dry-run", false, "say what would happen and when, arm nothing")
	off := f.Bool("off", false, "end the guard")
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if at != "" {
			t, ok := session.GuardTime(at, a.Now())
			if !ok {
				return badUsage("--at is a time such as 23:30, 2h or 2026-12-01 08:00, not %q", remote.Short(at, 40))
			}
			want.At = t
		}
		if want.Idle < 0 || cmd.Flags().Changed("idle") && want.Idle < time.Second {
			return badUsage("--idle is a time such as 20m")
		}
		if want.Reclaim = reclaim != ""; reclaim != usualAddress {
			want.ReclaimAt = reclaim
		}
		rules := want.Reclaim || want.Idle > 0 || want.After != "" || at != "" || want.Budget != "" || want.Lease
		arms := rules || want.Then != ""
		switch {
		case *off && (arms || *dry || want.Save != ""):
			return badUsage("--off goes alone")
		case !arms && (want.Save != "" || *dry), arms && !rules && want.Then != session.ThenNothing:
			return badUsage("say when: --idle, --after, --at, --budget, --lease or --reclaim")
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			var g session.Guard
			var err error
			switch {
			case *off:
				g, err = s.Disarm(cmd.Context())
			case *dry:
				g, err = s.PlanGuard(cmd.Context(), want)
			case arms:
				g, err = s.Arm(cmd.Context(), want)
			default:
				g, err = s.Guard(cmd.Context())
			}
			if err != nil {
				return err
			}
			if err := a.printGuard(guardOf(s.Name(), g, *dry), *asJSON); err != nil {
				return err
			}
			if !g.Armed && len(g.Problem) > 0 {
				return fmt.Errorf("%s: %s", s.Name(), g.Problem)
			}
			return nil
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

// usualAddress is --reclaim without a value.
const usualAddress = "usual"

func (a *app) printGuard(v guardView, asJSON bool) error {
	if asJSON {
		return printJSON(a.Out, v)
	}
	state := "not armed"
	switch {
	case v.DryRun:
		state = "would be armed"
	case v.Armed:
		state = "armed"
	}
	t := newTable(v.Instance, state)
	if v.Phase == string(guard.Off) {
		v.Rules, v.Save, v.Then = nil, "", ""
	}
	for _, r := range v.Rules {
		line := r.Text
		switch {
		case r.Met:
			line += ", met"
		case r.Why != "":
			line += ", not now: " + r.Why
		case r.Left != nil:
			line += ", in " + span(time.Duration(*r.Left)*time.Second)
		}
		t.add("when", line)
		if r.Doubt != "" {
			t.add("", r.Doubt)
		}
	}
	if v.Save != "" {
		t.add("save", v.Save)
	}
	if v.Then != "" {
		t.add("then", v.Then)
	}
	if v.Phase != "" && v.Phase != string(guard.Watching) || len(v.Rules) == 0 {
		t.add("", v.Text)
	}
	if v.Source != "" && v.Armed {
		t.add("reads", v.Source)
	}
	if v.Problem != "" && v.Armed {
		t.add("problem", v.Problem)
	}
	return t.print(a.Out)
}
