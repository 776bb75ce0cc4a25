# rentop's collector: runs on the instance, under any POSIX sh, and prints what it
# reads. Lines that begin with \001 are ours, each written at once; all others are
# nvidia-smi's own. It lives while stdin does: an empty line every few seconds renews
# its lease, and without one it ends with all that it started.
# Set before: mode every lease fields smi vouch

LC_ALL=C; export LC_ALL
nl='
'
say() { printf '\001%.3500s\n' "$*"; }
one() { v=; { read -r v <"$1"; } 2>/dev/null; }

limit=
if timeout 2 true 2>/dev/null; then limit='timeout 25'; fi

if [ -z "$smi" ]; then
  for smi in "$(command -v nvidia-smi 2>/dev/null)" /usr/bin/nvidia-smi /usr/lib/wsl/lib/nvidia-smi /usr/local/nvidia/bin/nvidia-smi /run/nvidia/driver/usr/bin/nvidia-smi ''; do
    [ -n "$smi" ] && [ -x "$smi" ] && break
  done
fi

other=
if [ -z "$smi" ]; then
  for t in amd-smi rocm-smi npu-smi; do command -v $t >/dev/null 2>&1 && { other=$t; break; }; done
fi

# cgroup: v2, v1, or none that limits us.
cg=0
if [ -r /sys/fs/cgroup/memory.max ] || [ -r /sys/fs/cgroup/cpu.max ]; then cg=2
elif [ -r /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then cg=1; fi

# keyed FILE KEY: the number after KEY, in v.
keyed() {
  v=
  { while read -r k n; do [ "$k" = "$2" ] && { v=$n; break; }; done <"$1"; } 2>/dev/null
}

cgroup() {
  lim=; cur=; ina=; quo=; per=; use=
  if [ $cg = 2 ]; then
    one /sys/fs/cgroup/memory.max; lim=$v
    case $lim in ''|max) ;; *)
      one /sys/fs/cgroup/memory.current; cur=$v
      keyed /sys/fs/cgroup/memory.stat inactive_file; ina=$v;;
    esac
    one /sys/fs/cgroup/cpu.max; quo=${v%% *}; per=${v##* }
    keyed /sys/fs/cgroup/cpu.stat usage_usec; use=$v
  elif [ $cg = 1 ]; then
    one /sys/fs/cgroup/memory/memory.limit_in_bytes; lim=$v
    one /sys/fs/cgroup/memory/memory.usage_in_bytes; cur=$v
    keyed /sys/fs/cgroup/memory/memory.stat total_inactive_file; ina=$v
    one /sys/fs/cgroup/cpu/cpu.cfs_quota_us; quo=$v
    one /sys/fs/cgroup/cpu/cpu.cfs_period_us; per=$v
    one /sys/fs/cgroup/cpuacct/cpuacct.usage; use=${v%???}
  fi
}

# host prints one line of counters without starting a process.
host() {
  one /proc/uptime; up=${v%% *}
  one /proc/loadavg; load=${v%% *}
  one /proc/stat; cpu=; for k in ${v#cpu}; do cpu=$cpu,$k; done
  mem=; n=0
  { while [ $n -lt 5 ] && read -r k v u; do mem="$mem,$k$v"; n=$((n + 1)); done </proc/meminfo; } 2>/dev/null
  net=; n=0
  { while [ $n -lt 40 ] && IFS=': ' read -r i rx u u u u u u u tx u; do
    case $i in
      Inter-*|face*|lo|veth*|docker*|br-*|virbr*|cali*|cni*|flannel*|bond*|dummy*) ;;
      *) net="$net,$i:$rx:$tx"; n=$((n + 1));;
    esac
  done </proc/net/dev; } 2>/dev/null
  cgroup
  say "h up=$up load=$load cpu=${cpu#,} mem=${mem#,} cg=$lim,$cur,$ina,$quo,$per,$use net=${net#,}"
}

# without NAME: takes a field that this driver does not know out of the query; the
# throttle reasons have a newer name.
without() {
  old=$fields; new=
  IFS=,; set -f; set -- "$1" $fields; set +f; unset IFS
  bad=$1; shift
  for f; do
    if [ "$f" = "$bad" ]; then
      [ "$f" = clocks_throttle_reasons.active ] || continue
      f=clocks_event_reasons.active
    fi
    new=$new,$f
  done
  fields=${new#,}
  [ "$fields" != "$old" ] && [ -n "$fields" ]
}

# probe asks once, until nvidia-smi takes the query: rc and out are its answer.
probe() {
  while :; do
    out=$($limit "$smi" "$@" --query-gpu="$fields" --format=csv 2>&1 </dev/null); rc=$?
    case $out in
      *'Field "'*'" is not a valid field to query'*)
        bad=${out#*Field \"}; without "${bad%%\"*}" || return 0;;
      *) return 0;;
    esac
  done
}

# each asks every GPU by its bus id, because one that is lost spoils the common answer.
each() {
  all=$out; allrc=$rc; n=0
  say "f $fields"
  for g in /proc/driver/nvidia/gpus/*; do
    [ -d "$g" ] || continue
    b=${g##*/}; n=$((n + 1))
    probe -i "$b"
    if [ $rc = 0 ]; then printf '%s\n' "$out"; else say "l $b ${out%%$nl*}"; fi
  done
  if [ $n -gt 0 ]; then say "q 0"; else printf '%s\n' "$all"; say "q $allrc"; fi
}

# ask is the first answer, and all of it where only one is wanted.
ask() {
  probe
  case $out in
    *'Unable to determine the device handle'*|*'GPU is lost'*) [ $rc = 0 ] || { each; return 1; };;
  esac
  say "f $fields"
  printf '%s\n' "$out"
  say "q $rc"
  return $rc
}

# stream keeps one nvidia-smi running; after its end it asks again, unhurried.
stream() {
  trap 'kill $p $z 2>/dev/null; exit' TERM HUP
  p=; z=
  while kill -0 $$ 2>/dev/null; do
    if ask; then
      "$smi" --query-gpu="$fields" --format=csv -l "$every" 2>&1 </dev/null & p=$!
      wait $p; rc=$?; p=
      say "x $rc" || exit
    fi
    n=0
    while [ $n -lt 5 ]; do sleep 1 </dev/null >/dev/null 2>&1 & z=$!; wait $z; n=$((n + 1)); done
  done
}

# people prints who the PIDs are: ps, or /proc where there is none.
people() {
  ps -o pid= -o user= -o etime= -o args= -p "${1#,}" 2>/dev/null | while IFS= read -r l; do say "p $l"; done
  command -v ps >/dev/null 2>&1 && ps -o pid= -p $$ >/dev/null 2>&1 && return
  for p in $pids; do
    [ -r "/proc/$p/cmdline" ] || continue
    say "p $p $(stat -c %U "/proc/$p" 2>/dev/null || echo -) - $(tr '\0\n' '  ' <"/proc/$p/cmdline" 2>/dev/null)"
  done
}

# apps polls the processes that hold a GPU.
apps() {
  out=$($limit "$smi" --query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory --format=csv,noheader 2>&1 </dev/null); rc=$?
  list=; pids=
  say B
  while IFS= read -r l; do
    say "a $l"
    p=${l#*, }; p=${p%%,*}
    case $p in ''|*[!0-9]*) ;; *) [ ${#p} -lt 11 ] && { list=$list,$p; pids="$pids $p"; };; esac
  done <<EOF
$out
EOF
  if [ -n "$list" ]; then
    people "$list"
    [ "$vouch" = 1 ] && for p in $pids; do
      ls -l "/proc/$p/fd" 2>/dev/null | grep -qE 'nvidia|/dxg' && say "v $p"
    done
  fi
  say "A $rc"
}

# part LETTER: says what stands in out, in lines that fit.
part() {
  printf '%s\n' "$out" | fold -w 3000 | while IFS= read -r l; do say "o $1$l"; done
}

# others polls another vendor's tool.
others() {
  say "O $other"
  case $other in
  amd-smi)
    out=$($limit amd-smi static --asic --bus --limit --driver --json 2>/dev/null </dev/null); part s
    out=$($limit amd-smi process --json 2>/dev/null </dev/null); part p
    out=$($limit amd-smi metric --usage --power --clock --temperature --mem-usage --pcie --ecc --fan --json 2>&1 </dev/null); rc=$?;;
  rocm-smi)
    out=$($limit rocm-smi --showproductname --showid --showuniqueid --showbus --showdriverversion --showuse --showmeminfo vram \
      --showtemp --showpower --showmaxpower --showfan --showclocks --json 2>&1 </dev/null); rc=$?;;
  npu-smi) out=$($limit npu-smi info 2>&1 </dev/null); rc=$?;;
  esac
  part m
  say "P $rc"
}

disks() {
  say D
  $limit df -Pk 2>/dev/null | while IFS= read -r l; do say "d $l"; done
  $limit df -Pi 2>/dev/null | while IFS= read -r l; do say "i $l"; done
  say E
}

cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc 2>/dev/null || grep -c '^processor' /proc/cpuinfo 2>/dev/null)
say "s cpus=$cpus"
[ -n "$smi$other" ] || say "q 127"

if [ "$mode" = once ]; then
  host
  if [ -n "$smi" ]; then ask; apps; elif [ -n "$other" ]; then others; fi
  disks
  sleep 1
  host
  say Z
  exit 0
fi

exec 3<&0 </dev/null
left=$lease; kids=; ap=; dp=
# bye ends all that runs below this shell, also what a hanging driver holds up.
bye() {
  trap '' TERM HUP INT PIPE USR1
  below=" $$ "; more=1
  while [ -n "$more" ]; do
    more=
    for f in /proc/[0-9]*/stat; do
      one "$f"; p=${v%% *}
      v=${v##*) }; v=${v#* }; v=${v%% *}
      case $below in *" $p "*) continue;; esac
      case $below in *" ${v:-none} "*) below="$below$p "; more=1;; esac
    done
  done
  kill $kids $ap $dp ${below#" $$ "} 2>/dev/null
  exit 0
}
trap 'left=$lease' USR1
trap bye TERM HUP INT PIPE
(trap - USR1; while read -r l; do kill -USR1 $$ || exit; done; kill $$) <&3 >/dev/null 2>&1 & kids=$!
exec 3<&-
if [ -n "$smi" ]; then (stream) & kids="$kids $!"; fi
tick=0
while [ "$left" -gt 0 ]; do
  host || bye
  # One poll of each kind at a time: one that hangs is never started again.
  if [ -n "$smi" ] && [ $((tick % 5)) -lt "$every" ]; then kill -0 $ap 2>/dev/null || { (apps) & ap=$!; }; fi
  if [ -n "$other" ] && [ $((tick % 5)) -lt "$every" ]; then kill -0 $ap 2>/dev/null || { (others) & ap=$!; }; fi
  if [ $((tick % 30)) -lt "$every" ]; then kill -0 $dp 2>/dev/null || { (disks) & dp=$!; }; fi
  sleep "$every"
  tick=$((tick + every)); left=$((left - every))
done
bye
