package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/scrape"
	"rentop/session"
	"rentop/session/config"
	"rentop/session/metrics"
)

func (a *app) metricsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "metrics [NAME…] [flags]",
		Short: "Give what the instances show to a Prometheus",
		Long: "Watches the instances (all, or those named) and answers at http://ADDRESS/metrics until Ctrl-C,\n" +
			"under dcgm-exporter's names where they mean the same. It asks nothing, changes nothing, and gives\n" +
			"its figures to this computer only. Have Prometheus scrape it with honor_labels: true.",
		Args: cobra.ArbitraryArgs,
	}
	listen := c.Flags().String("listen", "127.0.0.1:9100", "answer at this `ADDRESS`")
	beyond := c.Flags().Bool("i-know", false, "answer other machines too: whoever reaches the address reads names, jobs and costs")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		fleet, err := a.watched(cmd.Context(), args)
		if err != nil {
			return err
		}
		err = scrape.Serve(cmd.Context(), scrape.Options{
			Listen: *listen, Beyond: *beyond, Type: metrics.ContentType,
			Page: func(w io.Writer) { _ = metrics.Write(w, fleet.View(), a.Version, a.Now()) }, // into memory
			Ready: func(addr string) {
				a.note("the figures of %s are at http://%s/metrics until Ctrl-C", counted(len(fleet.Names()), "instance"), addr)
			},
		})
		if errors.Is(err, scrape.ErrBeyond) {
			err = refuse("%v: names, jobs and costs are for everybody there who can reach it; give --i-know where that is right", err)
		}
		return errors.Join(err, fleet.Close())
	}
	c.ValidArgsFunction = a.anyInstances
	return a.connects(c)
}

// watched is a fleet that connects to the named instances, or to all, and watches
// them without a screen: it asks nobody.
func (a *app) watched(ctx context.Context, names []string) (*session.Fleet, error) {
	dirs, err := session.DefaultDirs()
	if err != nil {
		return nil, err
	}
	file, err := config.Load(filepath.Join(dirs.Config, "config.toml"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, there := file.Instance[name]; !there {
			return nil, fmt.Errorf("%w: %q; rentop ls lists them", session.ErrUnknownInstance, remote.Clean(name))
		}
	}
	o := session.Options{Dirs: dirs, Live: true, Aside: true, Asker: silent{}, AcceptHostKey: a.acceptHostKey}
	if len(names) > 0 {
		o.Only = names
	}
	return session.Open(ctx, o)
}
