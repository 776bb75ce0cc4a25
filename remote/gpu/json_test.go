package gpu

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// The JSON that scripts rely on. A changed name here is a broken promise.
func TestJSON(t *testing.T) {
	r, ok := parseRow(queryFields, "0, GPU-1, 00000000:01:00.0, 2, 590.48.01, NVIDIA H100 80GB HBM3, 97 %, 11 %, 19818 MiB, 81559 MiB, 479 MiB, "+
		"631.95 W, 700.00 W, 59, 26, [N/A], 1980 MHz, 1980 MHz, 2619 MHz, 2619 MHz, P0, 0x0000000000000024, 5, 16, [Requested functionality has been deprecated], Disabled")
	if !ok {
		t.Fatal("the row was not read")
	}
	s := Sample{
		TakenAt: time.Date(2026, 11, 30, 18, 0, 0, 123456789, time.FixedZone("", 8*3600)), Source: "nvidia-smi", Driver: "590.48.01",
		GPUs: []GPU{r.GPU, lostGPU("0000:02:00.0", "GPU is lost")},
		Processes: []Process{
			{GPUIndex: 0, PID: 11345, User: "root", Command: "python train.py", Mem: Of(15690 << 20), StartedAt: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)},
			{GPUIndex: -1, PID: 312710, Mem: Value{Why: "[N/A]"}},
		},
		Hidden: true,
		Host: Host{CPUs: 16, CPU: Of(12.5), Load1: Of(1.5), MemUsed: Of(8 << 30), MemTotal: Of(64 << 30), NetRx: Value{Why: "known from the second reading on"},
			NetTx: Value{Why: "known from the second reading on"}, UptimeSec: Of(3600),
			Disks: []Disk{{Mount: "/", Used: Of(5 << 30), Total: Of(50 << 30), InodesUsed: Of(25)}}},
	}
	check := func(name string, s Sample) {
		t.Helper()
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		json.Indent(&got, raw, "", "  ")
		got.WriteByte('\n')
		path := "testdata/" + name + ".golden.json"
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs (go test -update writes it):\n%s", path, got.Bytes())
		}
	}
	check("sample", s)
	check("host-only", Sample{TakenAt: s.TakenAt, Source: "host only", Problem: problem(127, "")})
}
