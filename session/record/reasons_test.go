package record

import (
	"encoding/json"
	"strings"
	"testing"

	"rentop/remote/gpu"
)

// A tool's complaint may name a host, a home or a person; rentop's own words stay.
func TestReasonsAreRedacted(t *testing.T) {
	t.Parallel()
	s := gpu.Sample{Problem: &gpu.Problem{What: "amd-smi cannot be read (exit 1): alice@box: /home/alice/.cache", Cure: "ask alice"}}
	for _, problem := range []string{"driver hung, 42 s: save your work, then restart the instance", "the GPU does not answer (alice)", "driver hung, 42 s alice"} {
		s.GPUs = append(s.GPUs, gpu.GPU{Problem: problem, Util: gpu.Value{Why: "not told by nvidia-smi"}, Power: gpu.Value{State: gpu.Failed, Why: "unreadable: alice"},
			Fan: gpu.Value{Why: "[N/A]"}, Temp: gpu.Value{State: gpu.Failed, Why: "alice's error"}})
	}
	s.Processes = []gpu.Process{{Mem: gpu.Value{Why: "not for alice"}}}
	out := newStands().sample(&s)
	js, _ := json.Marshal(out)
	if strings.Contains(string(js), "alice") {
		t.Errorf("alice is in it: %s", js)
	}
	g := out.GPUs[0]
	if g.Problem != s.GPUs[0].Problem || g.Util.Why != "not told by nvidia-smi" || g.Fan.Why != "[N/A]" || g.Power.Why != "unreadable" {
		t.Errorf("rentop's own words are hidden: %+v", g)
	}
	if s.GPUs[0].Power.Why != "unreadable: alice" || s.Problem.Cure == "" || s.Processes[0].Mem.Why != "not for alice" {
		t.Error("the sample itself was changed")
	}
	var none *stands
	if got := none.sample(&s); got.Problem.Cure != "ask alice" {
		t.Errorf("without redaction: %+v", got.Problem)
	}
}
