package sample

// The parts of a sample that are not figures, each as bytes that are sent when
// they differ from those sent before.

import "time"

const (
	longName = 80
	longText = 400
)

// sections are, in order: the head, the processes, and two for each GPU: what
// seldom changes and what may.
func (s *Sample) sections() [][]byte {
	out := [][]byte{s.headBytes(), s.processBytes()}
	for i := range s.GPUs {
		out = append(out, s.GPUs[i].fixedBytes(), s.GPUs[i].stateBytes())
	}
	return out
}

func (s *Sample) headBytes() []byte {
	var w writer
	w.uint(uint64(min(len(s.GPUs), MaxGPUs)))
	w.text(s.Source, longName)
	w.text(s.Driver, longName)
	w.bool(s.Hidden)
	w.uint(uint64(max(0, s.Host.CPUs)))
	w.uint(uint64(len(s.Host.Disks)))
	for _, d := range s.Host.Disks {
		w.text(d.Mount, 120)
	}
	if w.bool(s.Problem != nil); s.Problem != nil {
		w.text(s.Problem.What, longText)
		w.text(s.Problem.Cure, longText)
	}
	return w
}

func (s *Sample) readHead(b []byte) error {
	r := reader{b: b}
	s.GPUs = make([]GPU, r.count(MaxGPUs))
	s.Source, s.Driver = r.text(longName), r.text(longName)
	s.Hidden = r.bool()
	s.Host.CPUs = r.count(1 << 16)
	s.Host.Disks = make([]Disk, r.count(MaxDisks))
	for i := range s.Host.Disks {
		s.Host.Disks[i].Mount = r.text(120)
	}
	if r.bool() {
		s.Problem = &Problem{What: r.text(longText), Cure: r.text(longText)}
	}
	return r.err
}

func (s *Sample) processBytes() []byte {
	var w writer
	w.uint(uint64(len(s.Processes)))
	for _, p := range s.Processes {
		w.int(int64(p.GPUIndex))
		w.uint(uint64(max(0, p.PID)))
		w.text(p.User, longName)
		w.text(p.Command, longText)
		w.int(stamp(p.StartedAt))
	}
	return w
}

func (s *Sample) readProcesses(b []byte) error {
	r := reader{b: b}
	s.Processes = make([]Process, r.count(MaxProcesses))
	for i := range s.Processes {
		p := &s.Processes[i]
		p.GPUIndex = max(-1, min(MaxGPUs, int(r.int())))
		p.PID = r.count(1 << 31)
		p.User, p.Command, p.StartedAt = r.text(longName), r.text(longText), moment(r.int())
	}
	return r.err
}

func (g *GPU) fixedBytes() []byte {
	var w writer
	w.int(int64(g.Index))
	w.text(g.UUID, longName)
	w.text(g.Name, longName)
	w.text(g.PCIBus, longName)
	w.text(g.MIG, longName)
	w.uint(uint64(len(g.Instances)))
	for _, in := range g.Instances {
		w.int(int64(in.GI))
		w.int(int64(in.CI))
		w.text(in.Profile, longName)
		w.text(in.UUID, longName)
	}
	return w
}

func (g *GPU) readFixed(b []byte) error {
	r := reader{b: b}
	g.Index = max(-1, min(MaxGPUs, int(r.int())))
	g.UUID, g.Name, g.PCIBus, g.MIG = r.text(longName), r.text(longName), r.text(longName), r.text(longName)
	g.Instances = make([]Instance, r.count(MaxInstances))
	for i := range g.Instances {
		in := &g.Instances[i]
		in.GI, in.CI = int(int32(r.int())), int(int32(r.int()))
		in.Profile, in.UUID = r.text(longName), r.text(longName)
	}
	return r.err
}

const maxThrottle = 64

func (g *GPU) stateBytes() []byte {
	var w writer
	w.text(g.PState, longName)
	w.text(g.Problem, longText)
	w.bool(g.ThrottleKnown)
	w.bool(g.ThrottleHot)
	w.uint(uint64(min(len(g.Throttle), maxThrottle)))
	for _, t := range g.Throttle[:min(len(g.Throttle), maxThrottle)] {
		w.text(t, longName)
	}
	w.uint(uint64(max(0, g.HiddenProcs)))
	w.uint(uint64(len(g.XIDs)))
	for _, x := range g.XIDs {
		w.uint(uint64(max(0, x.Code)))
		w.int(stamp(x.At))
	}
	return w
}

func (g *GPU) readState(b []byte) error {
	r := reader{b: b}
	g.PState, g.Problem = r.text(longName), r.text(longText)
	g.ThrottleKnown, g.ThrottleHot = r.bool(), r.bool()
	if n := r.count(maxThrottle); n > 0 {
		g.Throttle = make([]string, n)
		for i := range g.Throttle {
			g.Throttle[i] = r.text(longName)
		}
	}
	g.HiddenProcs = r.count(1 << 16)
	if n := r.count(MaxXIDs); n > 0 {
		g.XIDs = make([]XID, n)
		for i := range g.XIDs {
			g.XIDs[i] = XID{Code: r.count(1 << 16), At: moment(r.int())}
		}
	}
	return r.err
}

// stamp is a time in milliseconds; 0 is the zero time.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// moment is the time of a stamp; one outside the years that we know is none.
func moment(ms int64) time.Time {
	const year2200 = 7258118400000
	if ms <= 0 || ms > year2200 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
