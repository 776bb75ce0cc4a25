U=$(umask)
umask 077
J=$HOME/.rentop/jobs
# alive PID START: whether that very process runs.
alive() {
	[ "$1" -gt 0 ] 2>/dev/null || return 1
	{ IFS= read -r s <"/proc/$1/stat"; } 2>/dev/null || return 1
	s=${s##*) }
	want=$2
	set -- $s
	[ "$1" != Z ] && [ "${20}" = "$want" ]
}
# one ID: its record, a line a field. The runner's life is read before its last
# word, so an end between the two is not taken for a loss.
one() {
	d=$J/$1
	[ -f "$d/spec" ] || return 0
	printf 'job %s\n' "$1"
	p= x= b= k= a=0
	{ IFS= read -r p <"$d/pid"; } 2>/dev/null
	set -f # a field is no pattern
	set -- $p
	alive "$1" "$2" && a=1
	set +f
	{
		IFS= read -r x <"$d/exit"
		IFS= read -r b <"$d/begun"
		IFS= read -r k <"$d/kill"
	} 2>/dev/null
	printf 'alive %s\npid %s\nexit %s\nbegun %s\nkill %s\n' "$a" "$p" "$x" "$b" "$k"
	printf 'size %s\n' "$(wc -c <"$d/log")"
	printf 'last %s\n' "$(tail -c 600 "$d/log" | od -An -v -tx1 | tr -d ' \n')"
	printf 'spec %s\nend\n' "$(head -c 70000 "$d/spec")"
}
header() {
	s=$(cat /proc/1/stat)
	s=${s##*) }
	set -- $s
	printf 'rentop-jobs 1\nnow %s\nbox %s/%s\n' "$(date +%s)" "$(cat /proc/sys/kernel/random/boot_id)" "${20}"
}
# marked MARK: the processes of a job, all its children, also in other sessions.
marked() {
	grep -lsF "RENTOP_JOB=$1" /proc/[0-9]*/environ | sed 's|^/proc/||; s|/environ$||'
}
