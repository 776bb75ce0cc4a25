package command

// What a run is given, and how it becomes a tree of commands.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"rentop/remote"
	"rentop/session"
	"rentop/session/record"
)

// Program is what main hands to a run.
type Program struct {
	Version string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Now     func() time.Time
	// Screen shows the fleet until the person leaves.
	Screen func(ctx context.Context, f *session.Fleet) error
	// Replay shows a recording until the person leaves.
	Replay func(ctx context.Context, p *record.Player) error
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, p Program, args []string) int {
	a := &app{Program: p, person: newAsker()}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	return a.end(ctx, cmd, err)
}

// app is one run.
type app struct {
	Program
	person        *asker
	acceptHostKey string
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rentop",
		Short: "The cockpit for GPUs that you rent by the hour",
		Long: "rentop shows every instance that you hold, what each GPU is doing and what it costs;\n" +
			"starts jobs that outlive the connection; moves code there and results back; and gives\n" +
			"an instance back only when nothing of value is left on it.\n\n" +
			"Without a command it opens the screen. Exit codes: 0 done, 1 failed, 2 wrong usage,\n" +
			"3 refused for safety; exec and run end with the exit code of what they ran.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return a.screen(cmd.Context()) },
	}
	root.Version = a.Version
	root.SetVersionTemplate(a.versionLine())
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(
		a.demoCommand(),
		a.addCommand(), a.importCommand(), a.editCommand(), a.rmCommand(), a.lsCommand(),
		a.gpuCommand(), a.doctorCommand(), a.alarmsCommand(), a.metricsCommand(), a.recordCommand(), a.replayCommand(),
		a.shellCommand(), a.execCommand(), a.forwardCommand(),
		a.runCommand(), a.jobsCommand(), a.logsCommand(), a.killCommand(), a.restartCommand(), a.guardCommand(),
		a.pushCommand(), a.pullCommand(), a.copyCommand(), a.saveCommand(), a.syncCommand(),
		a.releaseCommand(), a.snapshotCommand(), a.restoreCommand(), a.moveCommand(), a.startCommand(), a.costCommand(),
		a.planCommand(), a.fitCommand(),
		a.manCommand(), a.versionCommand(), a.agentCommand(),
	)
	for _, c := range root.Commands() {
		c.DisableFlagsInUseLine = true
		checkArgs(c)
	}
	return root
}

// connects gives a command that logs in somewhere the flag that answers an
// unknown host key.
func (a *app) connects(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.acceptHostKey, "accept-host-key", "", "trust this host key on first contact (`SHA256:TEXT`)")
	return c
}

// open reads config and ledger. The caller closes the fleet.
func (a *app) open(ctx context.Context, ask remote.Asker) (*session.Fleet, error) {
	dirs, err := session.DefaultDirs()
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, session.Options{Dirs: dirs, Asker: ask, AcceptHostKey: a.acceptHostKey})
}

// fleet runs f over a fleet that is closed after it.
func (a *app) fleet(ctx context.Context, f func(*session.Fleet) error) error {
	fleet, err := a.open(ctx, a.person)
	if err != nil {
		return err
	}
	return errors.Join(f(fleet), fleet.Close())
}

// session runs f over one instance's session.
func (a *app) session(ctx context.Context, name string, f func(*session.Session) error) error {
	return a.fleet(ctx, func(fleet *session.Fleet) error {
		s, err := fleet.Session(name)
		if err != nil {
			return err
		}
		return f(s)
	})
}

// note writes a line for the person, beside the result.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.Err, format+"\n", args...)
}

// isTerminal tells whether a stream is one.
func isTerminal(stream any) bool {
	f, is := stream.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
