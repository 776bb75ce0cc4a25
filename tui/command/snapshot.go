package command

// snapshot: what is on an instance, kept by its provider or here.

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
	"rentop/session/phrase"
	"rentop/session/release"
	"rentop/sync"
)

// snapshotView is a snapshot in JSON. Names are added, never changed; null is not known.
type snapshotView struct {
	Kind     string     `json:"kind"` // portable, provider
	ID       string     `json:"id"`   // a portable one's name, or the provider's id
	Instance string     `json:"instance"`
	At       *time.Time `json:"at"`
	State    string     `json:"state"` // here, ready, making, failed, unknown
	Detail   string     `json:"detail"`
	Provider string     `json:"provider,omitempty"`
	PerMonth *string    `json:"per_month,omitempty"`
	Currency *string    `json:"currency,omitempty"`
	// Of a portable one.
	File     string   `json:"file,omitempty"`     // the archive
	Manifest string   `json:"manifest,omitempty"` // for sha256sum -c
	SHA256   string   `json:"sha256,omitempty"`   // of the archive
	Files    *int     `json:"files,omitempty"`
	Size     *int64   `json:"size,omitempty"`  // of the archive
	Bytes    *int64   `json:"bytes,omitempty"` // of the files in it
	Paths    []string `json:"paths,omitempty"` // that were named
	NoEnv    string   `json:"no_environment,omitempty"`
}

func snapshotOf(s session.Snapshot) snapshotView {
	v := snapshotView{Kind: string(s.Kind), ID: s.ID, Instance: s.Instance, At: instant(s.At), State: string(s.State), Detail: remote.Clean(s.Detail), Provider: s.Provider}
	if s.PerMonth != "" {
		v.PerMonth, v.Currency = &s.PerMonth, &s.Currency
	}
	if p := s.Portable; p != nil {
		v.File, v.Manifest, v.SHA256, v.Size, v.Paths, v.NoEnv = p.File, p.File+".sha256", p.SHA256, &p.Size, p.Paths, p.NoEnv
		if p.SHA256 != "" { // one of an older rentop does not tell
			v.Files, v.Bytes = &p.Files, &p.Bytes
		}
	}
	return v
}

func (a *app) snapshotCommand() *cobra.Command {
	var spec session.SnapshotSpec
	c := &cobra.Command{
		Use:   "snapshot NAME [flags]",
		Short: "Keep what is on an instance: at its provider, or as a portable archive here",
		Long: "Takes the provider's own snapshot where it makes one, else a portable one: an archive of what is\n" +
			"unsaved, of the folders of sync and of jobs and of the artifacts, or of the paths that --path names,\n" +
			"with the environment beside it. A portable one comes here, is read back, and can be put on any other\n" +
			"instance: rentop restore. What is written while it is read fails it: nothing half is kept.",
		Example: "  rentop snapshot a100\n  rentop snapshot a100 --path project --path /data/labels\n  rentop snapshot a100 --provider --wait\n  rentop snapshot --list",
	}
	f := c.Flags()
	list := f.Bool("list", false, "list the snapshots of NAME, or of all")
	portable := f.Bool("portable", false, "as an archive here, also where the provider makes snapshots")
	own := f.Bool("provider", false, "the provider's own; it is kept and billed there")
	f.StringArrayVar(&spec.Paths, "path", nil, "keep only this `PATH` there; relative ones start at the login's home; repeat it")
	f.BoolVar(&spec.Wait, "wait", false, "until the provider says that its own is whole")
	asJSON := jsonFlag(c)
	c.MarkFlagsMutuallyExclusive("portable", "provider")
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || len(args) == 0 && !*list {
			return badUsage("snapshot takes one NAME; --list alone lists all")
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		switch {
		case *list && (*portable || *own || spec.Wait || len(spec.Paths) > 0):
			return badUsage("--list goes with --json alone")
		case *own && len(spec.Paths) > 0:
			return badUsage("--path goes with a portable snapshot: the provider keeps the whole disk")
		case *portable:
			spec.Kind = release.PortableSnapshot
		case *own:
			spec.Kind = release.ProviderSnapshot
		}
		if *list {
			return a.fleet(cmd.Context(), func(fleet *session.Fleet) error { return a.listSnapshots(cmd.Context(), fleet, name, *asJSON) })
		}
		return a.session(cmd.Context(), name, func(s *session.Session) error { return a.snapshot(cmd.Context(), s, spec, *asJSON) })
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

func (a *app) snapshot(ctx context.Context, s *session.Session, spec session.SnapshotSpec, asJSON bool) error {
	line := newProgress(a.Err, a.Now)
	got, err := s.TakeSnapshot(ctx, spec, line.phrase)
	line.clear()
	if err != nil {
		if got.ID != "" {
			a.note("%s: its provider has accepted %s; it may exist, and be billed there", s.Name(), remote.Clean(got.ID))
		}
		return err
	}
	if asJSON {
		return printJSON(a.Out, snapshotOf(got))
	}
	if got.Kind == release.ProviderSnapshot {
		fmt.Fprintf(a.Out, "%s: its provider %s %s%s\n", s.Name(), providerWord(got.State), remote.Clean(got.ID), detail(got))
		if got.State == session.SnapshotMaking {
			a.note("it is not whole yet: rentop snapshot --list %s asks again", s.Name())
		}
		return nil
	}
	p := got.Portable
	fmt.Fprintf(a.Out, "%s: %s, %s in %s\n", s.Name(), someFiles(p.Files), sync.Size(p.Bytes), p.File)
	fmt.Fprintf(a.Out, "read back, SHA-256 %s; each file's is in %s\n", p.SHA256, p.File+".sha256")
	if p.NoEnv != "" {
		a.note("its environment is not beside it: %s", remote.Clean(p.NoEnv))
	}
	a.note("rentop restore NAME %s puts it on another instance", got.ID)
	return nil
}

func providerWord(s session.SnapshotState) string {
	switch s {
	case session.SnapshotReady:
		return "has made"
	case session.SnapshotMaking:
		return "makes"
	case session.SnapshotFailed:
		return "failed to make"
	}
	return "has accepted"
}

func detail(s session.Snapshot) string {
	if s.Detail == "" {
		return ""
	}
	return " (" + remote.Clean(s.Detail) + ")"
}

// phrase shows one line of text, as often as a line may be shown.
func (p *progress) phrase(t phrase.Text) {
	if now := p.now(); now.Sub(p.last) >= p.every {
		p.last = now
		p.line(t.String())
	}
}

func (a *app) listSnapshots(ctx context.Context, fleet *session.Fleet, name string, asJSON bool) error {
	list, err := fleet.Snapshots(ctx, name)
	if err != nil {
		return err
	}
	if len(list) == 0 && name != "" {
		if _, err := fleet.Session(name); err != nil {
			return err
		}
	}
	if asJSON {
		out := []snapshotView{}
		for _, s := range list {
			out = append(out, snapshotOf(s))
		}
		return printJSON(a.Out, out)
	}
	if len(list) == 0 {
		a.note("there are none yet: rentop snapshot NAME takes one")
		return nil
	}
	t := newTable("INSTANCE", "KIND", "ID", "TAKEN", "FILES", "SIZE", "STATE").alignRight(4, 5)
	for _, s := range list {
		files, size := "?", "?"
		if p := s.Portable; p != nil {
			if size = sync.Size(p.Size); p.SHA256 != "" {
				files = strconv.Itoa(p.Files)
			}
		}
		state := string(s.State)
		if s.Detail != "" {
			state += ": " + s.Detail
		}
		id := s.ID
		if id == "" {
			id = "?"
		}
		t.add(s.Instance, string(s.Kind), id, s.At.Local().Format("2006-01-02 15:04"), files, size, state)
	}
	return t.print(a.Out)
}
