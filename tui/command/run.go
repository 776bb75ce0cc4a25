package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rentop/remote/tmux"
	"rentop/session"
)

func (a *app) runCommand() *cobra.Command {
	var spec session.JobSpec
	var env []string
	c := &cobra.Command{
		Use:   "run NAME [flags] -- CMD [ARG …]",
		Short: "Start a job that outlives the connection, and follow its log",
		Long: "Starts a job and returns only when it provably runs there. Then it follows the job's log and\n" +
			"ends with the job's exit code, 1 where it was killed or lost; Ctrl-C stops following, and the job\n" +
			"goes on. One word after -- is a shell line; several are a command and exactly its arguments.",
		Example: "  rentop run a100 --name tune -- 'cd project && python train.py'\n  rentop run a100 --detach -- python -m project.train --epochs 3",
		Args:    cobra.MinimumNArgs(2),
	}
	c.Flags().StringVar(&spec.Name, "name", "", "what you call the `JOB`; else it is taken from the command")
	c.Flags().StringVar(&spec.Dir, "dir", "", "the `FOLDER` there to start it in; else the home")
	c.Flags().StringArrayVar(&env, "env", nil, "a variable for it, as `KEY=VALUE`")
	detach := c.Flags().Bool("detach", false, "do not follow the log")
	asJSON := c.Flags().Bool("json", false, "print the job as JSON; with --detach")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *asJSON && !*detach {
			return badUsage("--json goes with --detach: without it the job's log is printed")
		}
		spec.Command, spec.Env = line(args[1:]), map[string]string{}
		for _, e := range env {
			key, value, ok := strings.Cut(e, "=")
			if !ok || key == "" {
				return badUsage("--env %q: write it as KEY=VALUE", e)
			}
			spec.Env[key] = value
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			if past, err := s.PastRuns(cmd.Context()); err == nil { // a start is not held up by what was before
				if e, ok := past.For(spec.Command); ok {
					a.note("%s", e.Text())
				}
			}
			j, err := s.StartJob(cmd.Context(), spec)
			if err != nil {
				return err
			}
			switch {
			case *asJSON:
				return printJSON(a.Out, jobOf(s.Name(), j))
			case *detach:
				_, err := fmt.Fprintln(a.Out, j.ID)
				a.note("runs on %s; its log: rentop logs %s %s -f", s.Name(), s.Name(), j.ID)
				return err
			}
			a.note("%s runs on %s; Ctrl-C stops following, the job goes on", j.ID, s.Name())
			return s.Watched(cmd.Context(), func(ctx context.Context) error { return a.follow(ctx, s, j.ID) })
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

// follow prints a job's log until it ends, and ends as the job did.
func (a *app) follow(ctx context.Context, s *session.Session, id string) error {
	log := a.newLog()
	_, err := s.Follow(ctx, id, 0, true, log)
	log.end()
	if ctx.Err() != nil {
		a.note("\n%s goes on; its log: rentop logs %s %s -f", id, s.Name(), id)
		return nil
	}
	if err != nil {
		return err
	}
	jobs, err := s.Jobs(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.ID == id {
			err := ended(s.Name(), j)
			if j.State == tmux.Done && j.ExitCode != nil && *j.ExitCode != 0 {
				a.note("rentop: %v", err)
				return exitWith(*j.ExitCode)
			}
			return err
		}
	}
	return fmt.Errorf("%s: the job %s has gone from the instance's list", s.Name(), id)
}

// ended is nil for a job that did what it should.
func ended(instance string, j tmux.Job) error {
	switch {
	case j.State == tmux.Done && j.ExitCode != nil && *j.ExitCode == 0:
		return nil
	case j.State == tmux.Done && j.ExitCode != nil:
		return fmt.Errorf("%s: the job %s failed with exit code %d", instance, j.ID, *j.ExitCode)
	case j.State == tmux.Lost:
		return fmt.Errorf("%s: the job %s is lost: %s", instance, j.ID, j.Why)
	case j.State == tmux.Killed:
		return fmt.Errorf("%s: the job %s was killed", instance, j.ID)
	}
	return errors.New(instance + ": the log of " + j.ID + " ended, but the job has not")
}
