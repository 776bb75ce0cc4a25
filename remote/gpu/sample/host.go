package sample

// The host line that the collector prints from /proc and the cgroup files, and the
// figures made from two of them.

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"rentop/remote/clean"
)

// Counters is one host line: what the kernel counts.
type Counters struct {
	up      float64 // seconds since boot: the clock that rates are taken by
	upOK    bool
	load    Value
	cpu     []uint64          // user nice system idle iowait irq softirq steal
	mem     map[string]uint64 // kB
	limit   uint64            // the container's memory limit in bytes; 0: none
	inUse   uint64            // charged to the container, without page cache that can go
	inUseOK bool
	quota   float64 // cores that the container may use; 0: no limit
	usage   uint64  // microseconds of CPU that the container has used
	usageOK bool
	net     map[string][2]uint64 // bytes received and sent by interface
}

// MachineMemory is the whole machine's memory, not a container's share.
type MachineMemory struct{ Used, Total Value }

// unlimited is where cgroup v1 writes "no limit" as a huge number.
const unlimited = 1 << 60

// ParseHost reads "up=1.2 load=0.1 cpu=1,2,… mem=MemTotal:1,… cg=limit,current,inactive,quota,period,usage net=eth0:1:2,…".
// An unknown or broken part is as good as missing.
func ParseHost(line string) Counters {
	c := Counters{mem: map[string]uint64{}, net: map[string][2]uint64{}}
	for _, part := range strings.Fields(line) {
		key, val, _ := strings.Cut(part, "=")
		switch key {
		case "up":
			v := Number(val, 1, 0, math.MaxUint32)
			c.up, c.upOK = v.Get()
		case "load":
			c.load = Number(val, 1, 0, 1e6)
		case "cpu":
			c.cpu = uints(val)
		case "mem":
			for _, kv := range strings.Split(val, ",") {
				k, v, _ := strings.Cut(kv, ":")
				if n, err := strconv.ParseUint(v, 10, 50); err == nil {
					c.mem[k] = n
				}
			}
		case "cg":
			c.cgroup(strings.Split(val, ","))
		case "net":
			for _, one := range strings.Split(val, ",") {
				f := strings.Split(one, ":")
				if len(f) != 3 || len(c.net) >= 64 {
					continue
				}
				rx, err1 := strconv.ParseUint(f[1], 10, 64)
				tx, err2 := strconv.ParseUint(f[2], 10, 64)
				if err1 == nil && err2 == nil {
					c.net[f[0]] = [2]uint64{rx, tx}
				}
			}
		}
	}
	return c
}

func uints(s string) []uint64 {
	var out []uint64
	for _, f := range strings.Split(s, ",") {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

func (c *Counters) cgroup(f []string) {
	if len(f) != 6 {
		return
	}
	if n, err := strconv.ParseUint(f[0], 10, 64); err == nil && n > 0 && n < unlimited {
		c.limit = n
	}
	if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
		cache, err := strconv.ParseUint(f[2], 10, 64)
		if err != nil || cache > n {
			cache = 0
		}
		c.inUse, c.inUseOK = n-cache, true
	}
	quota, err1 := strconv.ParseFloat(f[3], 64)
	period, err2 := strconv.ParseFloat(f[4], 64)
	if err1 == nil && err2 == nil && quota > 0 && period > 0 && quota/period < 1e5 {
		c.quota = quota / period
	}
	if n, err := strconv.ParseUint(f[5], 10, 64); err == nil {
		c.usage, c.usageOK = n, true
	}
}

// Machine is the memory of the whole machine.
func (c *Counters) Machine() MachineMemory {
	total, ok := c.mem["MemTotal"]
	if !ok {
		return MachineMemory{}
	}
	m := MachineMemory{Total: Of(float64(total) * 1024)}
	avail, ok := c.mem["MemAvailable"]
	if !ok { // kernels before 3.14
		free, has := c.mem["MemFree"]
		avail, ok = free+c.mem["Buffers"]+c.mem["Cached"], has
	}
	if ok {
		m.Used = Of(float64(total-min(avail, total)) * 1024)
	}
	return m
}

// Host makes figures of now and the line before it (nil at the first).
func (c *Counters) Host(before *Counters, cpus int) Host {
	m := c.Machine()
	h := Host{CPUs: cpus, Load1: c.load, MemUsed: m.Used, MemTotal: m.Total}
	if c.upOK {
		h.UptimeSec = Of(c.up)
	}
	if total, ok := m.Total.Get(); c.limit > 0 && (!ok || float64(c.limit) < total) {
		h.MemTotal = Of(float64(c.limit))
		h.MemUsed = Value{Why: "the container's use cannot be read"}
		if c.inUseOK {
			h.MemUsed = Of(float64(min(c.inUse, c.limit)))
		}
	}
	limited := c.quota > 0 && (cpus == 0 || c.quota < float64(cpus))
	if limited {
		h.CPUs = int(math.Ceil(c.quota))
	}
	first := Value{Why: "known from the second reading on"}
	h.CPU, h.NetRx, h.NetTx, h.IOWait, h.Steal = first, first, first, first, first
	if before == nil || !c.upOK || !before.upOK || c.up <= before.up {
		return h
	}
	dt := c.up - before.up
	if limited {
		h.CPU = Value{Why: "the container's use cannot be read"}
		if c.usageOK && before.usageOK && c.usage >= before.usage {
			h.CPU = Of(min(100, float64(c.usage-before.usage)/1e6/dt/c.quota*100))
		}
	} else {
		h.CPU = busy(before.cpu, c.cpu)
	}
	h.IOWait, h.Steal = share(before.cpu, c.cpu, 4), share(before.cpu, c.cpu, 7)
	h.NetRx, h.NetTx = c.network(before, dt)
	return h
}

// busy is the share of CPU time that was not idle, in percent.
func busy(before, now []uint64) Value {
	if len(before) < 4 || len(now) < len(before) {
		return Value{Why: "/proc/stat cannot be read"}
	}
	var total, idle float64
	for i := range before {
		if now[i] < before[i] {
			if i != 4 { // iowait may go back (proc(5)); anything else is a restart
				return Value{Why: "the counters went back"}
			}
			continue
		}
		d := float64(now[i] - before[i])
		total += d
		if i == 3 || i == 4 {
			idle += d
		}
	}
	if total == 0 {
		return Value{Why: "no time has passed"}
	}
	return Of((total - idle) / total * 100)
}

// share is the part of all CPU time that went into one of the kernel's kinds, in
// percent. It is the whole machine's, also in a container.
func share(before, now []uint64, kind int) Value {
	if len(before) <= kind || len(now) < len(before) {
		return Value{Why: "/proc/stat does not tell it"}
	}
	var total, part float64
	for i := range before {
		if i > 7 { // guest time is counted in user time too
			break
		}
		if now[i] < before[i] {
			continue
		}
		d := float64(now[i] - before[i])
		total += d
		if i == kind {
			part = d
		}
	}
	if total == 0 {
		return Value{Why: "no time has passed"}
	}
	return Of(part / total * 100)
}

// network is the rate over the interfaces that both readings have.
func (c *Counters) network(before *Counters, dt float64) (rx, tx Value) {
	var r, t float64
	n := 0
	for name, now := range c.net {
		was, ok := before.net[name]
		if !ok || now[0] < was[0] || now[1] < was[1] {
			continue
		}
		r, t, n = r+float64(now[0]-was[0]), t+float64(now[1]-was[1]), n+1
	}
	if n == 0 {
		none := Value{Why: "no network interface can be read"}
		return none, none
	}
	return Of(r / dt), Of(t / dt)
}

// maxDisks bounds what an instance may list.
const maxDisks = 16

// Mount is one line of df -P.
type Mount struct {
	device, mount string
	total, used   Value // in the unit of the call: 1024 bytes, or inodes
}

// NewMount is a mount as /proc/mounts tells it; its device is the kind of file
// system where that is one of the kernel's own.
func NewMount(device, mount, kind string) Mount {
	switch kind {
	case "tmpfs", "devtmpfs", "proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2", "securityfs", "debugfs", "tracefs", "pstore", "bpf",
		"configfs", "hugetlbfs", "fusectl", "efivarfs", "autofs", "binfmt_misc", "nsfs", "ramfs", "rpc_pipefs", "squashfs", "fuse.lxcfs":
		device = "none"
	}
	return Mount{device: device, mount: mount}
}

// Sized is the mount with its room: in 1024 bytes, or in inodes.
func (d Mount) Sized(total, used float64) Mount {
	d.total, d.used = Of(total), Of(used)
	return d
}

// ParseDF reads a line of df -P: five fixed columns, then a mount that may hold
// spaces. The device may hold some too (CIFS), so numbers are looked for.
func ParseDF(line string) (Mount, bool) {
	f := strings.Fields(line)
	for i := 1; i+4 < len(f); i++ {
		total, used := dfNumber(f[i]), dfNumber(f[i+1])
		if total.State != OK && f[i] != "-" || !strings.HasPrefix(f[i+4], "/") {
			continue
		}
		if f[i+3] != "-" && !strings.HasSuffix(f[i+3], "%") {
			continue
		}
		mount := line[strings.LastIndex(line, f[i+3])+len(f[i+3]):]
		return Mount{device: strings.Join(f[:i], " "), mount: strings.TrimSpace(mount), total: total, used: used}, true
	}
	return Mount{}, false
}

func dfNumber(s string) Value { return Number(s, 1, 0, 1<<53) }

// Fills says whether this mount is a disk that a person fills: no kernel file
// systems, no single files that a container engine mounts, no boot partitions.
func (d Mount) Fills() bool {
	switch d.device {
	case "tmpfs", "devtmpfs", "udev", "none", "shm", "proc", "sysfs", "efivarfs", "cgroup", "cgroup2":
		return false
	}
	if strings.HasPrefix(d.device, "/dev/loop") {
		return false
	}
	for _, p := range []string{"/proc", "/sys", "/dev", "/run", "/boot", "/etc", "/usr", "/snap", "/lib", "/init", "/var/lib/docker", "/var/lib/kubelet"} {
		if d.mount == p || strings.HasPrefix(d.mount, p+"/") {
			return false
		}
	}
	return true
}

// tiny says that nobody keeps work there: a mount of a container engine's own.
func (d Mount) tiny() bool {
	kb, ok := d.total.Get()
	return ok && kb < 256<<10 && d.mount != "/"
}

// Disks joins df -Pk and df -Pi. The same device mounted twice counts once, under
// its shortest mount.
func Disks(blocks, inodes []Mount) []Disk {
	byMount := map[string]Mount{}
	for _, l := range inodes {
		byMount[l.mount] = l
	}
	slices.SortStableFunc(blocks, func(a, b Mount) int { return len(a.mount) - len(b.mount) })
	var out []Disk
	seen := map[string]bool{}
	for _, l := range blocks {
		key := l.device + "\x00" + strconv.FormatFloat(l.total.V, 'f', 0, 64)
		if !l.Fills() || l.tiny() || seen[key] || len(out) >= maxDisks {
			continue
		}
		seen[key] = true
		d := Disk{Mount: clean.Short(l.mount, 120), Used: kib(l.used), Total: kib(l.total), InodesUsed: Value{Why: "this file system does not count inodes"}}
		if used, ok := d.Used.Get(); ok && d.Total.State == OK {
			d.Used.V = min(used, d.Total.V)
		}
		if i, ok := byMount[l.mount]; ok && i.total.State == OK && i.used.State == OK && i.total.V > 0 {
			d.InodesUsed = Of(min(100, i.used.V/i.total.V*100))
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Disk) int { return strings.Compare(a.Mount, b.Mount) })
	return out
}

func kib(v Value) Value {
	if v.State == OK {
		v.V *= 1024
	}
	return v
}
