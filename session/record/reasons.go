package record

// Why a figure is missing, as a redacted recording tells it: our own words stay; a
// tool's may hold a path, a host or a name and are hidden whole.

import (
	"regexp"
	"strings"

	"rentop/remote/gpu"
)

// ownReasons are what rentop itself says of a cell, and the words that drivers use
// for "none".
var ownReasons = regexp.MustCompile(`^(?:\[?(?i:n/a|not supported|not found|unknown error|not available)\]?|-|empty|implausible|unified memory|no answer|` +
	`not (?:supported|permitted|offered by this driver|told (?:under MIG|for a process|by the driver|by (?:nvidia|amd|rocm|npu)-smi))|` +
	`the counters went back|no time has passed|known from the second reading on|counted in containers alone|not every process may be looked at|` +
	`the (?:container's use|process table) cannot be read|the driver does not tell the memory of each process|` +
	`no network interface can be read|this file system does not count inodes|/proc/stat (?:does not tell it|cannot be read))$`)

// reason is a cell's.
func (h *stands) reason(s string) string {
	if s == "" || ownReasons.MatchString(s) {
		return s
	}
	for _, own := range []string{"unreadable", "implausible"} {
		if strings.HasPrefix(s, own+": ") { // and what stood there
			return own
		}
	}
	return h.text(s)
}

// ownProblems are sentences of rentop's without anything of the instance's.
var ownProblems = regexp.MustCompile(`^(?:driver hung, \d+ s(?:: save your work, then restart the instance)?|no GPU is attached to the instance|nvidia-smi (?:crashes|is not on the instance)|` +
	`the GPU is lost: save your work, then restart the instance or ask the provider for another|the GPU requires a reset: save your work, then stop and start the instance|` +
	`the driver's library libnvidia-ml\.so\.1 is not on the instance)$`)

// problem is a whole GPU's, or a whole source's.
func (h *stands) problem(s string) string {
	if ownProblems.MatchString(s) {
		return s
	}
	return h.text(s)
}

// reasons hides them in a sample that is our own copy.
func (h *stands) reasons(s *gpu.Sample) {
	if s.Problem != nil {
		s.Problem = &gpu.Problem{What: h.problem(s.Problem.What)} // whoever was not there cures nothing
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		g.Problem = h.problem(g.Problem)
		for _, v := range g.Cells() {
			v.Why = h.reason(v.Why)
		}
		for j := range g.Instances {
			for _, v := range []*gpu.Value{&g.Instances[j].Util, &g.Instances[j].MemUsed, &g.Instances[j].MemTotal} {
				v.Why = h.reason(v.Why)
			}
		}
	}
	for i := range s.Processes {
		s.Processes[i].Mem.Why = h.reason(s.Processes[i].Mem.Why)
	}
}
