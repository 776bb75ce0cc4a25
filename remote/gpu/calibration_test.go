package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/alarm"
	"rentop/remote/gpu/vendors"
)

// The usual thresholds are silent on every recorded machine: loaded ones for
// twenty minutes with a job, idle ones for nine minutes without.
func TestAlarmsAreSilentOnRecordedMachines(t *testing.T) {
	dir := corpus(t)
	var files []string
	for _, glob := range []string{"split/*/idle-query-gpu.txt", "split/*/load-query-gpu.txt", "mock535/*-query.csv", "csv-nge-*"} {
		m, _ := filepath.Glob(filepath.Join(dir, glob))
		files = append(files, m...)
	}
	machines := map[string][]GPU{}
	for _, file := range files {
		name, _ := filepath.Rel(dir, file)
		if gpus := rowsOf(read(t, file)); len(gpus) > 0 {
			machines[name] = gpus
		} else {
			t.Logf("%s holds no rows", name)
		}
	}
	for _, name := range []string{"rocm-telegraf-mi100_rocm602.json", "rocm-telegraf-mi100_rocm571.json", "rocm-telegraf-vega-20-WKS-GL-XE.json", "rocm-pai.json"} {
		if got, ok := vendors.ROCm(recorded(t, name)); ok {
			machines[name] = got.GPUs
		}
	}
	got, _ := vendors.NPU(recorded(t, "excerpt/npu-smi-25.2.0-910B4.txt"))
	machines["npu-smi-25.2.0"] = got.GPUs
	if len(machines) < 20 {
		t.Errorf("only %d machines were found", len(machines))
	}
	for name, gpus := range machines {
		busy := strings.Contains(name, "load-")
		long := 20 * time.Minute
		if !busy {
			long = 9 * time.Minute
		}
		w := new(alarm.Watch)
		begin := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		for d := time.Duration(0); d <= long; d += 2 * time.Second {
			m := alarm.Moment{At: begin.Add(d), Live: true, Sample: &Sample{TakenAt: begin.Add(d), GPUs: gpus, Host: Host{CPU: Of(20), IOWait: Of(1), Steal: Of(0)}}}
			if busy {
				m.Jobs = []alarm.Job{{Name: "j", Running: true, Began: begin}}
			}
			if f := w.Step(m, alarm.Usual()); len(f) > 0 {
				t.Errorf("%s after %v: %s %+v", name, d, f[0].ID, f[0].Text)
				break
			}
		}
	}
}

// rowsOf reads the first table of a recorded query.
func rowsOf(text string) (gpus []GPU) {
	var fields []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case fields == nil && strings.Contains(line, "uuid") && strings.Contains(line, "utilization.gpu"):
			fields = header(line)
		case fields != nil:
			if r, ok := parseRow(fields, line); ok {
				gpus = append(gpus, r.GPU)
			}
		}
	}
	return gpus
}

// recorded reads a recorded output, or skips.
func recorded(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
