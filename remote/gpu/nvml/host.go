//go:build linux

package nvml

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	stdsync "sync"
	"syscall"
	"time"

	"rentop/remote/gpu/sample"
)

// hostReader reads the machine around the GPUs. Counters come from /proc, which
// does not block; disks are asked for elsewhere, because a network mount may.
type hostReader struct {
	last  *sample.Counters
	mem   sample.MachineMemory
	mu    stdsync.Mutex
	disks []sample.Disk // guarded by mu
}

const disksEvery = 30 * time.Second

func (h *hostReader) start(ctx context.Context, wg *stdsync.WaitGroup) {
	go func() { // not waited for: statfs of a dead mount does not come back
		t := time.NewTicker(disksEvery)
		defer t.Stop()
		for {
			d := readDisks("/proc/self/mounts")
			h.mu.Lock()
			h.disks = d
			h.mu.Unlock()
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// read gives the figures since the reading before.
func (h *hostReader) read() sample.Host {
	c := sample.ParseHost(hostLine())
	out := c.Host(h.last, runtime.NumCPU())
	h.last, h.mem = &c, c.Machine()
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Disks = append([]sample.Disk(nil), h.disks...)
	return out
}

func (h *hostReader) memory() sample.MachineMemory { return h.mem }

// hostLine writes the kernel's counters in the form that the collector prints.
func hostLine() string {
	var b strings.Builder
	up, _, _ := strings.Cut(one("/proc/uptime"), " ")
	load, _, _ := strings.Cut(one("/proc/loadavg"), " ")
	cpu := strings.Join(strings.Fields(strings.TrimPrefix(one("/proc/stat"), "cpu")), ",")
	fmt.Fprintf(&b, "up=%s load=%s cpu=%s mem=", up, load, cpu)
	for i, l := range lines("/proc/meminfo", 5) {
		f := strings.Fields(l)
		if len(f) < 2 {
			continue
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f[0] + f[1])
	}
	fmt.Fprintf(&b, " cg=%s net=", cgroup())
	sep := ""
	for _, l := range lines("/proc/net/dev", 40) {
		name, rest, ok := strings.Cut(l, ":")
		f := strings.Fields(rest)
		if name = strings.TrimSpace(name); !ok || len(f) < 9 || ofContainers(name) {
			continue
		}
		fmt.Fprintf(&b, "%s%s:%s:%s", sep, name, f[0], f[8])
		sep = ","
	}
	return b.String()
}

// ofContainers says whether an interface counts what another one counts too.
func ofContainers(name string) bool {
	if name == "lo" {
		return true
	}
	for _, p := range []string{"veth", "docker", "br-", "virbr", "cali", "cni", "flannel", "bond", "dummy"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// cgroup is "limit,current,inactive,quota,period,usage" of cgroup v2, or v1.
func cgroup() string {
	const v2, v1 = "/sys/fs/cgroup/", "/sys/fs/cgroup/"
	var lim, cur, ina, quota, period, use string
	switch {
	case readable(v2+"memory.max") || readable(v2+"cpu.max"):
		if lim = one(v2 + "memory.max"); lim != "" && lim != "max" {
			cur, ina = one(v2+"memory.current"), keyed(v2+"memory.stat", "inactive_file")
		}
		quota, period, _ = strings.Cut(one(v2+"cpu.max"), " ")
		use = keyed(v2+"cpu.stat", "usage_usec")
	case readable(v1 + "memory/memory.limit_in_bytes"):
		lim, cur = one(v1+"memory/memory.limit_in_bytes"), one(v1+"memory/memory.usage_in_bytes")
		ina = keyed(v1+"memory/memory.stat", "total_inactive_file")
		quota, period = one(v1+"cpu/cpu.cfs_quota_us"), one(v1+"cpu/cpu.cfs_period_us")
		if use = one(v1 + "cpuacct/cpuacct.usage"); len(use) > 3 {
			use = use[:len(use)-3] // nanoseconds
		}
	}
	return strings.Join([]string{lim, cur, ina, quota, period, use}, ",")
}

func readable(path string) bool { return syscall.Access(path, 4) == nil } // R_OK

// head reads the beginning of a file of the kernel's, past the runtime's poller,
// which would cost more than the reading.
func head(path string) string {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	buf := make([]byte, 4<<10)
	n := 0
	for n < len(buf) {
		m, err := syscall.Read(fd, buf[n:])
		if err != nil || m <= 0 {
			break
		}
		n += m
	}
	return string(buf[:n])
}

// one is a file's first line.
func one(path string) string {
	l, _, _ := strings.Cut(head(path), "\n")
	return l
}

func lines(path string, n int) []string {
	l := strings.Split(strings.TrimSpace(head(path)), "\n")
	return l[:min(n, len(l))]
}

// keyed is the word after key at the beginning of a line.
func keyed(path, key string) string {
	for _, l := range strings.Split(head(path), "\n") {
		if rest, ok := strings.CutPrefix(l, key+" "); ok {
			return rest
		}
	}
	return ""
}

// readDisks asks each mount for its room, as df does.
func readDisks(mounts string) []sample.Disk {
	raw, err := os.ReadFile(mounts)
	if err != nil {
		return nil
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var blocks, inodes []sample.Mount
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(blocks) > 1000 {
			continue
		}
		device, mount := unescape.Replace(f[0]), unescape.Replace(f[1])
		m := sample.NewMount(device, mount, f[2])
		if !m.Fills() {
			continue
		}
		var st syscall.Statfs_t
		if syscall.Statfs(mount, &st) != nil || st.Blocks == 0 {
			continue
		}
		k := float64(st.Bsize) / 1024
		blocks = append(blocks, m.Sized(float64(st.Blocks)*k, float64(st.Blocks-st.Bfree)*k))
		if st.Files > 0 {
			inodes = append(inodes, m.Sized(float64(st.Files), float64(st.Files-st.Ffree)))
		}
	}
	return sample.Disks(blocks, inodes)
}
