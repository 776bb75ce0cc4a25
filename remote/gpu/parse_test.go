package gpu

import (
	"context"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		cell string
		read func(string) Value
		want Value
	}{
		{"97 %", sample.Percent, Of(97)},
		{"100.00 %", sample.Percent, Of(100)},
		{"104 %", sample.Percent, Of(100)}, // DCGM#152
		{"4000000 %", sample.Percent, Value{State: Failed, Why: "implausible: 4000000 %"}},
		{"0 %", sample.Percent, Of(0)},
		{"40960 MiB", sample.Mebibytes, Of(40960 << 20)},
		{"40960", sample.Mebibytes, Of(40960 << 20)},
		{"9223372036854775794", sample.Mebibytes, Value{State: Failed, Why: "implausible: 9223372036854775794"}},
		{"72.00 W", sample.Watts, Of(72)},
		{"-5", sample.Celsius, Of(-5)},
		{"[N/A]", sample.Celsius, Value{Why: "[N/A]"}},
		{"N/A", sample.Celsius, Value{Why: "N/A"}},
		{"", sample.Watts, Value{Why: "empty"}},
		{"-", sample.Percent, Value{Why: "-"}},
		{"ERR!", sample.Percent, Value{State: Failed, Why: "ERR!"}},
		{"[Unknown Error]", sample.Percent, Value{State: Failed, Why: "[Unknown Error]"}},
		{"[GPU requires reset]", sample.Percent, Value{State: Failed, Why: "[GPU requires reset]"}},
		{"[Requested functionality has been deprecated]", sample.Watts, Value{Why: "[Requested functionality has been deprecated]"}},
		{"Requested functionality has been deprecated", sample.Watts, Value{Why: "Requested functionality has been deprecated"}},
		{"[Insufficient Permissions]", sample.Mebibytes, Value{Why: "[Insufficient Permissions]"}},
		{"[Something New]", sample.Watts, Value{State: Failed, Why: "[Something New]"}},
		{"12 furlongs", sample.Watts, Value{State: Failed, Why: "unreadable: 12 furlongs"}},
		{"0x10", sample.Watts, Value{State: Failed, Why: "unreadable: 0x10"}},
		{"NaN", sample.Watts, Value{State: Failed, Why: "unreadable: NaN"}},
		{"1e9 W", sample.Watts, Value{State: Failed, Why: "unreadable: 1e9 W"}},
	} {
		if got := c.read(c.cell); got != c.want {
			t.Errorf("%q = %+v, want %+v", c.cell, got, c.want)
		}
	}
}

func TestThrottle(t *testing.T) {
	for mask, want := range map[string]struct {
		words string
		hot   bool
	}{
		"0x0000000000000000": {"", false},
		"0x0000000000000001": {"", false},
		"0x0000000000000004": {"power cap", false},
		"0x0000000000000008": {"hardware slowdown", true},
		"0x0000000000000024": {"power cap, too hot (driver)", true},
		"0x0000000000000048": {"hardware slowdown, too hot (hardware)", true},
		"0x0000000000000080": {"power brake", true},
		"0x0000000000001000": {"reason 0x1000", false},
		"[N/A]":              {"", false},
	} {
		words, hot := sample.Throttle(mask)
		if got := strings.Join(words, ", "); got != want.words || hot != want.hot {
			t.Errorf("%s = %q, %v; want %q, %v", mask, got, hot, want.words, want.hot)
		}
	}
}

func TestRows(t *testing.T) {
	fields := []string{"index", "uuid", "name", "memory.used", "memory.total"}
	for line, want := range map[string]string{
		"0, GPU-1, NVIDIA L4, 10 MiB, 20 MiB":                      "L4",
		"0, GPU-1, Weird, Inc, Card, 10 MiB, 20 MiB":               "Weird, Inc, Card",
		"0, GPU-1, \x1b[31mred\x1b[0m, 10 MiB, 20 MiB":             "␛[31mred␛[0m",
		"0, GPU-1, \xff\xfe, 10 MiB, 20 MiB":                       "��", // gpustat#170
		"index, uuid, name, memory.used [MiB], memory.total [MiB]": "-",
		"[HAMI-core Msg(1:2:3)]: one, two, three, four":            "-",
		"Failed to properly shut down NVML: Driver Not Loaded":     "-",
		"0, GPU-1, NVIDIA L4, 10 MiB":                              "-",
		"-1, GPU-1, NVIDIA L4, 10 MiB, 20 MiB":                     "-",
		"99999999999999999999, GPU-1, NVIDIA L4, 10 MiB, 20 MiB":   "-",
	} {
		r, ok := parseRow(fields, line)
		if got := r.Name; ok != (want != "-") || ok && got != want {
			t.Errorf("%q: name %q, %v; want %q", line, got, ok, want)
		}
	}
	r, _ := parseRow(fields, "0, GPU-1, NVIDIA L4, 17000000 MiB, 20 MiB")
	if r.MemUsed != Of(20<<20) {
		t.Errorf("used above total = %+v", r.MemUsed)
	}
	if r.Util.State != NA || r.Util.Why != notOffered {
		t.Errorf("a field not asked for = %+v", r.Util)
	}
}

func TestUnifiedMemory(t *testing.T) {
	m := sample.MachineMemory{Used: Of(30), Total: Of(128)}
	for name, shared := range map[string]bool{"GB10": true, "Orin (nvgpu)": true, "N1X": true, "NVIDIA Thor": true,
		"GB200": false, "GH200 480GB": false, "H100 80GB HBM3": false} {
		g := GPU{Name: name, MemUsed: Value{Why: "[N/A]"}, MemTotal: Of(8), PCIeGen: Of(1)}
		g.ShareHost(m)
		if (g.MemTotal == m.Total && g.MemUsed == m.Used && g.PCIeGen.State == NA) != shared {
			t.Errorf("%s = %+v", name, g)
		}
	}
}

func TestEtime(t *testing.T) {
	for s, want := range map[string]time.Duration{"00:05": 5 * time.Second, "03:12": 192 * time.Second, "01:00:00": time.Hour,
		"2-03:00:01": 51*time.Hour + time.Second, "-": -1, "": -1, "5": -1, "1:99": -1, "a:b": -1, "1:2:3:4": -1} {
		if got, ok := parseEtime(s); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q = %v, %v", s, got, ok)
		}
	}
}

const hostA = "up=100.00 load=3.50 cpu=100,0,100,800,0,0,0,0,0,0 mem=MemTotal:1000,MemFree:100,MemAvailable:400 cg=,,,,, net=eth0:1000:500,eth1:0:0"
const hostB = "up=102.00 load=3.00 cpu=200,0,150,850,0,0,0,0,0,0 mem=MemTotal:1000,MemFree:100,MemAvailable:300 cg=,,,,, net=eth0:5000:700,eth1:0:0"

func TestHost(t *testing.T) {
	a, b := sample.ParseHost(hostA), sample.ParseHost(hostB)
	first := a.Host(nil, 8)
	if first.CPU.State != NA || first.NetRx.State != NA || first.MemUsed != Of(600*1024) {
		t.Errorf("first = %+v", first)
	}
	h := b.Host(&a, 8)
	if h.CPUs != 8 || h.CPU != Of(75) || h.NetRx != Of(2000) || h.NetTx != Of(100) || h.MemUsed != Of(700*1024) || h.MemTotal != Of(1000*1024) {
		t.Errorf("host = %+v", h)
	}
	back := a.Host(&b, 8) // a restart between the two
	if back.CPU.State == OK || back.NetRx.State == OK {
		t.Errorf("after a restart = %+v", back)
	}
	none := (&sample.Counters{}).Host(&sample.Counters{}, 0)
	if none.CPU.State == OK || none.MemUsed.State == OK || none.MemTotal.State == OK || none.NetRx.State == OK {
		t.Errorf("of nothing = %+v", none)
	}
}

func TestHostInContainer(t *testing.T) {
	limits := func(line, cg string) sample.Counters {
		return sample.ParseHost(strings.Replace(line, "cg=,,,,,", "cg="+cg, 1))
	}
	a, b := limits(hostA, "512000,300000,100000,400000,100000,1000000"), limits(hostB, "512000,400000,100000,400000,100000,5000000")
	h := b.Host(&a, 64)
	if h.CPUs != 4 || h.CPU != Of(50) || h.MemTotal != Of(512000) || h.MemUsed != Of(300000) {
		t.Errorf("v2 with limits = %+v", h)
	}
	b = limits(hostB, "9223372036854771712,400000,1,-1,100000,5000000") // v1 without limits
	if h = b.Host(&a, 8); h.CPUs != 8 || h.CPU != Of(75) || h.MemTotal != Of(1000*1024) {
		t.Errorf("no limits = %+v", h)
	}
	b = limits(hostB, "max,,,max,100000,5000000")
	if h = b.Host(&a, 8); h.CPUs != 8 || h.MemTotal != Of(1000*1024) {
		t.Errorf("v2 without limits = %+v", h)
	}
}

func TestDisks(t *testing.T) {
	blocks := `Filesystem     1024-blocks      Used Available Capacity Mounted on
overlay          209612800  52403200 157209600      25% /
tmpfs                65536         0     65536       0% /dev
/dev/sda1        209612800  52403200 157209600      25% /etc/hosts
/dev/nvme0n1p1  1000000000 900000000 100000000      90% /root/my data
/dev/nvme0n1p1  1000000000 900000000 100000000      90% /root/my data/again
nas:/export/a b   10000000   5000000   5000000      50% /mnt/nas
df: /mnt/stale: Stale file handle`
	inodes := `Filesystem       Inodes  IUsed  IFree IUse% Mounted on
overlay          1000000 250000 750000   25% /
nas:/export/a b        0      0      0     - /mnt/nas`
	var b, i []sample.Mount
	for _, l := range strings.Split(blocks, "\n") {
		if d, ok := sample.ParseDF(l); ok {
			b = append(b, d)
		}
	}
	for _, l := range strings.Split(inodes, "\n") {
		if d, ok := sample.ParseDF(l); ok {
			i = append(i, d)
		}
	}
	got := sample.Disks(b, i)
	if len(got) != 3 || got[0].Mount != "/" || got[1].Mount != "/mnt/nas" || got[2].Mount != "/root/my data" {
		t.Fatalf("disks = %+v", got)
	}
	if got[0].Used != Of(52403200*1024) || got[0].InodesUsed != Of(25) || got[1].InodesUsed.State != NA || got[2].InodesUsed.State != NA {
		t.Errorf("disks = %+v", got)
	}
}

func TestDemux(t *testing.T) {
	out := make(chan record, 10)
	d := demux{ctx: context.Background(), out: out}
	for _, part := range []string{"0, GPU-1, NVI", "\x01h up=1\n", "DIA L4\n\x01", "q 0", "\nlast"} {
		if _, err := d.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []record{{'h', "up=1"}, {0, "0, GPU-1, NVIDIA L4"}, {'q', "0"}} {
		if got := <-out; got != want {
			t.Errorf("record = %+v, want %+v", got, want)
		}
	}
	if len(out) != 0 {
		t.Errorf("half a line came out: %+v", <-out)
	}
}

func TestUnexplainedMemory(t *testing.T) {
	g := []GPU{{Index: 0, Name: "H20", MemUsed: Of(56533 << 20)}}
	for name, c := range map[string]struct {
		list []Process
		want bool
	}{
		"nobody":         {nil, true},
		"explained":      {[]Process{{GPUIndex: 0, Mem: Of(56510 << 20)}}, false},
		"not told":       {[]Process{{GPUIndex: 0, Mem: Value{Why: "[N/A]"}}}, false},
		"another's":      {[]Process{{GPUIndex: 1, Mem: Of(56510 << 20)}}, true},
		"far too little": {[]Process{{GPUIndex: 0, Mem: Of(510 << 20)}}, true},
	} {
		if got := unexplained(g, c.list); got != c.want {
			t.Errorf("%s = %v", name, got)
		}
	}
}

func FuzzRow(f *testing.F) {
	f.Add("0, GPU-1, 00000000:01:00.0, 1, 590.48.01, NVIDIA L4, 97 %, 1 %, 1 MiB, 2 MiB, [N/A], 1 W, ERR!, 3, 4, 5 %, 1 MHz, 1 MHz, 1 MHz, 1 MHz, P0, 0x1, 1, 16, 0, Disabled")
	f.Fuzz(func(t *testing.T, line string) {
		r, ok := parseRow(queryFields, line)
		if !ok {
			return
		}
		if u, ok := r.Util.Get(); ok && (u < 0 || u > 100) {
			t.Errorf("util %g", u)
		}
		if u, ok := r.MemUsed.Get(); ok && r.MemTotal.State == OK && u > r.MemTotal.V {
			t.Errorf("used %g of %g", u, r.MemTotal.V)
		}
		for _, s := range []string{r.Name, r.UUID, r.Problem, r.PState, r.Util.Why} {
			if strings.ContainsAny(s, "\x1b\n\x00") || len(s) > 1000 {
				t.Errorf("unclean %q", s)
			}
		}
	})
}

func FuzzApp(f *testing.F) {
	f.Add("GPU-1, 12, /usr/bin/python3, a, 20 MiB", "12 root 01:02 python3 a.py")
	f.Fuzz(func(t *testing.T, line, ps string) {
		if a, ok := parseApp(appFields, line); ok && (a.pid <= 0 || strings.ContainsAny(a.name, "\x1b\n")) {
			t.Errorf("app %+v", a)
		}
		if pid, p, ok := parsePS(ps); ok && (pid < 0 || p.age < 0 || strings.ContainsAny(p.command+p.user, "\x1b\n")) {
			t.Errorf("ps %d %+v", pid, p)
		}
	})
}

func FuzzHost(f *testing.F) {
	f.Add(hostA, hostB)
	f.Add(strings.Replace(hostA, "cg=,,,,,", "cg=512000,300000,100000,400000,100000,1000000", 1), hostB)
	f.Fuzz(func(t *testing.T, x, y string) {
		a, b := sample.ParseHost(x), sample.ParseHost(y)
		h := b.Host(&a, 4)
		if v, ok := h.CPU.Get(); ok && !(v >= 0 && v <= 100) {
			t.Errorf("CPU %g", v)
		}
		for _, v := range []Value{h.MemUsed, h.NetRx, h.NetTx, h.Load1} {
			if n, ok := v.Get(); ok && !(n >= 0) {
				t.Errorf("%g below zero", n)
			}
		}
	})
}

func FuzzDF(f *testing.F) {
	f.Add("/dev/nvme0n1p1  1000000000 900000000 100000000      90% /root/my data")
	f.Fuzz(func(t *testing.T, line string) {
		if d, ok := sample.ParseDF(line); ok {
			for _, x := range sample.Disks([]sample.Mount{d}, []sample.Mount{d}) {
				if u, ok := x.Used.Get(); ok && x.Total.State == OK && u > x.Total.V || strings.ContainsAny(x.Mount, "\x1b\n") {
					t.Errorf("disk %+v", x)
				}
			}
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("\x01s cpus=4\n\x01f index,name,utilization.gpu\n0, L4, 3 %\n\x01q 0\n0, L4, 4 %\n\x01h " + hostA + "\n\x01B\n\x01a GPU-1, 2, x, 3 MiB\n\x01A 0\n\x01x 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		out := make(chan record, len(b)+1)
		(&demux{ctx: ctx, out: out}).Write(b)
		close(out)
		a := &assembly{}
		now := time.Unix(1e9, 0)
		for r := range out {
			now = now.Add(7 * time.Second)
			for _, s := range []*Sample{a.feed(r, now), a.flush(now)} {
				if s == nil {
					continue
				}
				if _, err := s.MarshalJSON(); err != nil {
					t.Fatal(err)
				}
				if len(s.GPUs) == 0 && s.Problem == nil {
					t.Error("no GPUs and no reason")
				}
			}
		}
	})
}
