package command

// save: an instance's artifacts, to where its config says that they must be.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/remote/store"
	"rentop/session"
	"rentop/sync"
)

// saving is one artifact in save --json.
type saving struct {
	Path      string       `json:"path"`
	To        string       `json:"to"`
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"`
	Lack      int          `json:"lack"` // files that the destination lacks, by size
	LackBytes int64        `json:"lack_bytes"`
	Host      string       `json:"host"` // of a bucket
	Internal  bool         `json:"internal"`
	Traffic   *json.Number `json:"traffic"` // at most, by the config's price for a GB
	Currency  *string      `json:"currency"`
}

// savedFile is one file in save --json and --watch --json.
type savedFile struct {
	Path  string `json:"path"`
	To    string `json:"to"`
	Size  int64  `json:"size"`
	Error string `json:"error,omitempty"`
}

// savedAll is save --json.
type savedAll struct {
	Artifacts []saving    `json:"artifacts"`
	Saved     int         `json:"saved"`
	Failed    []savedFile `json:"failed"`
}

func (a *app) saveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "save NAME [flags]",
		Short: "Bring an instance's artifacts to their destinations, proven",
		Long: "Brings what the config's artifacts name to where they must be before the instance may go: a folder\n" +
			"here, s3://bucket/prefix, or another instance. To a bucket the bytes go from the instance directly,\n" +
			"in parts that a later run goes on with, and no key is ever there; what arrived is compared by SHA-256.\n" +
			"See docs/artifacts.md for the [bucket] table and the keys.",
		Example: "  rentop save a100 --dry-run\n  rentop save a100\n  rentop save a100 --watch\n  rentop save --save-key my-bucket",
	}
	f := c.Flags()
	dry := f.Bool("dry-run", false, "say what would be sent and what its traffic costs, and send nothing")
	asJSON := jsonFlag(c)
	watch := f.Bool("watch", false, "then save files as they are finished there, until Ctrl-C; never one that is being written")
	var how session.PullWatch
	f.DurationVar(&how.Every, "interval", time.Minute, "look so often, where the artifact says no every; with --watch")
	f.DurationVar(&how.Settle, "settle", 10*time.Second, "take a file that has not changed for so long; with --watch")
	bucket := f.String("save-key", "", "ask for the key of `BUCKET`, or read its id and secret as two lines, and keep it in the keyring")
	c.Args = func(_ *cobra.Command, args []string) error {
		if want := 1; len(args) != want && *bucket == "" {
			return badUsage("save takes one NAME")
		}
		if len(args) > 0 && *bucket != "" {
			return badUsage("--save-key BUCKET goes without a NAME")
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *bucket != "":
			return a.fleet(cmd.Context(), func(f *session.Fleet) error { return a.saveBucketKey(cmd.Context(), f, *bucket) })
		case *watch && *dry:
			return badUsage("--watch does not go with --dry-run")
		case !*watch && (f.Changed("interval") || f.Changed("settle")):
			return badUsage("--interval and --settle go with --watch")
		case how.Every < 0 || how.Settle < 0:
			return badUsage("--interval and --settle are times such as 5s")
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			if *watch {
				return a.saveWatch(cmd.Context(), s, how, *asJSON)
			}
			return a.save(cmd.Context(), s, *dry, *asJSON)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return a.connects(c)
}

func (a *app) save(ctx context.Context, s *session.Session, dry, asJSON bool) error {
	lines, err := s.PlanSave(ctx)
	if err != nil {
		return err
	}
	out := savedAll{Artifacts: []saving{}, Failed: []savedFile{}}
	for _, l := range lines {
		out.Artifacts = append(out.Artifacts, savingOf(l))
		if !asJSON {
			fmt.Fprintln(a.Out, saveLine(l))
		}
	}
	if dry {
		if asJSON {
			return printJSON(a.Out, out)
		}
		return nil
	}
	all := 0
	for _, l := range lines {
		all += l.Files
	}
	line := newProgress(a.Err, a.Now)
	n, last := 0, a.Now()
	saved, _, err := s.SaveArtifacts(ctx, lines, func(f session.SavedFile) {
		n++
		if f.Err != nil {
			out.Failed = append(out.Failed, savedFileOf(f))
			line.clear()
			a.note("failed: %s: %s", remote.Clean(f.Path), remote.Clean(f.Err.Error()))
		} else if now := a.Now(); now.Sub(last) >= line.every {
			last = now
			line.line(fmt.Sprintf("%s of %s files: %s", commas(n), commas(all), f.Path))
		}
	})
	line.clear()
	out.Saved = saved
	if asJSON {
		err = errors.Join(err, printJSON(a.Out, out))
	} else if saved > 0 {
		fmt.Fprintf(a.Out, "at their destinations, equal by SHA-256: %s\n", someFiles(saved))
	} else if err == nil && len(out.Failed) == 0 {
		fmt.Fprintln(a.Out, "nothing was missing")
	}
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("%s: save: %d failed, each named above with its reason. Mend that and run it again: only what is missing is sent", s.Name(), len(out.Failed))
	}
	return err
}

// someFiles counts files.
func someFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return commas(n) + " files"
}

func savingOf(l session.SaveLine) saving {
	out := saving{Path: l.Artifact.Path, To: l.Artifact.To, Files: l.Files, Bytes: l.Bytes, Lack: l.Lack, LackBytes: l.LackBytes, Host: l.Host, Internal: l.Internal}
	if t := l.Estimate.Traffic; t != nil {
		out.Traffic, out.Currency = rate(t), &t.Currency
	}
	return out
}

func savedFileOf(f session.SavedFile) savedFile {
	out := savedFile{Path: f.Path, To: f.Artifact.To, Size: f.Size}
	if f.Err != nil {
		out.Error = remote.Clean(f.Err.Error())
	}
	return out
}

// saveLine is one artifact: what goes where, over which traffic, for how much.
func saveLine(l session.SaveLine) string {
	way := ""
	if l.Host != "" {
		way = ", over the public address " + l.Host
		if l.Internal {
			way = ", to " + l.Host + " over its provider's own network: no public traffic"
		}
	}
	traffic := orUnknown(l.Estimate.Traffic)
	if l.Estimate.Traffic != nil {
		traffic = "at most " + traffic
	}
	return remote.Clean(fmt.Sprintf("%s → %s: %s, %s; to send %s, %s%s; traffic %s",
		l.Artifact.Path, l.Artifact.To, someFiles(l.Files), sync.Size(l.Bytes), someFiles(l.Lack), sync.Size(l.LackBytes), way, traffic))
}

// saveEvent is a SaveEvent in JSON.
type saveEvent struct {
	Event   string      `json:"event"`
	At      time.Time   `json:"at"`
	Path    string      `json:"path,omitempty"`
	To      string      `json:"to,omitempty"`
	Files   []savedFile `json:"files,omitempty"`
	Dropped []string    `json:"dropped,omitempty"`
	Error   string      `json:"error,omitempty"`
}

func (a *app) saveWatch(ctx context.Context, s *session.Session, how session.PullWatch, asJSON bool) error {
	err := s.WatchSave(ctx, how, func(e session.SaveEvent) {
		if asJSON {
			_ = printLine(a.Out, saveEventOf(e)) // a reader that is gone ends us by its signal
			return
		}
		a.saveEvent(s.Name(), e)
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

func saveEventOf(e session.SaveEvent) saveEvent {
	out := saveEvent{Event: string(e.Kind), At: e.At.UTC().Truncate(time.Millisecond), Path: e.Artifact.Path, To: e.Artifact.To, Dropped: e.Dropped}
	for _, f := range e.Saved {
		out.Files = append(out.Files, savedFileOf(f))
	}
	if e.Err != nil {
		out.Error = remote.Clean(e.Err.Error())
	}
	return out
}

func (a *app) saveEvent(name string, e session.SaveEvent) {
	at := e.At.Format("15:04:05")
	switch e.Kind {
	case session.WatchLost:
		a.note("%s it did not go, trying again: %s", at, remote.Clean(e.Err.Error()))
	case session.WatchReady:
		a.note("%s watching %s: files are saved as they are finished there; Ctrl-C ends it", at, name)
	default:
		n, size := 0, int64(0)
		for _, f := range e.Saved {
			if f.Err != nil {
				a.note("%s failed: %s: %s", at, remote.Clean(f.Path), remote.Clean(f.Err.Error()))
				continue
			}
			n, size = n+1, size+f.Size
		}
		if n > 0 {
			fmt.Fprintf(a.Out, "%s saved %s, %s, to %s\n", at, someFiles(n), sync.Size(size), remote.Clean(e.Artifact.To))
		}
		for _, d := range e.Dropped {
			fmt.Fprintf(a.Out, "%s removed the older checkpoint %s from %s\n", at, remote.Clean(d), remote.Clean(e.Artifact.To))
		}
	}
}

// saveBucketKey takes a key from the person, unseen, or from a pipe.
func (a *app) saveBucketKey(ctx context.Context, f *session.Fleet, bucket string) error {
	var key store.Key
	if isTerminal(a.In) {
		for _, q := range []struct {
			what string
			to   *string
		}{{"access key id", &key.ID}, {"secret", &key.Secret}} {
			ans, err := a.person.Ask(ctx, remote.Question{Kind: remote.AskInteractive, Host: bucket, Prompt: q.what + " of the bucket " + bucket + ":"})
			if err != nil {
				return err
			}
			*q.to = strings.TrimSpace(ans.Text)
		}
	} else {
		in := bufio.NewScanner(io.LimitReader(a.In, 64<<10))
		for _, to := range []*string{&key.ID, &key.Secret} {
			if in.Scan() {
				*to = strings.TrimSpace(in.Text())
			}
		}
		if err := in.Err(); err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
	}
	if err := f.SaveBucketKey(bucket, key); err != nil {
		return err
	}
	a.note("the key of %s is in the keyring", remote.Clean(bucket))
	return nil
}
