# off.sh: the guard ends itself, and with it what starts it again; one that does not
# answer is killed.
pids
(: >"$D/off") 2>/dev/null || [ ! -d "$D" ] || { echo 'fail cannot write in ~/.rentop/guard: is the disk full?'; exit 0; }
n=0
while alive "$P" "$S" && [ $n -lt 100 ]; do
	sleep 0.1 2>/dev/null || { sleep 1; n=$((n + 9)); }
	n=$((n + 1))
done
if alive "$P" "$S"; then
	alive "$LP" "$LS" && kill -9 "$LP" 2>/dev/null
	kill -9 "$P" 2>/dev/null
	sleep 1
fi
