package command

// restore: a portable snapshot, on another instance.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/session/environment"
	"rentop/sync"
)

// restoredView is restore --json. Names are added, never changed; null is not known.
type restoredView struct {
	Snapshot string         `json:"snapshot"`
	From     string         `json:"from"` // the instance that it was taken of
	To       string         `json:"to"`
	DryRun   bool           `json:"dry_run"`
	Files    int            `json:"files"` // brought; with dry_run those that would be
	Bytes    int64          `json:"bytes"`
	Equal    int            `json:"equal"`  // were there already
	Proven   int            `json:"proven"` // SHA-256 read there afterwards
	Differ   []occupiedView `json:"differ"`
	LeftOut  int            `json:"left_out"` // rentop's own logs, devices
	Failed   []failure      `json:"failed"`
	Trash    []string       `json:"trash"`
	Env      *envView       `json:"environment"` // null where it could not be compared
	EnvError string         `json:"environment_error"`
}

type occupiedView struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// envView is what the instance lacks of a snapshot's environment.
type envView struct {
	Equal     bool            `json:"equal"`
	Steps     []envStep       `json:"steps"`
	Cannot    []string        `json:"cannot"` // missing, and no command brings it
	Differs   []envDiffers    `json:"differs"`
	Installed []installedView `json:"installed"` // with --install
}

type envStep struct {
	Tool    string   `json:"tool"`
	Missing []string `json:"missing"`
	Command string   `json:"command"`
}

type envDiffers struct {
	What string  `json:"what"`
	Was  string  `json:"was"`
	Is   *string `json:"is"` // null where it is not there
}

type installedView struct {
	Tool     string `json:"tool"`
	Command  string `json:"command"`
	Job      string `json:"job"`
	ExitCode *int   `json:"exit_code"`
	LastLine string `json:"last_line"`
}

func restoredOf(to string, r session.Restored, dry bool) restoredView {
	v := restoredView{Snapshot: r.Plan.Snapshot.ID, From: r.Plan.Snapshot.Instance, To: to, DryRun: dry, Files: r.Files, Bytes: r.Bytes, Equal: r.Plan.Equal, Proven: r.Proven,
		Differ: []occupiedView{}, LeftOut: r.Plan.LeftOut, Failed: []failure{}, Trash: []string{}}
	if dry {
		v.Files, v.Bytes = r.Plan.Files, r.Plan.Bytes
	}
	for _, d := range r.Plan.Differ {
		v.Differ = append(v.Differ, occupiedView{remote.Clean(d.Path), d.Why})
	}
	for _, f := range r.Failed {
		v.Failed = append(v.Failed, failure{remote.Clean(f.Path), remote.Clean(f.Err.Error())})
	}
	for _, t := range r.Trash {
		v.Trash = append(v.Trash, remote.Clean(t))
	}
	switch {
	case r.EnvErr != nil:
		v.EnvError = remote.Clean(r.EnvErr.Error())
	case !dry:
		v.Env = envOf(r.Env, r.Installed)
	}
	return v
}

func envOf(r environment.Report, done *session.Installed) *envView {
	v := &envView{Equal: r.Equal(), Steps: []envStep{}, Cannot: append([]string{}, r.Cannot...), Differs: []envDiffers{}, Installed: []installedView{}}
	for _, s := range r.Steps {
		v.Steps = append(v.Steps, envStep{s.Tool, s.Missing, s.Command})
	}
	for _, d := range r.Differs {
		one := envDiffers{What: d.What, Was: d.Was}
		if d.Is != "" {
			one.Is = &d.Is
		}
		v.Differs = append(v.Differs, one)
	}
	if done != nil {
		for _, s := range done.Steps {
			v.Installed = append(v.Installed, installedView{s.Tool, s.Command, s.Job.ID, s.Job.ExitCode, s.Job.LastLine})
		}
	}
	return v
}

func (a *app) restoreCommand() *cobra.Command {
	var spec session.RestoreSpec
	c := &cobra.Command{
		Use:   "restore NAME SNAPSHOT [flags]",
		Short: "Put a portable snapshot on another instance, proven, and say what its environment lacks",
		Long: "Brings the files of a portable snapshot to the instance NAME: what was below the login's home to the\n" +
			"home there, all else to where it was. What is there and equal is not sent, what differs is refused\n" +
			"with 3 before anything is changed, and at the end each file is read there and compared by SHA-256\n" +
			"with the snapshot's manifest. Then the environments are compared: what is missing is shown as the\n" +
			"commands that bring it. SNAPSHOT is a name of snapshot --list, an archive's file, or the name of the\n" +
			"instance that it was taken of: its newest. Run again after a cut it goes on.",
		Example: "  rentop restore h100 a100-20261130T120000Z\n  rentop restore h100 a100 --skip --install",
		Args:    cobra.ExactArgs(2),
	}
	f := c.Flags()
	f.BoolVar(&spec.Overwrite, "overwrite", false, "what differs there goes to the trash there (.rentop-trash)")
	f.BoolVar(&spec.Skip, "skip", false, "what differs there stays as it is; all else is restored")
	f.BoolVar(&spec.Install, "install", false, "run the commands of pip and conda as jobs there, and wait for them")
	dry := f.Bool("dry-run", false, "say what would be brought and what is in the way, and change nothing")
	asJSON := jsonFlag(c)
	c.MarkFlagsMutuallyExclusive("overwrite", "skip")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *dry && spec.Install {
			return badUsage("--install does not go with --dry-run")
		}
		spec.Snapshot = args[1]
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			return a.restore(cmd.Context(), s, spec, *dry, *asJSON)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

// errOnlyPlanned ends a dry run.
var errOnlyPlanned = errors.New("only planned")

func (a *app) restore(ctx context.Context, s *session.Session, spec session.RestoreSpec, dry, asJSON bool) error {
	line := newProgress(a.Err, a.Now)
	var confirm func(session.RestorePlan) error
	if dry {
		confirm = func(session.RestorePlan) error { return errOnlyPlanned }
	}
	got, err := s.Restore(ctx, spec, confirm, line.show)
	line.clear()
	var taken *session.OccupiedError
	if errors.As(err, &taken) && dry || errors.Is(err, errOnlyPlanned) {
		err = nil
	}
	if asJSON {
		if got.Plan.Snapshot.Portable != nil {
			err = errors.Join(err, printJSON(a.Out, restoredOf(s.Name(), got, dry)))
		}
	} else {
		a.printRestored(s.Name(), got, dry, err)
	}
	if err == nil && got.Installed != nil && got.Installed.Failed() > 0 {
		err = fmt.Errorf("%s: the files are there; %d of %d commands that install failed: see their jobs", s.Name(), got.Installed.Failed(), len(got.Installed.Steps))
	}
	return err
}

// maxNamed is how many paths are named before they are counted.
const maxNamed = 20

func (a *app) printRestored(name string, r session.Restored, dry bool, err error) {
	p := r.Plan
	for i, d := range p.Differ {
		if i == maxNamed {
			fmt.Fprintf(a.Out, "… and %s more\n", commas(len(p.Differ)-maxNamed))
			break
		}
		fmt.Fprintf(a.Out, "differs: %s: %s\n", remote.Clean(d.Path), d.Why)
	}
	if dry && err == nil {
		fmt.Fprintf(a.Out, "%s: %s to bring, %s; %s there already; %d differ\n", name, someFiles(p.Files), sync.Size(p.Bytes), commas(p.Equal), len(p.Differ))
		return
	}
	for i, f := range r.Failed {
		if i == maxNamed {
			break
		}
		a.note("failed: %s: %s", remote.Clean(f.Path), remote.Clean(f.Err.Error()))
	}
	for _, t := range r.Trash {
		fmt.Fprintf(a.Out, "what was in the way is in %s there\n", remote.Clean(t))
	}
	if err != nil {
		return
	}
	fmt.Fprintf(a.Out, "%s: restored %s, %s; %s there already; read there again, equal by SHA-256: %s\n", name, someFiles(r.Files), sync.Size(r.Bytes), commas(p.Equal), someFiles(r.Proven))
	if p.LeftOut > 0 {
		a.note("left out: %s of rentop's own logs or devices", commas(p.LeftOut))
	}
	if r.EnvErr != nil {
		a.note("its environment was not compared: %s", remote.Clean(r.EnvErr.Error()))
		return
	}
	a.printEnv(name, r.Env, r.Installed)
}

// printEnv says what is missing, as commands.
func (a *app) printEnv(name string, r environment.Report, done *session.Installed) {
	if done != nil {
		for _, s := range done.Steps {
			how := "no exit code: " + s.Job.Why
			if s.Job.ExitCode != nil {
				how = fmt.Sprintf("exit code %d", *s.Job.ExitCode)
			}
			fmt.Fprintf(a.Out, "ran: %s\n  %s, job %s\n", remote.Clean(s.Command), remote.Clean(how), s.Job.ID)
			if s.Job.ExitCode == nil || *s.Job.ExitCode != 0 {
				fmt.Fprintf(a.Out, "  its last line: %s\n", remote.Clean(s.Job.LastLine))
			}
		}
	}
	for _, d := range r.Differs {
		is := d.Is
		if is == "" {
			is = "not there"
		}
		fmt.Fprintf(a.Out, "differs: %s was %s, is %s\n", d.What, remote.Short(d.Was, 200), remote.Short(is, 200))
	}
	if r.Equal() {
		fmt.Fprintf(a.Out, "%s: nothing is missing in its environment\n", name)
		return
	}
	for _, s := range r.Steps {
		fmt.Fprintf(a.Out, "missing, %s: %s\n  %s\n", s.Tool, someOf(s.Missing), remote.Clean(s.Command))
	}
	for _, c := range r.Cannot {
		fmt.Fprintf(a.Out, "missing, without a command: %s\n", remote.Short(c, 300))
	}
}

// someOf names the first things of a list.
func someOf(list []string) string {
	const first = 8
	if len(list) <= first {
		return remote.Clean(strings.Join(list, ", "))
	}
	return fmt.Sprintf("%s and %d more", remote.Clean(strings.Join(list[:first], ", ")), len(list)-first)
}
