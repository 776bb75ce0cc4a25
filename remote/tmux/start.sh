# start.sh: expects lib.sh, and ID, MARK, and functions that print the files' contents: f_cmd, f_env, …
trap '' HUP
fail() { printf 'fail %s\n' "$1"; exit 0; }
D=$J/$ID
mkdir -p "$D" || fail "cannot make $D"
# put FILE: stdin becomes the file's whole content, or it stays as it was.
put() {
	cat 2>/dev/null >"$D/.$1.$$" && mv -f "$D/.$1.$$" "$D/$1" && return
	rm -f "$D/.$1.$$"
	printf 'fail cannot write in %s: is the disk full?\n' "$D"
	return 1
}
# once FILE FORMAT: makes it, never over what a runner wrote after another start.
once() {
	(set -C; printf "$2" '' 2>/dev/null >"$D/$1") 2>/dev/null && return
	[ -s "$D/$1" ] && return
	rm -f "$D/$1"
	printf 'fail cannot write in %s: is the disk full?\n' "$D"
	exit 0
}
if [ ! -d "$D/claim" ]; then
	[ ! -f "$D/sum" ] || rm -f "$D/sum" # of another job that had the name
	(eval "cd $(f_dir)") 2>/dev/null || { rmdir "$D"; fail "no such folder on the instance: $(f_dir)"; }
	f_cmd | put cmd || exit 0
	f_env | put env || exit 0
	f_dir | put dir || exit 0
	f_runner | put runner || exit 0
	f_inner | put inner || exit 0
	printf '%s\n' "$MARK" | put mark || exit 0
	printf '%s\n' "${SHELL:-/bin/sh}" | put shell || exit 0
	once pid '%-119s\n'
	once rc '%-7s\n'
	once exit '%-39s\n'
	once begun '0%s'
	once kill '0%s'
	: >>"$D/log" || fail "cannot write in $D"
	f_spec | put spec || exit 0
	started=
	umask "$U" # the job's own
	if command -v tmux >/dev/null 2>&1; then
		f_conf | { cat >"$J/../.conf.$$" && mv -f "$J/../.conf.$$" "$J/../tmux.conf"; }
		unset TMUX TMUX_PANE
		tmux -u -L rentop -f "$J/../tmux.conf" new-session -d -s "job_$ID" -x 200 -y 50 sh "$D/runner" "$D" </dev/null >/dev/null 2>&1 && started=1
	fi
	if [ -z "$started" ]; then
		if command -v setsid >/dev/null 2>&1; then
			setsid sh "$D/runner" "$D" </dev/null >/dev/null 2>&1 &
		else
			sh "$D/runner" "$D" </dev/null >/dev/null 2>&1 &
		fi
	fi
fi
# Proof: the job's shell came to the command, or the job has ended.
n=0
while [ $n -lt 300 ]; do
	read -r x <"$D/exit"
	[ "$(cat "$D/begun")" = 0 ] && [ -z "$x" ] || break
	sleep 0.05 2>/dev/null || { sleep 1; n=$((n + 19)); }
	n=$((n + 1))
done
header
one "$ID"
echo rentop-jobs-end
