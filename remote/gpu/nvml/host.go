//go:build linux

package nvml

import (
	"context"
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
	files kernelFiles
	group cgroup
	last  *sample.Counters
	mem   sample.MachineMemory
	mu    stdsync.Mutex
	disks []sample.Disk // guarded by mu
}

const disksEvery = 30 * time.Second

func (h *hostReader) start(ctx context.Context) {
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
	c := sample.ParseHost(h.line())
	out := c.Host(h.last, runtime.NumCPU())
	h.last, h.mem = &c, c.Machine()
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Disks = append([]sample.Disk(nil), h.disks...)
	return out
}

func (h *hostReader) memory() sample.MachineMemory { return h.mem }

// line is the kernel's counters in the form that the collector prints.
func (h *hostReader) line() string {
	k := &h.files
	var b strings.Builder
	put := func(words ...string) {
		for _, w := range words {
			b.WriteString(w)
		}
	}
	up, _, _ := strings.Cut(k.one("/proc/uptime"), " ")
	load, _, _ := strings.Cut(k.one("/proc/loadavg"), " ")
	cpu := strings.Join(strings.Fields(strings.TrimPrefix(k.one("/proc/stat"), "cpu")), ",")
	put("up=", up, " load=", load, " cpu=", cpu, " mem=")
	n := 0
	for l := range strings.Lines(k.head("/proc/meminfo")) {
		if f := strings.Fields(l); len(f) >= 2 {
			put(f[0], f[1], ",")
		}
		if n++; n == 5 { // MemTotal, MemFree, MemAvailable, Buffers, Cached
			break
		}
	}
	put(" cg=", h.group.read(k), " net=")
	for l := range strings.Lines(k.head("/proc/net/dev")) {
		name, rest, ok := strings.Cut(l, ":")
		f := strings.Fields(rest)
		if name = strings.TrimSpace(name); !ok || len(f) < 9 || ofContainers(name) {
			continue
		}
		put(name, ":", f[0], ":", f[8], ",")
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
