# kill.sh: expects lib.sh, ID and GRACE in seconds.
trap '' HUP
D=$J/$ID
[ -f "$D/spec" ] || { printf 'fail no such job\n'; exit 0; }
read -r mark <"$D/mark"
read -r x <"$D/exit"
if [ -z "$x" ]; then
	printf 1 1<>"$D/kill"
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
while [ $n -lt 40 ]; do # the runner's last word
	read -r x <"$D/exit"
	p=$(cat "$D/pid")
	[ -z "$x" ] && alive ${p%% *} $(set -- $p; echo "$2") || break
	sleep 0.05 2>/dev/null || sleep 1
	n=$((n + 1))
done
header
one "$ID"
echo rentop-jobs-end
