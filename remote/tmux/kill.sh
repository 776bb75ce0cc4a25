# kill.sh: expects lib.sh, ID and GRACE in seconds.
trap '' HUP
D=$J/$ID
[ -f "$D/spec" ] || { printf 'fail no such job\n'; exit 0; }
read -r mark <"$D/mark"
read -r x <"$D/exit"
if [ -z "$x" ]; then
	printf 1 1<>"$D/kill"
	# A job that no runner has claimed is claimed here: it never starts.
	if mkdir "$D/claim" 2>/dev/null; then
		header >/dev/null
		now=$(date +%s)
		printf '%-119s\n' "0 0 $now 0 $BOX" 1<>"$D/pid"
		printf '%-39s\n' "143 $now" 1<>"$D/exit"
	fi
	for p in $(marked "$mark"); do kill -s TERM "$p" 2>/dev/null; done
	n=0
	while [ $n -lt $((GRACE * 10)) ] && [ -n "$(marked "$mark")" ]; do
		sleep 0.1 2>/dev/null || { sleep 1; n=$((n + 9)); }
		n=$((n + 1))
	done
fi
n=0
while [ $n -lt 100 ]; do # those that fork faster than we look are met again
	list=$(marked "$mark")
	[ -n "$list" ] || break
	for p in $list; do kill -s KILL "$p" 2>/dev/null; done
	n=$((n + 1))
done
n=0
while [ $n -lt 200 ]; do # the runner's last word
	read -r x <"$D/exit"
	read -r p <"$D/pid"
	[ -z "$x" ] && { [ -z "$p" ] || alive ${p%% *} $(set -- $p; echo "$2"); } || break
	# one that was starting may have had no marked process until now
	for p in $(marked "$mark"); do kill -s KILL "$p" 2>/dev/null; done
	sleep 0.05 2>/dev/null || { sleep 1; n=$((n + 19)); }
	n=$((n + 1))
done
header
one "$ID"
echo rentop-jobs-end
