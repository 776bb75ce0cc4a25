# The simulation behind the demo's nvidia-smi. A GPU's state is a function of the time
# and of the processes on it, so that a stream and a single question agree.

function sin01(x) { return (sin(x) + 1) / 2 }
function noise(t, g,   x) { x = sin(t * 12.9898 + g * 78.233) * 43758.5453; return x - int(x) }
function clamp(x, lo, hi) { return x < lo ? lo : x > hi ? hi : x }

# load reads the GPUs and who is on them: "pid gpu MiB util born name…" a process a GPU.
function load(   cmd, line, f, n, i) {
  n = 0; split("", P); split("", G)
  while ((getline line < (box "/gpus")) > 0) {
    split(line, f, "\t")
    i = f[1] + 0; G[++n] = i
    uuid[i] = f[2]; bus[i] = f[3]; total[i] = f[4]; reserved[i] = f[5]; idleW[i] = f[6]; maxW[i] = f[7]
    idleT[i] = f[8]; maxT[i] = f[9]; sm[i] = f[10]; mem[i] = f[11]; fan[i] = f[12]; gen[i] = f[13]; ecc[i] = f[14]
    driver = f[15]; name[i] = f[16]; hot[i] = f[17]
    used[i] = 0; want[i] = 0; since[i] = 0
  }
  close(box "/gpus")
  gpus = n; procs = 0
  cmd = "date +%s; for f in '" box "'/gpu.d/*; do kill -0 \"${f##*/}\" 2>/dev/null && cat \"$f\"; done"
  cmd | getline now
  while ((cmd | getline line) > 0) {
    split(line, f, " "); i = f[2] + 0
    if (!(i in uuid)) continue
    P[++procs] = i; pid[procs] = f[1]; pmem[procs] = f[3]
    sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ /, "", line); pname[procs] = line
    used[i] += f[3]; if (f[4] > want[i]) want[i] = f[4]
    if (!since[i] || f[5] < since[i]) since[i] = f[5]
  }
  close(cmd)
  for (n = 1; n <= gpus; n++) simulate(G[n])
}

function simulate(i,   age, ramp, warm, k) {
  if (!want[i]) {
    util[i] = 0; busy[i] = 0; watt[i] = idleW[i] + noise(now, i); temp[i] = idleT[i] + int(noise(int(now / 30), i) * 2)
    clk[i] = 210 + 135 * (idleW[i] > 40); why[i] = 1; return
  }
  age = clamp(now - since[i], 0, 1e9)
  ramp = 1 - exp(-(age + 1) / 6); warm = 1 - exp(-(age + 20) / 40)
  k = now % 60 < 3 ? 0.2 : 1   # a checkpoint is written: the GPU waits
  util[i] = int(clamp(want[i] * ramp * k * (0.97 + 0.03 * sin(now / 7 + i)) + 2 * noise(now, i), 0, 100))
  busy[i] = int(util[i] * (0.45 + 0.1 * sin01(now / 11 + i)))
  watt[i] = clamp(idleW[i] + (maxW[i] * 0.96 - idleW[i]) * util[i] / 100 + 4 * noise(now, i + 9), idleW[i], maxW[i])
  temp[i] = int(idleT[i] + (maxT[i] - idleT[i]) * warm * (0.5 + util[i] / 200) + 2 * sin(now / 23 + i))
  clk[i] = sm[i]; why[i] = watt[i] > maxW[i] * 0.94 ? 4 : 0
  if (hot[i] && warm > 0.5) {
    temp[i] = clamp(maxT[i] - 1 + int(2 * sin(now / 13 + i)), idleT[i], maxT[i])
    clk[i] = int(sm[i] * (0.6 + 0.1 * sin01(now / 17 + i))); why[i] = 32; if (temp[i] >= maxT[i]) why[i] += 8 + 64
    watt[i] *= 0.78
  }
}

function hex(n) { return sprintf("0x%016X", n) }

# cell answers for one field of one GPU; unit is set beside it. ok is 0 for a field
# that this driver does not know.
function cell(field, i) {
  unit = ""; ok = 1
  if (field == "timestamp") return stamp()
  if (field == "index") return i
  if (field == "count") return gpus
  if (field == "name" || field == "gpu_name") return name[i]
  if (field == "uuid" || field == "gpu_uuid") return uuid[i]
  if (field == "serial") return "0000000000000"
  if (field == "pci.bus_id" || field == "gpu_bus_id") return bus[i]
  if (field == "driver_version") return driver
  if (field == "utilization.gpu") { unit = "%"; return util[i] }
  if (field == "utilization.memory") { unit = "%"; return busy[i] }
  if (field == "memory.total") { unit = "MiB"; return total[i] }
  if (field == "memory.reserved") { unit = "MiB"; return reserved[i] }
  if (field == "memory.used") { unit = "MiB"; return clamp(used[i] + 4, 0, total[i]) }
  if (field == "memory.free") { unit = "MiB"; return clamp(total[i] - reserved[i] - used[i] - 4, 0, total[i]) }
  if (field ~ /^power\.draw(\.average|\.instant)?$/) { unit = "W"; return sprintf("%.2f", watt[i]) }
  if (field ~ /^(enforced\.)?power\.limit$/) { unit = "W"; return sprintf("%.2f", maxW[i]) }
  if (field == "temperature.gpu") return temp[i]
  if (field == "temperature.gpu.tlimit") return maxT[i] - temp[i]
  if (field == "fan.speed") { if (fan[i] == "-") return "[N/A]"; unit = "%"; return int(fan[i] + util[i] * 0.4) }
  if (field ~ /^clocks\.(current\.)?(sm|graphics|gr)$/) { unit = "MHz"; return clk[i] }
  if (field ~ /^clocks\.max\.(sm|graphics|gr)$/) { unit = "MHz"; return sm[i] }
  if (field ~ /^clocks\.((current|max)\.)?(memory|mem)$/) { unit = "MHz"; return mem[i] }
  if (field == "pstate") return util[i] > 0 || idleW[i] > 40 ? "P0" : "P8"
  if (field ~ /^clocks_(throttle|event)_reasons\.active$/) return hex(why[i])
  if (field == "pcie.link.gen.current" || field == "pcie.link.gen.max") return gen[i]
  if (field == "pcie.link.width.current" || field == "pcie.link.width.max") return 16
  if (field ~ /^ecc\.errors\.(un)?corrected\.(volatile|aggregate)\.total$/) return ecc[i] == "on" ? 0 : "[N/A]"
  if (field == "mig.mode.current") return ecc[i] == "on" ? "Disabled" : "[N/A]"
  if (field == "compute_mode") return "Default"
  if (field == "persistence_mode") return "Enabled"
  ok = 0; return ""
}

function stamp(   cmd, s) { cmd = "date '+%Y/%m/%d %H:%M:%S.000'"; cmd | getline s; close(cmd); return s }

function header(fields, n,   i, f, out) {
  for (i = 1; i <= n; i++) {
    f = fields[i]; cell(f, G[1])
    sub(/clocks_throttle_reasons/, "clocks_event_reasons", f)
    if (f == "used_gpu_memory" || f == "used_memory") { f = "used_gpu_memory"; unit = "MiB" }
    if (f ~ /^clocks\.(sm|memory|mem|gr)$/) f = "clocks.current." substr(f, 8)
    out = out (i > 1 ? ", " : "") f (unit != "" && format !~ /,nounits,/ ? " [" unit "]" : "")
  }
  return out
}

function chosen(i) { return only == "" || only == i "" || only == uuid[i] || index(bus[i], only) }

function rows(fields, n,   g, i, k, v, out) {
  for (g = 1; g <= gpus; g++) {
    i = G[g]; if (!chosen(i)) continue
    out = ""
    for (k = 1; k <= n; k++) {
      v = cell(fields[k], i)
      out = out (k > 1 ? ", " : "") v (unit != "" && format !~ /,nounits,/ ? " " unit : "")
    }
    print out
  }
}

function appRows(fields, n,   p, k, f, v, out) {
  for (p = 1; p <= procs; p++) {
    out = ""
    for (k = 1; k <= n; k++) {
      f = fields[k]; unit = ""
      if (f == "pid") v = pid[p]
      else if (f == "process_name" || f == "name") v = pname[p]
      else if (f == "used_gpu_memory" || f == "used_memory") { v = pmem[p]; unit = "MiB" }
      else v = cell(f, P[p])
      out = out (k > 1 ? ", " : "") v (unit != "" && format !~ /,nounits,/ ? " " unit : "")
    }
    print out
  }
}

function table(   g, i, p, line, cmd, today) {
  cmd = "date"; cmd | getline today; close(cmd)
  line = "+-----------------------------------------+------------------------+----------------------+"
  print today
  print "+-----------------------------------------------------------------------------------------+"
  printf "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", driver, driver, "12.4"
  print line
  print "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |"
  print "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |"
  print "|                                         |                        |               MIG M. |"
  print "|=========================================+========================+======================|"
  for (g = 1; g <= gpus; g++) {
    i = G[g]; if (!chosen(i)) continue
    printf "| %3d  %-30.30s On  |   %-16.16s Off | %20s |\n", i, name[i], bus[i], ecc[i] == "on" ? "0" : "Off"
    printf "| %3s   %2dC    %-2s%24s | %22s | %6d%%      Default |\n", fan[i] == "-" ? "N/A" : int(fan[i] + util[i] * 0.4) "%", temp[i], cell("pstate", i), sprintf("%dW / %4dW", watt[i], maxW[i]), sprintf("%dMiB / %6dMiB", used[i] + 4, total[i]), util[i]
    printf "| %39s | %22s | %20s |\n", "", "", ecc[i] == "on" ? "Disabled" : "N/A"
    print line
  }
  print ""
  print "+-----------------------------------------------------------------------------------------+"
  print "| Processes:                                                            rentop simulation |"
  print "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |"
  print "|        ID   ID                                                               Usage      |"
  print "|=========================================================================================|"
  for (p = 1; p <= procs; p++)
    printf "| %4d   N/A  N/A %10d      C   %-38.38s %9dMiB |\n", P[p], pid[p], pname[p], pmem[p]
  if (!procs) print "|  No running processes found                                                             |"
  print "+-----------------------------------------------------------------------------------------+"
}

BEGIN {
  n = split(asked, fields, ",")
  for (i = 1; i <= n; i++) gsub(/ /, "", fields[i])
  load()
  found = 0
  for (g = 1; g <= gpus; g++) if (chosen(G[g])) found = 1
  if (!found) { print "No devices were found"; exit 6 }
  if (mode == "query" || mode == "apps") {
    for (i = 1; i <= n; i++) {
      if (mode == "apps" && fields[i] ~ /^(pid|process_name|name|used_gpu_memory|used_memory)$/) continue
      cell(fields[i], G[1])
      if (!ok) { printf "Field \"%s\" is not a valid field to query.\n\n", fields[i]; exit 2 }
    }
    if (format !~ /,noheader,/) print header(fields, n)
  }
  while (1) {
    if (mode == "query") rows(fields, n)
    else if (mode == "apps") appRows(fields, n)
    else if (mode == "list") for (g = 1; g <= gpus; g++) printf "GPU %d: %s (UUID: %s)\n", G[g], name[G[g]], uuid[G[g]]
    else if (mode == "version") printf "NVIDIA-SMI version  : %s\nNVML version        : %s\nDRIVER version      : %s\nCUDA Version        : 12.4\n", driver, driver, driver
    else table()
    if (fflush("") < 0) exit 1
    if (every < 1 || mode == "list" || mode == "version") exit 0
    if (system("sleep " int(every)) != 0) exit 1
    load()
  }
}
