# follow.sh: expects lib.sh, ID and FROM. Ends when the job has ended, or when
# stdin does: nothing is left running behind a cut connection.
D=$J/$ID
[ -f "$D/log" ] || { echo 'no such job' >&2; exit 44; }
exec 3<&0
tail -c +$((FROM + 1)) -f "$D/log" 3<&- &
T=$!
cat <&3 >/dev/null 2>&1 &
C=$!
(
	exec 3<&-
	while :; do
		p=$(cat "$D/pid")
		alive ${p%% *} $(set -- $p; echo "$2") || break
		sleep 0.5 2>/dev/null || sleep 1
	done
	kill -s TERM $C
) >/dev/null 2>&1 &
W=$!
exec 3<&-
wait $C
kill -s TERM $T $W
wait $T $W
exit 0
