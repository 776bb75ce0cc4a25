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
# fields ID: its small files, without a process: p x b k, and a, whether its runner
# lives. That is read before its last word, so an end between the two is no loss.
fields() {
	d=$J/$1
	p= x= b= k= a=0
	{
		[ -f "$d/pid" ] && IFS= read -r p <"$d/pid"
		set -f # a field is no pattern
		set -- $p
		set +f
		alive "$1" "$2" && a=1
		[ -f "$d/exit" ] && IFS= read -r x <"$d/exit"
		[ -f "$d/begun" ] && IFS= read -r b <"$d/begun"
		[ -f "$d/kill" ] && IFS= read -r k <"$d/kill"
	} 2>/dev/null
}
# over: whether the job of these fields has ended for good: its runner wrote how, or
# ran before the box started.
over() {
	set -f
	set -- $x
	case $#.$1.$2 in
	2.*[!0-9.]*) ;;
	2.*) { [ "$1" -le 255 ] && [ "$2" -gt 0 ]; } 2>/dev/null && set +f && return 0 ;;
	esac
	set -- $p
	set +f
	[ $# = 5 ] && [ "$5" != "$BOX" ]
}
# tell ID: the fields, a line each.
tell() {
	printf 'job %s\nalive %s\npid %s\nexit %s\nbegun %s\nkill %s\n' "$1" "$a" "$p" "$x" "$b" "$k"
}
# whole ID: the record of a job whose fields are read. An ended one is settled.
whole() {
	tell "$1"
	f=$(facts "$J/$1")
	printf '%s\nend\n' "$f"
	over && settle "$J/$1" "$p" "$x" "$f"
}
# one ID: its record.
one() {
	[ -f "$J/$1/spec" ] || return 0
	fields "$1"
	whole "$1"
}
header() {
	s=$(cat /proc/1/stat)
	s=${s##*) }
	set -- $s
	BOX=$(cat /proc/sys/kernel/random/boot_id)/${20}
	printf 'rentop-jobs 1\nnow %s\nbox %s\n' "$(date +%s)" "$BOX"
}
# marked MARK: the processes of a job, all its children, also in other sessions.
marked() {
	grep -lsF "RENTOP_JOB=$1" /proc/[0-9]*/environ | sed 's|^/proc/||; s|/environ$||'
}
