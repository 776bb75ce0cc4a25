//go:build linux

package nvml

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	stdsync "sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// person is what this machine's process table says of a PID that the driver told.
type person struct {
	start   uint64 // in ticks since boot: tells a reused PID from the old one
	user    string
	command string
	began   time.Time
	vouched bool // it is the driver's process, not another of the same number
}

// people looks processes up outside the hub: a process that hangs in the kernel
// may hold up whoever reads its command line.
type people struct {
	ask  chan []holder
	mu   stdsync.Mutex
	seen map[int]person // guarded by mu
	done map[int]bool   // PIDs that have been looked for; guarded by mu
	open sample.Value   // processes here with the driver open; guarded by mu
}

const openEvery = 30 * time.Second

func (p *people) start(ctx context.Context) {
	p.ask = make(chan []holder, 64)
	p.seen, p.done = map[int]person{}, map[int]bool{}
	p.open = sample.Value{Why: "counted in containers alone"}
	go p.work(ctx, "/proc", inContainer())
}

// look has the holders looked up; what is asked while it hangs is left out.
func (p *people) look(list []holder) {
	if len(list) == 0 {
		return
	}
	select {
	case p.ask <- list:
	default:
	}
}

func (p *people) work(ctx context.Context, proc string, container bool) {
	users := readUsers("/etc/passwd")
	count := time.NewTicker(openEvery)
	defer count.Stop()
	for {
		var list []holder
		select {
		case list = <-p.ask:
		case <-count.C:
			if !container {
				continue
			}
			n := countOpen(proc)
			p.mu.Lock()
			p.open = n
			p.mu.Unlock()
		case <-ctx.Done():
			return
		}
		for _, h := range p.gather(list) {
			p.mu.Lock()
			before, known := p.seen[h.pid]
			p.mu.Unlock()
			now, there := lookUp(proc, h.pid, users, before, container)
			p.mu.Lock()
			if len(p.done) > 4*sample.MaxProcesses { // long gone ones
				p.seen, p.done = map[int]person{}, map[int]bool{}
			}
			p.done[h.pid] = true
			if there {
				p.seen[h.pid] = now
			} else if known {
				delete(p.seen, h.pid)
			}
			p.mu.Unlock()
		}
	}
}

// gather adds what else is asked, each PID once: one process may hold every GPU.
func (p *people) gather(list []holder) []holder {
	all := slices.Clone(list)
	for {
		select {
		case more := <-p.ask:
			all = append(all, more...)
		default:
			slices.SortFunc(all, func(a, b holder) int { return a.pid - b.pid })
			return slices.CompactFunc(all, func(a, b holder) bool { return a.pid == b.pid })
		}
	}
}

// opened is how many processes of this container have the driver open, ourselves
// aside: where it is none and the GPU works, somebody else uses it.
func (p *people) opened() sample.Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func countOpen(proc string) sample.Value {
	d, err := os.Open(proc)
	if err != nil {
		return sample.Value{Why: "the process table cannot be read"}
	}
	defer d.Close()
	names, _ := d.Readdirnames(1 << 16)
	n := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if _, err := os.ReadDir(proc + "/" + name + "/fd"); os.IsPermission(err) {
			return sample.Value{Why: "not every process may be looked at"}
		}
		if holdsGPU(proc + "/" + name) {
			n++
		}
	}
	return sample.Of(float64(n))
}

// join gives the processes of a GPU that can be shown, and puts what the rest
// holds into the GPU: a driver gives PIDs of the machine, so one that is not here,
// or belongs to something that holds no GPU, is hidden and nobody is guessed.
func (p *people) join(g *sample.GPU, list []holder, l *lane) (shown []sample.Process, hidden bool) {
	if l.seen.why != "" {
		g.HiddenMem = sample.Value{Why: l.seen.why}
		return nil, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rest, sure := g.MemUsed.Get()
	for _, h := range list {
		who, ok := p.seen[h.pid]
		if !ok || !who.vouched {
			if p.done[h.pid] {
				g.HiddenProcs++
			}
			continue
		}
		m, known := h.mem.Get()
		sure = sure && known
		rest -= m
		shown = append(shown, sample.Process{GPUIndex: g.Index, PID: h.pid, User: who.user, Command: who.command, Mem: h.mem, StartedAt: who.began})
	}
	// Memory is read more often than processes: once may be a start or an end.
	const slack = 1 << 30 // contexts, and reserved memory that older drivers count as used
	switch {
	case !sure || rest <= slack || sample.Unified(g.Name):
		l.surplus = 0
	default:
		l.surplus++
	}
	hidden = g.HiddenProcs > 0 || l.surplus > 5
	switch {
	case !hidden:
		g.HiddenMem = sample.Of(0)
	case sure:
		g.HiddenMem = sample.Of(max(0, rest))
	default:
		g.HiddenMem = sample.Value{Why: "the driver does not tell the memory of each process"}
	}
	return shown, hidden
}

// lookUp reads a process of this machine; there is false where it has none.
func lookUp(proc string, pid int, users map[uint32]string, before person, container bool) (p person, there bool) {
	dir := proc + "/" + strconv.Itoa(pid)
	var buf [512]byte // a name of 15 bytes and 21 numbers
	stat, ok := readHead(dir+"/stat", buf[:])
	if !ok {
		return p, false
	}
	p.start = startTicks(stat)
	if before.vouched && before.start == p.start {
		return before, true
	}
	var st syscall.Stat_t
	if syscall.Stat(dir, &st) == nil {
		if p.user = users[st.Uid]; p.user == "" {
			p.user = strconv.FormatUint(uint64(st.Uid), 10)
		}
	}
	p.command = command(dir)
	var up unix.Timespec
	if p.start > 0 && unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) == nil {
		const hz = 100 // USER_HZ, on every platform that has this driver
		age := time.Duration(up.Nano()) - time.Duration(p.start)*time.Second/hz
		p.began = time.Now().Add(-age).Round(time.Second)
	}
	p.vouched = !container || holdsGPU(dir)
	return p, true
}

// readHead reads a file of the kernel's once, past the runtime's poller, which would
// cost more than the reading.
func readHead(path string, buf []byte) ([]byte, bool) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer syscall.Close(fd)
	n, err := syscall.Read(fd, buf)
	return buf[:max(n, 0)], err == nil && n > 0
}

// startTicks is field 22 of /proc/PID/stat; the name before it may hold anything.
func startTicks(stat []byte) uint64 {
	i := bytes.LastIndexByte(stat, ')')
	f := strings.Fields(string(stat[i+1:]))
	if i < 0 || len(f) < 20 {
		return 0
	}
	n, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// command is the process's command line, bounded.
func command(dir string) string {
	f, err := os.Open(dir + "/cmdline")
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 1024)
	n, _ := f.Read(buf)
	return clean.Short(strings.TrimSpace(strings.ReplaceAll(string(buf[:n]), "\x00", " ")), 400)
}

// holdsGPU says whether the process has a file of the driver open.
func holdsGPU(dir string) bool {
	d, err := os.Open(dir + "/fd")
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(4096)
	for _, n := range names {
		to, err := os.Readlink(dir + "/fd/" + n)
		if err == nil && (strings.Contains(to, "nvidia") || strings.HasSuffix(to, "/dxg")) {
			return true
		}
	}
	return false
}

// inContainer says whether PIDs here are not the machine's: the first PID
// namespace has a number that the kernel fixes (include/linux/proc_ns.h).
func inContainer() bool {
	ns, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && ns != "pid:[4026531836]"
}

// readUsers reads names by number; a user that it does not have is its number.
func readUsers(path string) map[uint32]string {
	users := map[uint32]string{}
	raw, err := os.ReadFile(path)
	if err != nil {
		return users
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(line, ":")
		if len(f) < 3 || len(users) >= 10_000 {
			continue
		}
		if n, err := strconv.ParseUint(f[2], 10, 32); err == nil {
			if _, ok := users[uint32(n)]; !ok {
				users[uint32(n)] = clean.Short(f[0], 32)
			}
		}
	}
	return users
}
