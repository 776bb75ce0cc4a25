package command

import (
	"bytes"
	"io"

	"github.com/spf13/cobra"

	"rentop/session"
)

func (a *app) logsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "logs NAME JOB [flags]",
		Short: "Print a job's log",
		Long: "Prints a job's log from its beginning; JOB is an id, its beginning, or a name (its newest job).\n" +
			"On a terminal escape sequences are taken out; into a file or a pipe they stay.",
		Args: cobra.ExactArgs(2),
	}
	follow := c.Flags().BoolP("follow", "f", false, "go on until the job ends, over any cut of the connection")
	from := c.Flags().Int64("from", 0, "begin after this many `BYTES`")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *from < 0 {
			return badUsage("--from counts bytes from the log's beginning; it cannot be negative")
		}
		return a.session(cmd.Context(), args[0], func(s *session.Session) error {
			log := a.newLog()
			_, err := s.Follow(cmd.Context(), args[1], *from, *follow, log)
			log.end()
			if cmd.Context().Err() != nil {
				return nil
			}
			return err
		})
	}
	c.ValidArgsFunction = a.jobNames
	return a.connects(c)
}

// log is where a job's log goes: cleaned on a terminal, and with plain line
// ends everywhere, since the job's own terminal made \r\n of each.
type log struct {
	out  io.Writer
	held bool // a \r that may belong to a \n
}

func (a *app) newLog() *log {
	if isTerminal(a.Out) {
		return &log{out: newCleaner(a.Out)}
	}
	return &log{out: a.Out}
}

func (l *log) Write(p []byte) (int, error) {
	text := p
	if l.held {
		text = append([]byte{'\r'}, p...)
	}
	if l.held = bytes.HasSuffix(text, []byte{'\r'}); l.held {
		text = text[:len(text)-1]
	}
	if _, err := l.out.Write(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end writes what was held back.
func (l *log) end() {
	if l.held {
		l.held = false
		l.out.Write([]byte{'\r'})
	}
}
