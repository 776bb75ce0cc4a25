package gpu

// Processes: nvidia-smi --query-compute-apps for who holds memory, and the
// instance's own process table for user, command and age.

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"rentop/remote"
	"rentop/remote/gpu/sample"
)

// app is one line of --query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory.
type app struct {
	uuid string
	pid  int
	name string
	mem  Value
}

// parseApp reads one line of the fields asked for; the process name may hold commas.
func parseApp(fields []string, line string) (app, bool) {
	cells, ok := splitRow(line, len(fields), slices.Index(fields, "process_name"))
	if !ok {
		return app{}, false
	}
	a := app{mem: Value{Why: notOffered}}
	for i, f := range fields {
		switch f {
		case "gpu_uuid":
			a.uuid = sample.Word(cells[i], 80)
		case "pid":
			n, err := strconv.ParseUint(cells[i], 10, 31)
			if err != nil || n == 0 {
				return app{}, false // a header, or the driver's ABI bug (go-nvml#75)
			}
			a.pid = int(n)
		case "process_name":
			a.name = sample.Word(cells[i], 400)
		case "used_gpu_memory", "used_memory":
			a.mem = sample.Mebibytes(cells[i])
		}
	}
	return a, a.pid > 0
}

var appFields = []string{"gpu_uuid", "pid", "process_name", "used_gpu_memory"}

// psLine is what the process table says of a process.
type psLine struct {
	user    string
	age     time.Duration
	ageOK   bool
	command string
}

// parsePS reads "pid user etime args…"; user or etime may be "-".
func parsePS(line string) (pid int, p psLine, ok bool) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, p, false
	}
	n, err := strconv.ParseUint(f[0], 10, 31)
	if err != nil {
		return 0, p, false
	}
	if f[1] != "-" {
		p.user = remote.Short(f[1], 32)
	}
	p.age, p.ageOK = parseEtime(f[2])
	p.command = remote.Short(strings.Join(f[3:], " "), 400)
	return int(n), p, true
}

// parseEtime reads ps's [[dd-]hh:]mm:ss.
func parseEtime(s string) (time.Duration, bool) {
	days, rest, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, rest = "0", s
	}
	parts := strings.Split(rest, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	total, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, false
	}
	total *= 24
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || i > 0 && n > 59 {
			return 0, false
		}
		if i > 0 {
			total *= 60
		}
		total += n
	}
	return time.Duration(total) * time.Second, true
}

// processPoll gathers one poll of the processes.
type processPoll struct {
	apps  []app
	ps    map[int]psLine
	seen  map[int]bool // PIDs shown to hold a GPU by their open files
	vouch bool         // a container: a PID counts only where it is in seen
}

const maxApps = 512

func newPoll(vouch bool) *processPoll {
	return &processPoll{ps: map[int]psLine{}, seen: map[int]bool{}, vouch: vouch}
}

func (p *processPoll) add(a app) {
	if len(p.apps) < maxApps {
		p.apps = append(p.apps, a)
	}
}

// processes joins the poll. A driver gives PIDs of the machine, not of the
// container: one that the container does not have, or has for something that holds
// no GPU, is hidden, and its user is not guessed.
func (p *processPoll) processes(gpus []GPU, now time.Time, before []Process) (list []Process, hidden bool) {
	index := map[string]int{}
	for _, g := range gpus {
		index[g.UUID] = g.Index
	}
	started := map[int]time.Time{}
	for _, b := range before {
		started[b.PID] = b.StartedAt
	}
	for _, a := range p.apps {
		pr := Process{GPUIndex: -1, PID: a.pid, Command: a.name, Mem: a.mem}
		if i, ok := index[a.uuid]; ok {
			pr.GPUIndex = i
		}
		ps, known := p.ps[a.pid]
		if known && (!p.vouch || p.seen[a.pid]) {
			pr.User = ps.user
			if ps.command != "" {
				pr.Command = ps.command
			}
			if ps.ageOK {
				pr.StartedAt = steady(started[a.pid], now.Add(-ps.age))
			}
		} else {
			hidden = true
			if known {
				pr.Command = "" // the container's process of that number is another one
			}
		}
		list = append(list, pr)
	}
	return list, hidden
}

// steady keeps a start time that only rounding moved.
func steady(before, now time.Time) time.Time {
	if d := now.Sub(before); d > -3*time.Second && d < 3*time.Second {
		return before
	}
	return now
}

// unexplained says whether a GPU holds more memory than its processes do: someone
// whom the container does not show.
func unexplained(gpus []GPU, list []Process) bool {
	const slack = 1 << 30 // contexts and reserved memory that older drivers count as used
	for _, g := range gpus {
		used, ok := g.MemUsed.Get()
		if !ok || sample.Unified(g.Name) {
			continue
		}
		known := true
		for _, p := range list {
			if p.GPUIndex != g.Index {
				continue
			}
			m, ok := p.Mem.Get()
			known = known && ok
			used -= m
		}
		if known && used > slack {
			return true
		}
	}
	return false
}
