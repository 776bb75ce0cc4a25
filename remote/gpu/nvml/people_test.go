//go:build linux

package nvml

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rentop/remote/gpu/sample"
)

func TestXIDLines(t *testing.T) {
	for line, want := range map[string]string{
		"4,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.": "0000:3b:00 79",
		"NVRM: Xid (PCI:0000:3b:00): 119":                      "0000:3b:00 119",
		"NVRM: Xid (PCI:0000:3b:00): -1, x":                    "",
		"NVRM: Xid (PCI:0000:3b:00): 999999999":                "",
		"NVRM: loading NVIDIA UNIX x86_64":                     "",
		"NVRM: Xid (PCI:" + strings.Repeat("a", 100) + "): 79": "",
	} {
		bus, code, ok := parseXID(line)
		got := ""
		if ok {
			got = fmt.Sprint(bus, " ", code)
		}
		if got != want {
			t.Errorf("%.60q = %q, want %q", line, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{{"00000000:3B:00.0", "0000:3b:00", true}, {"00000000:3B:00.0", "0000:3c:00", false}, {"00000009:01:00.0", "0009:01:00", true}, {"00000009:01:00.0", "0000:01:00", false}, {"", "", false}} {
		if got := sameBus(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// proc makes a process table of one's own: PIDs, and whether they hold a GPU.
func proc(t *testing.T, holds map[int]bool) string {
	t.Helper()
	dir := t.TempDir()
	for pid, gpu := range holds {
		d := filepath.Join(dir, fmt.Sprint(pid))
		if err := os.MkdirAll(d+"/fd", 0o755); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(d+"/stat", []byte(fmt.Sprintf("%d (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 4242 1 1", pid)), 0o644)
		os.WriteFile(d+"/cmdline", []byte("python\x00train.py\x00\x1b[2J\x00"), 0o644)
		to := "/dev/null"
		if gpu {
			to = "/dev/nvidia0"
		}
		os.Symlink(to, d+"/fd/3")
	}
	return dir
}

// In a container a PID of the driver's may be another process's here: it is shown
// only where that one holds a GPU, and nobody is guessed.
func TestVouchedProcesses(t *testing.T) {
	dir := proc(t, map[int]bool{10: true, 11: false})
	users := map[uint32]string{uint32(os.Getuid()): "me"}
	for _, c := range []struct {
		pid            int
		container      bool
		there, vouched bool
		user, command  string
	}{
		{10, true, true, true, "me", "python train.py ␛[2J"},
		{11, true, true, false, "me", "python train.py ␛[2J"},
		{11, false, true, true, "me", "python train.py ␛[2J"},
		{12, true, false, false, "", ""},
	} {
		p, there := lookUp(dir, c.pid, users, person{}, c.container)
		if there != c.there || p.vouched != c.vouched || p.user != c.user || p.command != c.command || there && p.start != 4242 {
			t.Errorf("%d, container %v = %+v, %v", c.pid, c.container, p, there)
		}
	}
	if got := countOpen(dir); got != sample.Of(1) {
		t.Errorf("open = %+v", got)
	}
}

func TestHiddenMemory(t *testing.T) {
	p := people{seen: map[int]person{10: {user: "me", command: "python", vouched: true}, 11: {}}, done: map[int]bool{10: true, 11: true, 12: true}}
	l := &lane{}
	mem := sample.Of(4 << 30)
	list := []holder{{10, mem}, {11, mem}, {12, mem}, {13, mem}} // 13 was not looked for yet
	g := sample.GPU{MemUsed: sample.Of(20 << 30)}
	shown, hidden := p.join(&g, list, l)
	if len(shown) != 1 || shown[0].PID != 10 || !hidden || g.HiddenProcs != 2 || g.HiddenMem != sample.Of(16<<30) {
		t.Errorf("shown %+v, hidden %v, %d with %+v", shown, hidden, g.HiddenProcs, g.HiddenMem)
	}
	for range 5 { // memory that no process explains, for a while
		g = sample.GPU{MemUsed: sample.Of(20 << 30)}
		if _, hidden = p.join(&g, list[:1], &lane{}); hidden {
			t.Fatal("one reading is taken for a neighbour")
		}
	}
	l = &lane{}
	for range 8 {
		g = sample.GPU{MemUsed: sample.Of(20 << 30)}
		_, hidden = p.join(&g, list[:1], l)
	}
	if !hidden || g.HiddenProcs != 0 || g.HiddenMem != sample.Of(16<<30) {
		t.Errorf("hidden %v, %+v", hidden, g.HiddenMem)
	}
	g = sample.GPU{MemUsed: sample.Value{Why: "not supported"}}
	if p.join(&g, list[1:2], &lane{}); g.HiddenProcs != 1 || g.HiddenMem.State != sample.NA {
		t.Errorf("of unknown memory: %d, %+v", g.HiddenProcs, g.HiddenMem)
	}
}

func TestReadUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passwd")
	os.WriteFile(path, []byte("root:x:0:0::/root:/bin/sh\nbroken\ntoor:x:0:0::/:/bin/sh\na\x1b:x:7:7::/:\n"), 0o644)
	if got := readUsers(path); got[0] != "root" || got[7] != "a␛" || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestHostHere(t *testing.T) {
	var h hostReader
	h.read()
	out := h.read()
	if out.MemTotal.State != sample.OK || out.CPUs < 1 || out.UptimeSec.State != sample.OK || out.Load1.State != sample.OK {
		t.Errorf("host = %+v", out)
	}
	disks := readDisks("/proc/self/mounts")
	for _, d := range disks {
		if d.Total.State != sample.OK || d.Used.V > d.Total.V {
			t.Errorf("disk %+v", d)
		}
	}
}
