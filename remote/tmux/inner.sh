# The job itself, inside its terminal where there is one. POSIX sh.
RENTOP_JOB=$(cat mark)
RENTOP_DIR=$PWD
export RENTOP_JOB RENTOP_DIR
echo 500 >/proc/self/oom_score_adj 2>/dev/null # the job goes before its runner
[ -z "${RENTOP_PTY:-}" ] || [ "$(stty size 2>/dev/null)" != "0 0" ] || stty cols 120 rows 40 2>/dev/null
SHELL=$(cat shell)
export SHELL
command=$(cat cmd)
# ssh brings no locale, and fish then invents an LC_CTYPE that may not exist.
[ "${LC_ALL:-}${LANG:-}" ] || { unset LC_CTYPE; LANG=C.UTF-8; export LANG; }
. ./env
eval "cd $(cat dir)" || exit
# One that is killed while it starts does not come to its command.
wanted() { [ "$(cat "$RENTOP_DIR/kill")" != 1 ] || exit 143; }
wanted
case ${SHELL##*/} in
bash | zsh)
	# The environment of a person's shell (conda) is set up behind "is this
	# interactive?", so it is, where there is a terminal. It marks that it came to the
	# command; one whose start-up files end it is tried again as a plain login shell.
	if [ "${RENTOP_PTY:-}" ]; then
		unset RENTOP_PTY
		RENTOP_COMMAND=$command
		export RENTOP_COMMAND
		# In a subshell: an interactive shell ignores TERM, and says "logout" at its end.
		"$SHELL" -l -i -c 'trap "exec 2>/dev/null; exit 143" TERM; set +m; unset HISTFILE
rentop_c=$RENTOP_COMMAND; printf 1 1<>"$RENTOP_DIR/begun"; unset RENTOP_DIR RENTOP_COMMAND; ( eval "$rentop_c" )'
		rc=$?
		[ "$(cat "$RENTOP_DIR/begun")" = 0 ] || exit $rc
		wanted
	fi
	;;
esac
printf 1 1<>"$RENTOP_DIR/begun"
unset RENTOP_PTY RENTOP_DIR RENTOP_COMMAND
case ${SHELL##*/} in
csh | tcsh) exec "$SHELL" -c "$command" ;; # -l allows no -c
esac
exec "$SHELL" -l -c "$command"
