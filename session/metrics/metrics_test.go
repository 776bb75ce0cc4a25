package metrics

import (
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"rentop/remote/gpu"
	"rentop/remote/tmux"
	"rentop/session"
	"rentop/session/billing"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func cny(cents int64) *billing.Amount {
	return &billing.Amount{Value: big.NewRat(cents, 100), Currency: "CNY"}
}

func code(n int) *int { return &n }

// fleet is an instance with everything, one whose sample is old, and one of which
// nothing is known.
func fleet() *session.FleetView {
	full := gpu.GPU{Index: 0, UUID: "GPU-1", Name: "A100-SXM4-80GB", PCIBus: "00000000:07:00.0", Util: gpu.Of(97), MemUtil: gpu.Of(61),
		MemUsed: gpu.Of(70 << 30), MemTotal: gpu.Of(80 << 30), MemReserved: gpu.Of(1 << 30), Power: gpu.Of(312.4), PowerLimit: gpu.Of(400), Temp: gpu.Of(64),
		ClockSM: gpu.Of(1410), ClockMem: gpu.Of(1593), ECCErrors: gpu.Of(0), Throttle: []string{"power cap"}, XIDs: []gpu.XID{{Code: 31, At: noon}, {Code: 63, At: noon}},
		Fan: gpu.Value{Why: "[N/A]"}, PCIeTx: gpu.Of(1 << 30), RemapFailed: gpu.Of(0),
		Instances: []gpu.Instance{{GI: 7, Profile: "1g.10gb", UUID: "MIG-1", MemUsed: gpu.Of(5 << 30), MemTotal: gpu.Of(10 << 30)}}}
	lost := gpu.GPU{Index: 1, UUID: "GPU-2", Name: "A100-SXM4-80GB", Problem: "fell off the bus", Util: gpu.Value{State: gpu.Failed, Why: "ERR!"}, MemTotal: gpu.Of(80 << 30)}
	work := session.View{
		Name: "a100-tune", State: session.Live, Since: noon.Add(-time.Hour), RTT: 24 * time.Millisecond,
		Sample: &gpu.Sample{TakenAt: noon.Add(-time.Second), Source: "nvml", Driver: "550.54.15", GPUs: []gpu.GPU{full, lost},
			Host: gpu.Host{CPUs: 16, CPU: gpu.Of(34), MemUsed: gpu.Of(41 << 30), MemTotal: gpu.Of(125 << 30), Disks: []gpu.Disk{{Mount: "/data", Used: gpu.Of(61 << 30), Total: gpu.Of(100 << 30)}}}},
		Meter: session.Meter{Cost: cny(2561), Today: cny(2561), PerHour: cny(800), Budget: cny(5000), BudgetLeft: cny(2439)},
		Jobs:  []tmux.Job{{State: tmux.Running}, {State: tmux.Done, ExitCode: code(0)}, {State: tmux.Done, ExitCode: code(1)}},
		Saved: session.Saved{Known: true, Files: 12, Bytes: 3 << 30},
		Alerts: []session.Alert{{ID: "gpu1", Level: session.Urgent}, {ID: "disk /data", Level: session.Warn}, {ID: "idle", Level: session.Info},
			{ID: "xid 31 gpu 0", Level: session.Urgent}},
	}
	old := session.View{Name: "old", State: session.Waiting, Since: noon.Add(-2 * time.Minute), Sample: work.Sample, Meter: session.Meter{AtLeast: cny(100), Missing: []string{"disk price"}}}
	return &session.FleetView{At: noon, Balances: []session.Balance{{Provider: "autodl", Left: *cny(2400), At: noon.Add(-time.Minute), Lasts: 3 * time.Hour, AtMost: true}}, Sessions: []session.View{work, old, {Name: "bare", State: session.Idle}}}
}

func written(t testing.TB, v *session.FleetView) (string, parsed) {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, v, "1.2.3", noon); err != nil {
		t.Fatal(err)
	}
	p, err := parse(b.String())
	if err != nil {
		t.Fatalf("no Prometheus would read this: %v", err)
	}
	return b.String(), p
}

func TestGolden(t *testing.T) {
	text, _ := written(t, fleet())
	name := filepath.Join("testdata", "fleet.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// One figure of each kind, in dcgm-exporter's unit.
func TestFigures(t *testing.T) {
	_, p := written(t, fleet())
	card := `{gpu="0",UUID="GPU-1",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="a100-tune",instance="a100-tune",DCGM_FI_DRIVER_VERSION="550.54.15"}`
	for series, want := range map[string]float64{
		"DCGM_FI_DEV_GPU_UTIL" + card:                                                         97,
		"DCGM_FI_DEV_FB_USED" + card:                                                          70 * 1024,
		"DCGM_FI_DEV_FB_FREE" + card:                                                          9 * 1024,
		"DCGM_FI_DEV_POWER_USAGE" + card:                                                      312.4,
		"DCGM_FI_DEV_XID_ERRORS" + card:                                                       63,
		"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" + card:                                                0,
		`rentop_cost{instance="a100-tune",currency="CNY"}`:                                    25.61,
		`rentop_cost_known{instance="old"}`:                                                   0,
		`rentop_cost_at_least{instance="old",currency="CNY"}`:                                 1,
		`rentop_sample_stale{instance="a100-tune"}`:                                           0,
		`rentop_balance{provider="autodl",currency="CNY"}`:                                    24,
		`rentop_balance_lasts_at_most_seconds{provider="autodl",currency="CNY"}`:              10800,
		`rentop_sample_stale{instance="old"}`:                                                 1,
		`rentop_sample_stale{instance="bare"}`:                                                1,
		`rentop_jobs{instance="a100-tune",state="running"}`:                                   1,
		`rentop_jobs{instance="a100-tune",state="lost"}`:                                      0,
		`rentop_jobs_failed{instance="a100-tune"}`:                                            1,
		`rentop_alarm{instance="a100-tune",alarm="gpu",level="urgent",of="1"}`:                1,
		`rentop_alarm{instance="a100-tune",alarm="disk",level="warning",of="/data"}`:          1,
		`rentop_instance_state{instance="a100-tune",state="live"}`:                            1,
		`rentop_instance_state{instance="a100-tune",state="gone"}`:                            0,
		`rentop_host_disk_used_bytes{instance="a100-tune",mount="/data"}`:                     61 << 30,
		`rentop_sample_time_seconds{instance="a100-tune",source="nvml"}`:                      float64(noon.Unix() - 1),
		"DCGM_FI_DEV_FB_USED" + card[:len(card)-1] + `,GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"}`: 5 * 1024,
	} {
		if got, there := p.figures[series]; !there || got != want {
			t.Errorf("%s is %v (there: %v), want %v", series, got, there, want)
		}
	}
}

// What is not known has no series, and what is old has none either.
func TestMissingIsAbsent(t *testing.T) {
	_, p := written(t, fleet())
	for series, l := range p.labels {
		name, _, _ := strings.Cut(series, "{")
		switch {
		case l["UUID"] == "GPU-2" && name != "DCGM_FI_DEV_FB_TOTAL" && name != "rentop_gpu_problem":
			t.Errorf("a lost card has %s", series)
		case name == "DCGM_FI_DEV_FAN_SPEED":
			t.Errorf("a card without a fan has %s", series)
		case l["instance"] == "old" && (strings.HasPrefix(name, "DCGM") || strings.HasPrefix(name, "rentop_host") || name == "rentop_cost"):
			t.Errorf("an instance that does not answer has %s", series)
		case l["instance"] == "bare" && !strings.HasPrefix(name, "rentop_instance_state") && name != "rentop_sample_stale" && name != "rentop_cost_known":
			t.Errorf("an instance of which nothing is known has %s", series)
		}
	}
}

// Two cards that say they are the same one do not spoil the page.
func TestEqualCards(t *testing.T) {
	v := fleet()
	s := *v.Sessions[0].Sample
	s.GPUs = []gpu.GPU{s.GPUs[0], s.GPUs[0]}
	s.Host.Disks = []gpu.Disk{{Mount: "/", Used: gpu.Of(1)}, {Mount: "/", Used: gpu.Of(2)}}
	v.Sessions[0].Sample = &s
	written(t, v)
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		`a"b\c`:                  `a\"b\\c`,
		"two\nlines":             "two lines",
		"\x1b[31mred\x00":        "␛[31mred␀",
		"中文":                     "中文",
		"\xff":                   "\ufffd",
		strings.Repeat("x", 500): strings.Repeat("x", 199) + "…",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("a100", "NVIDIA \"A100\"", "/data\\", "disk x")
	f.Add("\x1b]0;x\x07", "\n# TYPE x gauge\nx 1", "}", "99")
	f.Fuzz(func(t *testing.T, name, model, mount, alarm string) {
		v := fleet()
		s := &v.Sessions[0]
		s.Name = name
		s.Sample.GPUs[0].Name, s.Sample.GPUs[0].UUID, s.Sample.GPUs[0].Throttle = model, mount, []string{alarm}
		s.Sample.GPUs[1].Problem, s.Sample.Source, s.Sample.Driver = alarm, mount, model
		s.Sample.Host.Disks[0].Mount = mount
		s.Alerts[0].ID = alarm
		s.Meter.Cost.Currency = model
		_, p := written(t, v)
		for series, l := range p.labels {
			for k, x := range l {
				if strings.ContainsAny(x, "\x00\x1b\n") || utf8.RuneCountInString(x) > maxLabel+len("NVIDIA ") {
					t.Fatalf("%s: label %s is %q", series, k, x)
				}
			}
		}
	})
}
