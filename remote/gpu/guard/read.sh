# read.sh: where the guard stands.
printf 'now %s\nbox %s\n' "$(date +%s)" "$BOX"
pids
[ ! -f "$D/off" ] || echo off
alive "$P" "$S" && printf 'process %s %s\n' "$P" "$S"
if [ -f "$D/state" ]; then
	printf 'state %s\n' "$(head -c 200000 "$D/state")"
	tail -n 12 "$D/journal" 2>/dev/null | head -c 60000 | while IFS= read -r l; do printf 'entry %s\n' "$l"; done
fi
echo rentop-guard-end
