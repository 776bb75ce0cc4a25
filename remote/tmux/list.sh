header
for d in "$J"/*/; do
	[ -d "$d" ] || continue
	d=${d%/}
	one "${d##*/}"
done
echo rentop-jobs-end
