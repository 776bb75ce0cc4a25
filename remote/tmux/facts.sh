# facts DIR: what stays as it is once a job has ended, a line a field.
facts() {
	printf 'size %s\n' "$(wc -c <"$1/log")"
	printf 'last %s\n' "$(tail -c 600 "$1/log" | od -An -v -tx1 | tr -d ' \n')"
	printf 'spec %s\n' "$(head -c 70000 "$1/spec")"
}
# settle DIR PID EXIT FACTS: keeps an ended job's facts in one file, so that lists
# need no process for it. It is believed only beside the same PID and EXIT lines and
# a log of the same size, and whole; how the job ended is never taken from it.
settle() {
	[ ! -e "$1/sum" ] || return 0
	( # whoever settles a job, its log is for its owner alone
		umask 077
		printf 'sum %s\npid %s\nexit %s\n%s\nsum-end\n' "${1##*/}" "$2" "$3" "$4" >"$1/.sum.$$" && mv -f "$1/.sum.$$" "$1/sum" || rm -f "$1/.sum.$$"
	) 2>/dev/null
}
