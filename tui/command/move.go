package command

// move: work from one instance to another.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/sync"
)

// movedView is move --json. Names are added, never changed; null is not known.
type movedView struct {
	From       string         `json:"from"`
	To         string         `json:"to"`
	DryRun     bool           `json:"dry_run"`
	Resumed    bool           `json:"resumed"`
	Paths      []pathPair     `json:"paths"`
	NotCarried []string       `json:"not_carried"` // of the usual folders, with why
	Away       bool           `json:"away"`        // FROM cannot be reached: what was saved of it is taken
	Snapshot   *string        `json:"snapshot"`    // of it, where there is one
	Sources    []sourceView   `json:"sources"`     // where what was saved came from
	Lost       []string       `json:"lost"`        // on FROM when the move began, and nowhere now; paths on TO
	LostBytes  int64          `json:"lost_bytes"`
	Older      []string       `json:"older"` // on TO in an older version than was on FROM
	Files      int64          `json:"files"`
	Bytes      int64          `json:"bytes"`
	Proven     int64          `json:"proven"` // read on both sides afterwards, and equal
	Changing   []string       `json:"changing"`
	Differ     []occupiedView `json:"differ"`
	Trash      []string       `json:"trash"`
	Env        *envView       `json:"environment"`
	EnvError   string         `json:"environment_error"`
	Job        *moveJob       `json:"job"` // null: there is none
	Checkpoint *string        `json:"checkpoint"`
	Passed     []string       `json:"passed_over"` // newer checkpoints that are not complete, with why
}

type pathPair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type sourceView struct {
	What   string     `json:"what"` // snapshot, artifacts, sync
	From   string     `json:"from"`
	Files  int        `json:"files"`
	Newest *time.Time `json:"newest"` // of its files; of a snapshot when it was taken
}

type moveJob struct {
	From    string  `json:"from"` // its ID there
	Ended   bool    `json:"ended"`
	To      *string `json:"to"` // its ID on the other; null where it was not started
	State   string  `json:"state"`
	Command string  `json:"command"`
	NoEnv   bool    `json:"variables_unknown"`
}

func movedOf(spec session.MoveSpec, r session.Moved, dry bool) movedView {
	p := r.Plan
	v := movedView{From: spec.From.Name(), To: spec.To.Name(), DryRun: dry, Resumed: p.Resumed, Paths: []pathPair{}, NotCarried: append([]string{}, p.Missing...),
		Files: r.Files, Bytes: r.Bytes, Proven: r.Proven, Changing: append([]string{}, r.Changing...), Differ: []occupiedView{}, Trash: append([]string{}, r.Trash...), Passed: append([]string{}, r.Passed...),
		Away: p.Away, Sources: []sourceView{}, Lost: append([]string{}, p.Lost...), LostBytes: p.LostBytes, Older: append([]string{}, p.Older...)}
	for _, s := range p.Sources {
		one := sourceView{What: s.What, From: s.From, Files: s.Files}
		if !s.Newest.IsZero() {
			at := s.Newest.UTC()
			one.Newest = &at
		}
		v.Sources = append(v.Sources, one)
	}
	if dry {
		v.Files, v.Bytes = p.Files, p.Bytes
	}
	for _, mp := range p.Paths {
		v.Paths = append(v.Paths, pathPair{mp.From, mp.To})
	}
	if p.Saved != nil {
		v.Snapshot = &p.Saved.ID
	}
	for _, d := range p.Differ {
		v.Differ = append(v.Differ, occupiedView{remote.Clean(d.Path), d.Why})
	}
	if p.EnvErr != nil {
		v.EnvError = remote.Clean(p.EnvErr.Error())
	} else {
		v.Env = envOf(p.Env, r.Installed)
	}
	if p.Job != nil {
		v.Job = &moveJob{From: p.Job.ID, Ended: r.Stopped || p.JobEnded, Command: p.Job.Command, NoEnv: r.NoEnv}
		if r.Job != nil {
			v.Job.To, v.Job.State, v.Job.Command = &r.Job.ID, string(r.Job.State), r.Job.Command
		}
	}
	if r.Checkpoint != "" {
		v.Checkpoint = &r.Checkpoint
	}
	return v
}

func (a *app) moveCommand() *cobra.Command {
	var spec session.MoveSpec
	c := &cobra.Command{
		Use:   "move FROM TO [flags]",
		Short: "Carry work from one instance to another and go on there from its newest checkpoint",
		Long: "Carries the job's folder, those of sync and the artifacts from the instance FROM to TO, through this\n" +
			"machine's memory; reads every file on both sides again; then starts the job's command on TO, with\n" +
			"its folder and variables, once. Its newest complete checkpoint there is named and is in the variable\n" +
			"RENTOP_CHECKPOINT; no option of a trainer is guessed: --command gives another line, in which\n" +
			"{checkpoint} stands for it. What differs on TO is refused with 3 before anything is changed.\n" +
			"Where FROM cannot be reached, what was saved of it is taken: its newest portable snapshot, then its\n" +
			"artifacts from where they are, and what this move had carried before. What is lost is named. FROM is\n" +
			"never torn down: rentop release does that. Killed at any point and run again, it goes on.",
		Example: "  rentop move a100 h100 --dry-run\n  rentop move a100 h100 --stop-job --yes\n  rentop move a100 h100 --stop-job --command 'python train.py --resume {checkpoint}'",
		Args:    cobra.ExactArgs(2),
	}
	f := c.Flags()
	f.StringVar(&spec.Job, "job", "", "this `JOB`; else the one that runs, or the newest")
	f.BoolVar(&spec.NoJob, "no-job", false, "files only")
	f.StringArrayVar(&spec.Paths, "path", nil, "carry only this `PATH` of FROM; repeat it")
	f.StringVar(&spec.Command, "command", "", "start this `LINE` instead of the job's own; {checkpoint} is the newest complete one")
	f.BoolVar(&spec.StopJob, "stop-job", false, "end the job on FROM, once its files are proven on TO")
	f.BoolVar(&spec.Keep, "keep", false, "let the job on FROM run on")
	f.BoolVar(&spec.Overwrite, "overwrite", false, "what differs on TO goes to the trash there (.rentop-trash)")
	f.BoolVar(&spec.Skip, "skip", false, "where FROM cannot be reached: what differs on TO stays as it is")
	f.BoolVar(&spec.Install, "install", false, "first run the commands of pip and conda that bring what TO lacks")
	f.BoolVar(&spec.Anew, "anew", false, "give up a move that was not finished, and begin anew")
	yes := f.Bool("yes", false, "do not ask; needed without a terminal")
	dry := f.Bool("dry-run", false, "say what would be carried and started, and change nothing")
	asJSON := jsonFlag(c)
	c.MarkFlagsMutuallyExclusive("stop-job", "keep")
	c.MarkFlagsMutuallyExclusive("overwrite", "skip")
	c.MarkFlagsMutuallyExclusive("no-job", "job")
	c.MarkFlagsMutuallyExclusive("no-job", "command")
	c.MarkFlagsMutuallyExclusive("no-job", "stop-job")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.fleet(cmd.Context(), func(fleet *session.Fleet) (err error) {
			if spec.From, err = fleet.Session(args[0]); err != nil {
				return err
			}
			if spec.To, err = fleet.Session(args[1]); err != nil {
				return err
			}
			return a.move(cmd.Context(), fleet, spec, *yes, *dry, *asJSON)
		})
	}
	c.ValidArgsFunction = a.twoInstances
	return a.connects(c)
}

// twoInstances completes both words of a command.
func (a *app) twoInstances(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.instanceNames(cmd, nil, typed)
}

func (a *app) move(ctx context.Context, fleet *session.Fleet, spec session.MoveSpec, yes, dry, asJSON bool) error {
	line := newProgress(a.Err, a.Now)
	confirm := func(p session.MovePlan) error {
		line.clear()
		if dry {
			return errOnlyPlanned
		}
		if yes {
			if !asJSON {
				a.printMovePlan(spec, p)
			}
			return nil
		}
		a.printMovePlan(spec, p)
		word, err := a.person.question(ctx, "Move it? yes or no: ")
		if err != nil {
			return refuse("%s: nothing was moved: without a terminal add --yes", spec.From.Name())
		}
		if word != "yes" && word != "y" {
			return refuse("%s: nothing was moved", spec.From.Name())
		}
		return nil
	}
	got, err := fleet.Move(ctx, spec, confirm, func(s session.MoveStage) {
		line.clear()
		if text := moveStages[s]; text != "" {
			a.note("%s", text)
		}
	}, line.show)
	line.clear()
	if planned := errors.Is(err, errOnlyPlanned); planned {
		if err = nil; !asJSON {
			a.printMovePlan(spec, got.Plan)
		}
	} else if err == nil && !asJSON {
		a.printMoved(spec, got)
	} else if taken := (*session.OccupiedError)(nil); errors.As(err, &taken) && !asJSON {
		for i, d := range taken.Differ[:min(len(taken.Differ), maxNamed)] {
			a.note("differs %d: %s: %s", i+1, remote.Clean(d.Path), d.Why)
		}
	}
	if asJSON && err == nil {
		err = printJSON(a.Out, movedOf(spec, got, dry))
	}
	if errors.Is(err, session.ErrStillRuns) || errors.Is(err, session.ErrUnfinishedMove) || errors.Is(err, session.ErrAlreadyMoved) {
		return refuse("%s", err)
	}
	return err
}

var moveStages = map[session.MoveStage]string{
	session.MoveLooks:    "looking at both sides",
	session.MoveCarries:  "carrying the files",
	session.MoveProves:   "reading them on both sides again",
	session.MoveStops:    "they are there; ending the job, then carrying what it wrote last",
	session.MoveInstalls: "installing what is missing",
	session.MoveStarts:   "looking for the newest complete checkpoint, then starting the job",
}

func (a *app) printMovePlan(spec session.MoveSpec, p session.MovePlan) {
	if p.Resumed {
		fmt.Fprintln(a.Out, "an earlier move was not finished; this goes on with it")
	}
	for _, mp := range p.Paths {
		fmt.Fprintf(a.Out, "%s:%s → %s:%s\n", spec.From.Name(), remote.Clean(mp.From), spec.To.Name(), remote.Clean(mp.To))
	}
	if p.Away {
		a.printSaved(spec.From.Name(), p)
	}
	for _, n := range p.Missing {
		fmt.Fprintf(a.Out, "not carried: %s\n", remote.Clean(n))
	}
	if n := len(p.Differ); n > 0 && spec.Skip {
		fmt.Fprintf(a.Out, "in the way, and staying as it is: %s\n", someFiles(n))
	} else if n > 0 {
		fmt.Fprintf(a.Out, "in the way, and going to the trash there: %s\n", someFiles(n))
	}
	took, traffic := "?", orUnknown(p.Took.Traffic)
	if p.Took.Took != nil {
		took = "about " + span(*p.Took.Took)
	}
	fmt.Fprintf(a.Out, "to bring: %s, %s; time %s; traffic %s\n", someFiles(int(p.Files)), sync.Size(p.Bytes), took, traffic)
	if j := p.Job; j != nil {
		fmt.Fprintf(a.Out, "job %s (%s): %s\n", j.ID, j.State, remote.Short(j.Command, 200))
		if p.Away && !p.JobEnded {
			fmt.Fprintf(a.Out, "whether it still runs on %s cannot be asked: it may come to run on both\n", spec.From.Name())
		}
	} else {
		fmt.Fprintln(a.Out, "no job: files only")
	}
	if p.EnvErr == nil && !p.Away {
		a.printEnv(spec.To.Name(), p.Env, nil)
	}
}

func (a *app) printMoved(spec session.MoveSpec, r session.Moved) {
	from, to := spec.From.Name(), spec.To.Name()
	fmt.Fprintf(a.Out, "%s: carried %s, %s; equal on both sides by SHA-256: %s\n", to, someFiles(int(r.Files)), sync.Size(r.Bytes), someFiles(int(r.Proven)))
	for _, t := range r.Trash {
		fmt.Fprintf(a.Out, "what was in the way is in %s there\n", remote.Clean(t))
	}
	if r.Plan.Away {
		a.printLost(from, r.Plan, "")
	}
	for i, c := range r.Changing {
		if i == maxNamed {
			a.note("… and %d more", len(r.Changing)-maxNamed)
			break
		}
		a.note("the job on %s writes it, so it is there as it was, or not yet: %s", from, remote.Clean(c))
	}
	if r.Installed != nil {
		a.printEnv(to, r.Plan.Env, r.Installed)
	}
	for _, p := range r.Passed {
		a.note("passed over: %s", remote.Clean(p))
	}
	if j := r.Job; j != nil {
		from := "no complete checkpoint was found: it begins from what its command finds"
		if r.Checkpoint != "" {
			from = "its newest complete checkpoint is " + remote.Clean(r.Checkpoint) + " (RENTOP_CHECKPOINT)"
		}
		fmt.Fprintf(a.Out, "%s: job %s is %s; %s\n", to, j.ID, j.State, from)
		if r.NoEnv {
			a.note("its own variables are not known: %s could not be asked", spec.From.Name())
		}
		a.note("follow it: rentop logs %s %s -f", to, j.ID)
	}
	if r.Plan.Job != nil && !r.Stopped && !r.Plan.Away {
		a.note("%s's job %s runs on", from, r.Plan.Job.ID)
	}
	a.note("%s is still rented: rentop release %s", from, from)
}
