package gpu

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rentop/remote/gpu/sample"
)

// assembly makes Samples of the collector's records. It holds no clock and does no
// I/O: what it is fed is all that it knows.
type assembly struct {
	others []string // other vendors' tools that a probe found
	vouch  bool

	fields []string
	rows   []row // of the tick or the probe that is being read
	lost   []GPU // GPUs that did not answer for themselves
	said   []string
	asking bool // within a probe: rows are complete at its end

	gpus    []GPU // of the last complete tick
	driver  string
	fault   *Problem
	settled bool      // nvidia-smi has answered at least once, or is known not to
	heard   time.Time // when the last complete tick or verdict came
	began   time.Time // when the first record came

	cpus   int
	last   *sample.Counters
	host   Host
	memory sample.MachineMemory

	poll    *processPoll
	procs   []Process
	hidden  bool
	surplus int // polls in a row that found unexplained memory

	other  *otherPoll // of another vendor's tool, while it is read
	source string     // that tool; "" is nvidia-smi

	blocks, inodes []sample.Mount
	disks          []Disk
	done           bool // the collector said that it is done (once)
}

const (
	firstAnswer = 30 * time.Second // netdata#18690: many-GPU chassis need more than 10 s
	firstHost   = 3 * time.Second
	maxGPUs     = 128
	maxSaid     = 20
)

// feed takes one record; a Sample comes back where this record completed one.
func (a *assembly) feed(r record, now time.Time) *Sample {
	if a.began.IsZero() {
		a.began = now
	}
	switch r.kind {
	case 0:
		return a.line(r.text, now)
	case 'f':
		a.fields = strings.Split(r.text, ",")
		a.rows, a.lost, a.said, a.asking = nil, nil, nil, true
	case 'l':
		bus, complaint, _ := strings.Cut(r.text, " ")
		if len(a.lost) < maxGPUs {
			a.lost = append(a.lost, lostGPU(bus, complaint))
		}
	case 'q':
		return a.verdict(r.text, now)
	case 'x': // the stream ended; the next probe says why
		a.rows, a.said = nil, nil
	case 'h':
		return a.hostLine(r.text, now)
	case 's':
		if n, err := strconv.ParseUint(strings.TrimPrefix(r.text, "cpus="), 10, 16); err == nil {
			a.cpus = int(n)
		}
	case 'B':
		a.poll = newPoll(a.vouch)
	case 'a', 'p', 'v':
		a.process(r)
	case 'A':
		a.pollEnd(r.text, now)
	case 'O', 'o', 'P':
		return a.otherRecord(r, now)
	case 'D':
		a.blocks, a.inodes = nil, nil
	case 'd', 'i':
		a.dfLine(r)
	case 'E':
		a.disks = sample.Disks(a.blocks, a.inodes)
	case 'Z':
		a.done = true
	}
	return nil
}

// line takes a line of nvidia-smi's own: a row, its header, or a complaint.
func (a *assembly) line(text string, now time.Time) *Sample {
	r, ok := parseRow(a.fields, text)
	if !ok {
		if t := strings.TrimSpace(text); t != "" && len(a.said) < maxSaid {
			a.said = append(a.said, t)
		}
		return nil
	}
	var s *Sample
	if !a.asking && len(a.rows) > 0 && r.Index <= a.rows[len(a.rows)-1].Index {
		s = a.tick(now) // the next tick has begun: the one before was short of a GPU
	}
	if len(a.rows) < maxGPUs {
		a.rows = append(a.rows, r)
	}
	if !a.asking && len(a.rows) >= max(1, r.count) {
		s = a.tick(now)
	}
	return s
}

// flush completes a tick whose last row did not come: a GPU less than before.
func (a *assembly) flush(now time.Time) *Sample {
	if a.asking || len(a.rows) == 0 {
		return nil
	}
	return a.tick(now)
}

// pending says whether rows wait for the rest of their tick.
func (a *assembly) pending() bool { return !a.asking && len(a.rows) > 0 }

func (a *assembly) tick(now time.Time) *Sample {
	gpus := make([]GPU, 0, len(a.rows)+len(a.lost))
	here := map[string]bool{}
	for _, r := range a.rows {
		gpus = append(gpus, r.GPU)
		here[r.UUID+r.PCIBus] = true
		if r.driver != "" {
			a.driver = r.driver
		}
	}
	gpus = append(gpus, a.lost...)
	for _, g := range a.gpus { // one that was there and is not: said, not dropped
		if !here[g.UUID+g.PCIBus] && g.Index >= 0 && len(gpus) < len(a.gpus) {
			l := lostGPU(g.PCIBus, "missing from the answer")
			l.Index, l.UUID, l.Name = g.Index, g.UUID, g.Name
			gpus = append(gpus, l)
		}
	}
	a.gpus, a.rows, a.said = gpus, nil, nil
	a.fault, a.settled, a.heard = nil, true, now
	return a.sample(now)
}

// verdict is the end of a probe, with nvidia-smi's exit code.
func (a *assembly) verdict(code string, now time.Time) *Sample {
	rc, err := strconv.Atoi(code)
	if err != nil {
		return nil
	}
	a.asking = false
	if rc == 0 && len(a.rows)+len(a.lost) > 0 {
		a.gpus = nil // a fresh count: the probe is the truth
		return a.tick(now)
	}
	text := strings.Join(a.said, "\n")
	a.rows, a.said = nil, nil
	a.settled, a.heard = true, now
	switch {
	case rc == 127 && text == "":
		a.fault = noTool(a.others)
	case rc == 0 && text == "":
		a.fault = problem(0, "No devices were found")
	default:
		a.fault = problem(rc, text)
	}
	a.gpus = nil
	if a.last == nil && now.Sub(a.began) < firstHost {
		return nil // the host's first figures come at once: no sample without any
	}
	return a.sample(now)
}

// hostLine takes a line of counters. It completes a Sample where no GPU stream
// sets the pace: a host alone, a driver that failed, or one that hangs.
func (a *assembly) hostLine(text string, now time.Time) *Sample {
	c := sample.ParseHost(text)
	a.host = c.Host(a.last, a.cpus)
	a.memory = c.Machine()
	a.last = &c
	switch {
	case a.fault != nil:
		return a.sample(now)
	case !a.settled && now.Sub(a.began) >= firstAnswer:
		a.fault = hung(rough(now.Sub(a.began)))
		s := a.sample(now)
		a.fault = nil
		return s
	case a.settled && now.Sub(a.heard) >= firstAnswer:
		return a.silent(now)
	case a.settled && a.source != "": // its tool is polled: the host sets the pace
		return a.sample(now)
	}
	return nil
}

func rough(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// silent is the sample of a driver that has stopped answering: the GPUs are still
// named, and none of their last figures is passed off as new.
func (a *assembly) silent(now time.Time) *Sample {
	s := a.sample(now)
	s.Problem = hung(rough(now.Sub(a.heard)))
	for i := range s.GPUs {
		g := &s.GPUs[i]
		for _, v := range g.Cells() {
			*v = Value{State: Failed, Why: "no answer"}
		}
		g.Throttle, g.ThrottleHot, g.PState = nil, false, ""
		if g.Problem == "" {
			g.Problem = "nvidia-smi does not answer"
		}
	}
	return s
}

func (a *assembly) process(r record) {
	if a.poll == nil {
		return
	}
	switch r.kind {
	case 'a':
		if p, ok := parseApp(appFields, r.text); ok {
			a.poll.add(p)
		}
	case 'p':
		if pid, p, ok := parsePS(r.text); ok && len(a.poll.ps) < maxApps {
			a.poll.ps[pid] = p
		}
	case 'v':
		if pid, err := strconv.Atoi(r.text); err == nil && len(a.poll.seen) < maxApps {
			a.poll.seen[pid] = true
		}
	}
}

func (a *assembly) pollEnd(code string, now time.Time) {
	p := a.poll
	if a.poll = nil; p == nil || code != "0" {
		a.procs, a.hidden, a.surplus = nil, false, 0
		return
	}
	a.procs, a.hidden = p.processes(a.gpus, now, a.procs)
	// Memory is read more often than processes: one poll may come before a start or
	// after an end, two in a row do not.
	if unexplained(a.gpus, a.procs) {
		a.surplus++
	} else {
		a.surplus = 0
	}
	a.hidden = a.hidden || a.surplus > 1
}

func (a *assembly) dfLine(r record) {
	const maxMounts = 1000
	l, ok := sample.ParseDF(r.text)
	switch {
	case !ok:
	case r.kind == 'd' && len(a.blocks) < maxMounts:
		a.blocks = append(a.blocks, l)
	case r.kind == 'i' && len(a.inodes) < maxMounts:
		a.inodes = append(a.inodes, l)
	}
}

// sample is all that is known, as the consumer's own copy.
func (a *assembly) sample(now time.Time) *Sample {
	s := &Sample{TakenAt: now, Source: cmp.Or(a.source, "nvidia-smi"), Driver: a.driver, Hidden: a.hidden, Host: a.host, Problem: a.fault}
	s.GPUs = append([]GPU(nil), a.gpus...)
	s.Processes = append([]Process(nil), a.procs...)
	s.Host.Disks = append([]Disk(nil), a.disks...)
	for i := range s.GPUs {
		s.GPUs[i].ShareHost(a.memory)
	}
	if a.fault != nil && len(s.GPUs) == 0 {
		s.Source, s.Driver, s.Processes, s.Hidden = "host only", "", nil, false
	}
	return s
}
