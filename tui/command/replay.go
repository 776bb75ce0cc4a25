package command

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"rentop/session/record"
)

func (a *app) replayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "replay FILE [flags]",
		Short: "Show a recording on the screens, by its own clock",
		Long: "Shows what rentop record wrote, on the real screens: space pauses, left and right seek, + and - change\n" +
			"the speed. Nothing can be done in it, and it needs no connection. With --json it prints what the file is.",
		Args: cobra.ExactArgs(1),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := record.Open(args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return errors.Join(printJSON(a.Out, aboutRecording(r)), r.Close())
		}
		err = a.replay(cmd, r)
		return errors.Join(err, r.Close())
	}
	return c
}

func (a *app) replay(cmd *cobra.Command, r *record.Recording) error {
	if err := a.needScreen(); err != nil {
		return err
	}
	p, err := record.NewPlayer(r)
	if err != nil {
		return err
	}
	if n := r.Cut(); n > 0 {
		a.note("the last %s of the file cannot be read: it was cut off, or is damaged", counted(int(n), "byte"))
	}
	return a.Replay(cmd.Context(), p)
}

// recorded is a file in replay --json. Names are added, never changed.
type recorded struct {
	Rentop   string     `json:"rentop"`
	Begin    *time.Time `json:"begin"`
	End      *time.Time `json:"end"`
	Views    int        `json:"views"`
	Redacted bool       `json:"redacted"`
	Cut      int64      `json:"cut_bytes"` // at the end, that cannot be read
}

func aboutRecording(r *record.Recording) recorded {
	return recorded{r.About().Rentop, instant(r.Time(0)), instant(r.Time(r.Len() - 1)), r.Len(), r.About().Redacted, r.Cut()}
}
