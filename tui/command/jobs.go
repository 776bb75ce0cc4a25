package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/tmux"
	"rentop/session"
)

// job is one job in JSON. Names are added, never changed.
type job struct {
	Instance  string     `json:"instance"`
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	State     string     `json:"state"`     // starting, running, done, killed, lost
	ExitCode  *int       `json:"exit_code"` // null while it runs and where it is lost
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Command   string     `json:"command"`
	Dir       string     `json:"dir"`
	PID       int        `json:"pid"`
	LogBytes  int64      `json:"log_bytes"`
	LastLine  string     `json:"last_line"`
	Attach    bool       `json:"can_attach"`
	Why       string     `json:"why"`  // for lost
	Used      *receipt   `json:"used"` // null where its times are not known
}

func jobOf(instance string, j tmux.Job) job {
	return job{
		Instance: instance, ID: j.ID, Name: j.Name, State: string(j.State), ExitCode: j.ExitCode,
		StartedAt: instant(j.StartedAt), EndedAt: instant(j.EndedAt), Command: j.Command, Dir: j.Dir,
		PID: j.PID, LogBytes: j.LogSize, LastLine: j.LastLine, Attach: j.Tmux, Why: j.Why,
	}
}

func (a *app) jobsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "jobs [NAME] [flags]",
		Short: "List jobs, newest first: of one instance or of all",
		Args:  cobra.MaximumNArgs(1),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			names := args
			if len(names) == 0 {
				names = f.Names()
				settle(cmd.Context(), f, lsWait)
			}
			list, failure := []job{}, error(nil)
			for _, name := range names {
				s, err := f.Session(name)
				if err != nil {
					return err
				}
				jobs, err := s.Jobs(cmd.Context())
				if err != nil && len(args) == 0 {
					a.note("rentop: %s", remote.Clean(err.Error())) // the others' jobs are still of use
					failure = fmt.Errorf("the jobs of some instances could not be read")
					continue
				}
				if err != nil {
					return err
				}
				receipts, err := s.Receipts(cmd.Context(), jobs)
				if err != nil {
					return err
				}
				for _, j := range jobs {
					line := jobOf(name, j)
					if r, ok := receipts[j.ID]; ok {
						line.Used = receiptOf(r)
					}
					list = append(list, line)
				}
			}
			if failure != nil && len(list) == 0 && !*asJSON {
				return failure // "no jobs" is not known
			}
			return errors.Join(a.printJobs(list, *asJSON), failure)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

// inWords is a job's state for a person: what ended in vain is not "done".
func inWords(j job) string {
	if j.ExitCode != nil && *j.ExitCode != 0 && j.State == string(tmux.Done) {
		return fmt.Sprintf("failed (%d)", *j.ExitCode)
	}
	return j.State
}

func (a *app) printJobs(list []job, asJSON bool) error {
	if asJSON {
		return printJSON(a.Out, list)
	}
	if len(list) == 0 {
		a.note("no jobs: rentop run NAME -- COMMAND starts one")
		return nil
	}
	t := newTable("INSTANCE", "JOB", "NAME", "STATE", "EXIT", "STARTED", "TOOK", "UTIL", "COST", "LAST LINE").alignRight(4, 6, 7, 8)
	for _, j := range list {
		exit, started, took := "", "", ""
		if j.ExitCode != nil {
			exit = fmt.Sprint(*j.ExitCode)
		}
		if j.StartedAt != nil {
			started = j.StartedAt.Local().Format("01-02 15:04")
			end := a.Now()
			if j.EndedAt != nil {
				end = *j.EndedAt
			}
			took = span(end.Sub(*j.StartedAt))
		}
		last := j.LastLine
		if j.Why != "" {
			last = j.Why
		}
		t.add(j.Instance, j.ID, j.Name, inWords(j), exit, started, took, j.Used.util(), j.Used.cost(), remote.Short(strings.TrimSpace(last), 60))
	}
	return t.print(a.Out)
}
