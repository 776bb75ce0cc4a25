package command

import (
	"time"

	"github.com/spf13/cobra"

	"rentop/session"
)

// alarmed is one alarm in alarms --json. Names are added, never changed.
type alarmed struct {
	Instance string     `json:"instance"`
	ID       string     `json:"id"` // the rule, and what it is about: "disk /data"
	Level    string     `json:"level"`
	Text     string     `json:"text"`
	Since    *time.Time `json:"since"`
	Ended    *time.Time `json:"ended"`    // null where its end was not seen
	EndSeen  bool       `json:"end_seen"` // false: it lasted when rentop ended, or lasts
}

func (a *app) alarmsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "alarms [NAME] [flags]",
		Short: "List what alarms have said",
		Long: "Lists what the alarms of an instance, or of all, have said while a rentop watched: from the ledger, without\n" +
			"a connection. An alarm without an end lasts, or lasted when rentop ended.",
		Example: "  rentop alarms a100 --since 24h",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON := jsonFlag(c)
	from := c.Flags().String("since", "7d", "only what lasted then or later: a date, a time, or such as `30d` or 12h ago")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		since, err := parseSince(*from, a.Now())
		if err != nil {
			return err
		}
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return a.fleet(cmd.Context(), func(f *session.Fleet) error {
			kept, err := f.Alarms(cmd.Context(), name, since)
			if err != nil {
				return err
			}
			list := []alarmed{}
			for _, k := range kept {
				list = append(list, alarmed{k.Instance, k.ID, k.Level.String(), k.Text.String(), instant(k.Since), instant(k.Ended), !k.Unseen})
			}
			if *asJSON {
				return printJSON(a.Out, list)
			}
			return a.printAlarms(list)
		})
	}
	c.ValidArgsFunction = a.instanceNames
	return c
}

func (a *app) printAlarms(list []alarmed) error {
	if len(list) == 0 {
		a.note("no alarm was said in this time")
		return nil
	}
	t := newTable("SINCE", "TOOK", "INSTANCE", "LEVEL", "ALARM", "WHAT").alignRight(1)
	for _, l := range list {
		took := "?"
		if l.Ended != nil {
			took = span(l.Ended.Sub(*l.Since))
		}
		t.add(l.Since.Local().Format("2006-01-02 15:04"), took, l.Instance, l.Level, l.ID, l.Text)
	}
	return t.print(a.Out)
}
