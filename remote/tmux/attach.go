package tmux

import (
	"strings"

	"rentop/remote"
)

// AttachScript is a script for a terminal that shows job id live: its tmux
// session, or its log where it has none.
func AttachScript(id string) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	return `unset TMUX TMUX_PANE
if command -v tmux >/dev/null 2>&1 && tmux -u -L rentop has-session -t '=job_` + id + `' 2>/dev/null; then
	exec tmux -u -L rentop attach-session -d -t '=job_` + id + `'
fi
exec tail -c 100000 -f "$HOME/.rentop/jobs/` + id + `/log"
`, nil
}

// MeterFile is where a rentop that is attached keeps the line that the shell's
// status bar shows, below the login's home.
const MeterFile = ".rentop/meter"

// MeterScript writes the meter's line for AttachShell's status bar.
func MeterScript(line string) string {
	return `umask 077; mkdir -p ~/.rentop && printf '%s\n' ` + remote.Quote(meterText(line)) + ` >~/.rentop/.meter.$$ && mv -f ~/.rentop/.meter.$$ ~/` + MeterFile + "\n"
}

// meterText is one harmless line: tmux expands # and runs #(…).
func meterText(s string) string { return strings.ReplaceAll(remote.Short(s, 110), "#", "") }

// AttachShell is a script for a terminal: the person's own login shell inside a
// tmux session that outlives the connection, with the meter in its status line,
// which follows MeterScript. Without tmux it is the plain login shell.
func AttachShell(meter string) string {
	return MeterScript(meter) + `unset TMUX TMUX_PANE
if command -v tmux >/dev/null 2>&1; then
	printf %s ` + remote.Quote(text("tmux.conf")) + ` >~/.rentop/.conf.$$ && mv -f ~/.rentop/.conf.$$ ~/.rentop/tmux.conf
	tmux -u -L rentop -f ~/.rentop/tmux.conf new-session -d -s shell 2>/dev/null
	if tmux -u -L rentop has-session -t =shell 2>/dev/null; then
		tmux -L rentop set-option -t shell status-left '' 2>/dev/null
		tmux -L rentop set-option -t shell status-right '#(cat "$HOME/` + MeterFile + `") ' 2>/dev/null
		exec tmux -u -L rentop attach-session -d -t =shell
	fi
fi
case ${SHELL##*/} in
csh | tcsh | '') exec "${SHELL:-sh}" -l ;;
*) exec "$SHELL" -l -i ;;
esac
`
}
