package command

// The simulated fleet, as session knows instances.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/demo"
	"rentop/remote/provider"
	"rentop/session"
	"rentop/session/config"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Open the screen over a simulated fleet: no account, no GPU needed",
		Long: "Opens the screen over simulated instances that run on this machine as real SSH servers\n" +
			"with real shells and jobs. It changes nothing of yours and removes all that it made.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

func (a *app) demo(ctx context.Context) error {
	if err := a.needScreen(); err != nil {
		return err
	}
	if _, err := demo.CleanStale(ctx); err != nil { // a demo that was killed left something
		a.note("rentop: %v", err)
	}
	// The fleet outlives ctx: it is closed after the session that looks at it.
	rented, err := demo.Start(context.WithoutCancel(ctx), demo.Options{Clock: a.Now})
	if err != nil {
		return err
	}
	o := simulated(rented)
	fleet, err := session.Open(ctx, o)
	if err != nil {
		return errors.Join(err, rented.Close())
	}
	working, stop := context.WithCancel(ctx)
	started := make(chan struct{})
	go func() {
		defer close(started)
		startJobs(working, fleet, rented.Instances())
	}()
	err = a.Screen(ctx, fleet)
	stop()
	<-started
	return errors.Join(err, fleet.Close(), rented.Close())
}

// simulated describes the demo's instances to session.
func simulated(f *demo.Fleet) session.Options {
	o := session.Options{
		Dirs:      session.Dirs{Config: filepath.Join(f.Dir(), "rentop"), State: filepath.Join(f.Dir(), "rentop")},
		Live:      true,
		Simulated: true,
		Secrets:   noSecrets{},
		Providers: map[string]provider.Provider{demo.Kind: f.Provider()},
	}
	keys := hostKeys{}
	for _, in := range f.Instances() {
		keys[in.HostKey] = true
		c := config.Instance{
			Name: in.Name, ID: in.ID, Provider: demo.Kind,
			Idle:   &config.Idle{Below: 5, For: "1m"}, // nobody watches a demo for longer
			LookIn: []string{"~"},                     // the machines share one file system: this one's
			SSH:    fmt.Sprintf("ssh -p %d -i %s %s@%s", in.Port, remote.Quote(in.KeyFile), in.User, in.Host),
			Rate:   &config.Rate{PerHour: in.RatePerHour, Currency: in.Currency, WhileStopped: in.WhileStopped},
		}
		if in.DiskGB > 0 {
			c.Disk = &config.Disk{GB: int64(in.DiskGB), PerGBMonth: in.PerGBMonth}
		}
		for _, path := range in.Artifacts {
			c.Artifacts = append(c.Artifacts, config.Artifact{Path: path, To: filepath.Join(f.Dir(), "saved", in.Name)})
		}
		o.Instances = append(o.Instances, c)
	}
	o.Asker = keys
	return o
}

// startJobs starts what should run on the demo's instances.
func startJobs(ctx context.Context, f *session.Fleet, list []demo.Instance) {
	for _, in := range list {
		s, err := f.Session(in.Name)
		if err != nil || in.State != provider.Running {
			continue
		}
		for _, j := range in.Jobs {
			// What fails is seen on the screen: the job is not there.
			_, _ = s.StartJob(ctx, session.JobSpec{Name: j.Name, Command: j.Command, Dir: j.Dir})
		}
	}
}

// hostKeys answers for the demo's own servers, whose keys are known beforehand.
type hostKeys map[string]bool

func (k hostKeys) Ask(_ context.Context, q remote.Question) (remote.Answer, error) {
	return remote.Answer{OK: q.Kind == remote.AskHostKey && k[q.Fingerprint]}, nil
}

// noSecrets keeps the person's keyring out of the demo.
type noSecrets struct{}

func (noSecrets) Get(string) (string, bool) { return "", false }
func (noSecrets) Set(string, string) error  { return errors.New("the demo keeps no secrets") }
func (noSecrets) Delete(string) error       { return nil }
func (noSecrets) Available() bool           { return false }
