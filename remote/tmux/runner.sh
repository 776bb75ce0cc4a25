# rentop's runner: starts one job once and records how it ended. POSIX sh.
# argv: the job's folder. The folder's files are of a fixed size where they are
# written here, and overwritten in place: a full disk cannot lose them.
cd "$1" || exit
mkdir claim 2>/dev/null || exit 0 # the one that runs it; a repeated start ends here
trap '' HUP
stat=$(cat "/proc/$$/stat") && stat=${stat##*) }
set -- $stat
start=${20}
stat=$(cat /proc/1/stat) && stat=${stat##*) }
set -- $stat
box=$(cat /proc/sys/kernel/random/boot_id)/${20}
if [ -n "$TMUX_PANE" ]; then pane=1; stty -ixon 2>/dev/null; else pane=0; fi
printf '%-119s\n' "$$ $start $(date +%s) $pane $box" 1<>pid
unset TMUX TMUX_PANE SSH_CONNECTION SSH_CLIENT SSH_TTY
if command -v script >/dev/null 2>&1; then
	RENTOP_PTY=1
	export RENTOP_PTY
	{
		script -qfec 'exec sh ./inner' /dev/null
		printf '%-7s\n' $? 1<>rc
	} 2>&1 | tee -a log 2>/dev/null
else
	{
		sh ./inner
		printf '%-7s\n' $? 1<>rc
	} 2>&1 | tee -a log 2>/dev/null
fi
# What outlives the job's own end without a log (script was killed) ends now.
read -r rc <rc
if [ "${RENTOP_PTY:-}" ] && [ "$rc" = 137 ]; then
	mark=$(cat mark)
	for p in $(grep -lsF "RENTOP_JOB=$mark" /proc/[0-9]*/environ); do
		p=${p#/proc/}
		kill -s KILL "${p%/environ}" 2>/dev/null
	done
fi
printf '%-39s\n' "$rc $(date +%s)" 1<>exit
umask 077
{ IFS= read -r p <pid && IFS= read -r x <exit && settle "$PWD" "$p" "$x" "$(facts "$PWD")"; } 2>/dev/null
