#!/bin/sh
# A stand-in for nvidia-smi. The shapes of its lines are those of recorded outputs
# (H100 on driver 590.48.01, errors of 535.261.03); the values are made up. MODE says
# how it behaves.
mode=${MODE:-ok} query= apps= every= only=
for a; do
  case $a in
    --query-gpu=*) query=${a#*=};;
    --query-compute-apps=*) apps=1;;
    -l|-i) want=$a;;
    *) case $want in -l) every=$a;; -i) only=$a;; esac; want=;;
  esac
done
[ -n "$STARTS" ] && echo "$$ $*" >>"$STARTS"

if [ -n "$apps" ]; then
  case $mode in
    hang) exec sleep 600;;
    procs) echo "GPU-0, $PID, /usr/bin/python3, train.py, 20000 MiB"; echo "GPU-1, 4194000, [Not Found], [N/A]";;
  esac
  exit 0
fi

case $mode in
  hang) exec sleep 600;;
  none) echo "No devices were found"; exit 6;;
  driver) echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."; echo; exit 9;;
  lost) case $only in
      ''|*02:00.0) echo "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU"; exit 15;;
    esac;;
esac

value() { # field index
  case $1 in
    index) echo "$2";; uuid) echo "GPU-$2";; pci.bus_id) echo "00000000:0$(($2 + 1)):00.0";; count) echo "$gpus";;
    driver_version) echo 590.48.01;; name) echo "NVIDIA H100 80GB HBM3";;
    utilization.gpu) echo "97 %";; utilization.memory) echo "11 %";; memory.used) echo "19818 MiB";; memory.total) echo "81559 MiB";;
    memory.reserved) echo "479 MiB";; power.draw) echo "631.95 W";; power.limit) echo "700.00 W";; temperature.gpu) echo 59;;
    temperature.gpu.tlimit) echo 26;; clocks.current.sm|clocks.max.sm) echo "1980 MHz";; clocks.*.memory) echo "2619 MHz";;
    pstate) echo P0;; clocks_*_reasons.active) echo 0x0000000000000044;; pcie.link.gen.current) echo 5;; pcie.link.width.current) echo 16;;
    ecc.*) echo 0;; mig.mode.current) echo Disabled;; *) echo "[N/A]";;
  esac
}
for f in $(echo "$query" | tr , ' '); do
  case $mode.$f in
    old.memory.reserved|old.temperature.gpu.tlimit|old.clocks_throttle_reasons.active)
      echo "Field \"$f\" is not a valid field to query."; exit 2;;
  esac
done

tick() {
  i=0
  while [ $i -lt $gpus ]; do
    case $only in ''|*"0$((i + 1)):00.0") row=; for f in $(echo "$query" | tr , ' '); do row="$row, $(value "$f" $i)"; done; echo "${row#, }";; esac
    i=$((i + 1))
  done
}
gpus=2
echo "$query" | sed 's/,/, /g; s/clocks_throttle/clocks_event/; s/utilization.gpu/utilization.gpu [%]/'
[ -z "$every" ] && { tick; exit 0; }
n=0
while :; do
  case $mode.$n in
    garbage.1) echo "[HAMI-core Msg(4160:140:libvgpu.c:836)]: Initializing....., 1, 2"; printf '0, GPU-0, half a'; sleep 1; echo;;
    dies.1) exit 255;;
    shrink.2) gpus=1;;
  esac
  tick
  n=$((n + 1)); sleep 1
done
