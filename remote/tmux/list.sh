# list.sh: expects lib.sh and MOST: those whose runner lives are all told, of the
# others so many, the last changed first (a folder changes with its job's start and
# end). A settled job's record leaves its facts to the logs and sums at the end, which
# take one process each for all jobs.
header
n=0 older=0 logs= sums=
if cd "$J" 2>/dev/null; then
	LC_ALL=C QUOTING_STYLE=literal
	export LC_ALL QUOTING_STYLE
	set -f
	IFS='
'
	set -- $(ls -t 2>/dev/null)
	set +f
	unset IFS # as it is without
	[ $# -gt 0 ] || set -- *
	for id; do
		case $id in -* | *[!A-Za-z0-9_-]*) continue ;; esac
		[ -f "$id/spec" ] && [ ${#id} -le 64 ] || continue
		fields "$id"
		if [ "$a" = 0 ]; then
			n=$((n + 1))
			[ $n -le "$MOST" ] || { older=$((older + 1)); continue; }
		fi
		if [ -f "$id/sum" ] && [ -f "$id/log" ] && over; then
			tell "$id"
			printf 'settled 1\nend\n'
			logs="$logs $id/log" sums="$sums $id/sum"
		else
			whole "$id"
		fi
	done
fi
printf 'older %s\nlogs\n' "$older"
[ -z "$logs" ] || ls -lnL $logs 2>/dev/null
echo sums
[ -z "$sums" ] || head -q -c 72000 $sums 2>/dev/null
printf '\nrentop-jobs-end\n'
