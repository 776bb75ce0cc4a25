package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"rentop/remote"
	"rentop/session"
)

func (a *app) execCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "exec NAME -- CMD [ARG …]",
		Short: "Run a command there, with this input, output and its exit code",
		Long: "Runs a command on the instance and passes both streams and the exit code through. One word\n" +
			"after -- is a shell line; several are a command and exactly its arguments.",
		Example: "  rentop exec a100 -- nvidia-smi -L\n  rentop exec a100 -- 'cd project && git status' \n  tar c . | rentop exec a100 -- 'tar x -C ~/project'",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), args[0], func(s *session.Session) error {
				err := s.Exec(cmd.Context(), line(args[1:]), a.In, a.Out, a.Err)
				var ended *remote.ExitError
				if errors.As(err, &ended) {
					return exitWith(ended.Code)
				}
				return err
			})
		},
		ValidArgsFunction: a.instanceNames,
	}
	return a.connects(c)
}

// line makes one shell line: a single word is one already, several are a
// command and its arguments.
func line(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = remote.Quote(w)
	}
	return strings.Join(quoted, " ")
}
