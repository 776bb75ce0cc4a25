// Package vendors reads what the tools of other makers of accelerators print:
// amd-smi, rocm-smi and npu-smi. It starts nothing: rentop has the tools run over its
// connection, the guard runs them itself. The instance can link it.
package vendors

import (
	"fmt"
	"strings"

	"rentop/remote/clean"
	"rentop/remote/gpu/sample"
)

// Cards is what a tool told.
type Cards struct {
	Driver string
	GPUs   []sample.GPU
	Procs  []sample.Process
}

const maxProcesses = 512

// Command is one call of a tool. Part is the letter of its answer; Metric is the one
// that there must be.
type Command struct {
	Part byte
	Args []string
}

// Metric is the part that holds the figures.
const Metric = 'm'

// Tools are the names, best first, each with what it is asked. The collector asks the
// same (remote/gpu/collector.sh).
var Tools = []struct {
	Name     string
	Commands []Command
}{
	{"amd-smi", []Command{
		{'s', []string{"static", "--asic", "--bus", "--limit", "--driver", "--json"}},
		{'p', []string{"process", "--json"}},
		{Metric, []string{"metric", "--usage", "--power", "--clock", "--temperature", "--mem-usage", "--pcie", "--ecc", "--fan", "--json"}},
	}},
	{"rocm-smi", []Command{
		{Metric, []string{"--showproductname", "--showid", "--showuniqueid", "--showbus", "--showdriverversion", "--showuse", "--showmeminfo", "vram",
			"--showtemp", "--showpower", "--showmaxpower", "--showfan", "--showclocks", "--json"}},
	}},
	{"npu-smi", []Command{{Metric, []string{"info"}}}},
}

// Read makes cards of a tool's answers, by their parts. JSON may have been folded
// anywhere. ok is false where there are none.
func Read(tool string, part func(byte) string) (Cards, bool) {
	joined := func(p byte) string { return strings.ReplaceAll(part(p), "\n", "") }
	switch tool {
	case "rocm-smi":
		return ROCm(joined(Metric))
	case "amd-smi":
		return AMD(joined('s'), joined(Metric), joined('p'))
	case "npu-smi":
		return NPU(part(Metric))
	}
	return Cards{}, false
}

// Problem says in a sentence what a tool answered in place of its cards.
func Problem(tool string, code int, text string) *sample.Problem {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" {
		first = "it said nothing"
	}
	return &sample.Problem{What: fmt.Sprintf("%s cannot be read (exit %d): %s", tool, code, clean.Short(first, 120)),
		Cure: "run " + tool + " on the instance; log in as a member of the groups render and video, or as root"}
}
