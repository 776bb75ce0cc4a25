//go:build unix

package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
)

func TestStream(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	f := smi(t, "ok", "STARTS="+starts)
	got := collect(t, local{}, f, Options{}, 4)
	for i, s := range got {
		if len(s.GPUs) != 2 || s.Source != "nvidia-smi" || s.Problem != nil || s.Driver != "590.48.01" {
			t.Fatalf("sample %d = %+v", i, s)
		}
		if i > 0 && !s.TakenAt.After(got[i-1].TakenAt) {
			t.Errorf("sample %d is not later than the one before", i)
		}
	}
	g := got[3].GPUs[1]
	has(t, "util", g.Util, 97)
	has(t, "memory", g.MemUsed, 19818<<20)
	has(t, "power", g.Power, 631.95)
	has(t, "margin", g.TempMargin, 26)
	if g.Name != "H100 80GB HBM3" || g.Index != 1 || g.PState != "P0" || !g.ThrottleHot {
		t.Errorf("GPU = %+v", g)
	}
	if g.Fan.State != NA || g.Fan.Why != "[N/A]" {
		t.Errorf("fan = %+v, want NA", g.Fan)
	}
	h := got[3].Host
	if h.CPUs == 0 || h.CPU.State != OK || h.MemTotal.State != OK || h.MemUsed.V <= 0 || h.Load1.State != OK || len(h.Disks) == 0 {
		t.Errorf("host = %+v", h)
	}
	log, _ := os.ReadFile(starts)
	if n := strings.Count(string(log), "--query-gpu"); n != 2 {
		t.Errorf("nvidia-smi was started %d times for the GPUs, want one probe and one stream:\n%s", n, log)
	}
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	g := collect(t, local{}, smi(t, "old"), Options{}, 2)[1].GPUs[0]
	has(t, "util", g.Util, 97)
	has(t, "temperature", g.Temp, 59)
	if g.MemReserved.State != NA || g.MemReserved.Why != notOffered || g.TempMargin.State != NA {
		t.Errorf("dropped fields = %+v, %+v", g.MemReserved, g.TempMargin)
	}
	if !g.ThrottleHot { // asked for by its newer name
		t.Errorf("throttle = %v", g.Throttle)
	}
}

// The same under another shell: ash and dash read signals and traps differently from bash.
func TestShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "dash", "ksh", "mksh", "zsh", "busybox sh"} {
		if _, err := exec.LookPath(strings.Fields(shell)[0]); err != nil {
			continue
		}
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := collect(t, local{shell: shell}, smi(t, "old"), Options{}, 3)[2]
			if len(s.GPUs) != 2 || s.GPUs[1].Util != Of(97) || s.Host.CPU.State != OK || len(s.Host.Disks) == 0 {
				t.Errorf("sample = %+v", s)
			}
		})
	}
}

func TestNoGPU(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{"none": "no GPU is attached", "driver": "driver is not loaded"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := collect(t, local{}, smi(t, mode), Options{}, 3)[2]
			if s.Problem == nil || !strings.Contains(s.Problem.What, want) || s.Problem.Cure == "" {
				t.Errorf("problem = %+v", s.Problem)
			}
			if s.Source != "host only" || s.Host.MemTotal.State != OK || len(s.GPUs) != 0 {
				t.Errorf("sample = %+v", s)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		_, err := exec.LookPath("nvidia-smi")
		needtest.That(t, err != nil, "a machine without nvidia-smi")
		s := collect(t, local{}, &remote.Facts{OtherSMI: []string{"npu-smi"}}, Options{}, 2)[1]
		if s.Problem == nil || !strings.Contains(s.Problem.What, "npu-smi") || s.Source != "host only" {
			t.Errorf("sample = %+v", s)
		}
	})
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	for i, s := range collect(t, local{}, smi(t, "garbage"), Options{}, 4) {
		if len(s.GPUs) != 2 {
			t.Fatalf("sample %d has %d GPUs", i, len(s.GPUs))
		}
		has(t, "util", s.GPUs[0].Util, 97)
	}
}

func TestDeathAndRestart(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	got := collect(t, local{}, smi(t, "dies", "STARTS="+starts), Options{}, 4)
	if s := got[3]; len(s.GPUs) != 2 || s.Problem != nil {
		t.Errorf("after the restart: %+v", s)
	}
	if log, _ := os.ReadFile(starts); strings.Count(string(log), " -l 1") < 2 {
		t.Errorf("nvidia-smi was not started again:\n%s", log)
	}
}

func TestVanishedGPU(t *testing.T) {
	t.Parallel()
	s := collect(t, local{}, smi(t, "shrink"), Options{}, 5)[4]
	if len(s.GPUs) != 2 || s.GPUs[1].Problem == "" || s.GPUs[1].Index != 1 || s.GPUs[1].Util.State != Failed {
		t.Errorf("GPUs = %+v", s.GPUs)
	}
	has(t, "the other's util", s.GPUs[0].Util, 97)
}

func TestLostGPU(t *testing.T) {
	t.Parallel()
	buses := t.TempDir()
	for _, b := range []string{"0000:01:00.0", "0000:02:00.0"} {
		if err := os.Mkdir(filepath.Join(buses, b), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := local{edit: func(s string) string { return strings.ReplaceAll(s, "/proc/driver/nvidia/gpus", buses) }}
	s := collect(t, l, smi(t, "lost"), Options{}, 1)[0]
	if len(s.GPUs) != 2 || !strings.Contains(s.GPUs[1].Problem, "lost") || s.GPUs[1].Util.State != Failed {
		t.Fatalf("GPUs = %+v", s.GPUs)
	}
	has(t, "the other's util", s.GPUs[0].Util, 97)
}

// A driver that hangs stops nothing else, and no second nvidia-smi piles up.
func TestHang(t *testing.T) {
	t.Parallel()
	starts := filepath.Join(t.TempDir(), "starts")
	now := time.Now()
	o := Options{Clock: func() time.Time { now = now.Add(4 * time.Second); return now }}
	s := collect(t, local{}, smi(t, "hang", "STARTS="+starts), o, 2)[1]
	if s.Problem == nil || !strings.Contains(s.Problem.What, "has not answered") || s.Host.MemTotal.State != OK {
		t.Errorf("sample = %+v", s)
	}
	if log, _ := os.ReadFile(starts); strings.Count(string(log), "\n") != 2 {
		t.Errorf("started:\n%s", log)
	}
}

func TestSilentDriver(t *testing.T) {
	a := &assembly{}
	t0 := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	a.feed(record{'f', "index,name,utilization.gpu"}, t0)
	a.feed(record{0, "0, NVIDIA L4, 12 %"}, t0)
	if s := a.feed(record{'q', "0"}, t0); s == nil || s.GPUs[0].Util != Of(12) {
		t.Fatalf("probe = %+v", s)
	}
	if s := a.feed(record{'h', "up=1"}, t0.Add(10*time.Second)); s != nil {
		t.Fatalf("a sample without GPU figures: %+v", s)
	}
	s := a.feed(record{'h', "up=40"}, t0.Add(40*time.Second))
	if s == nil || s.Problem == nil || s.GPUs[0].Util.State != Failed || s.GPUs[0].Name != "L4" {
		t.Fatalf("silent = %+v", s)
	}
	if s := a.feed(record{0, "0, NVIDIA L4, 13 %"}, t0.Add(41*time.Second)); s == nil || s.Problem != nil || s.GPUs[0].Util != Of(13) {
		t.Fatalf("back = %+v", s)
	}
}

// A connection that is half open brings no beat and no end: the lease runs out.
func TestLease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := local{stall: true, began: make(chan string, 1), edit: func(s string) string {
		return strings.Replace(s, "lease=20", "lease=3", 1)
	}}
	n := 0
	err := Stream(ctx, l, smi(t, "ok"), Options{}, func(Sample) { n++ })
	if err == nil || ctx.Err() != nil || n == 0 {
		t.Errorf("Stream = %v after %d samples", err, n)
	}
	gone(t, <-l.began, 3*time.Second)
}

func TestBeatsRenewTheLease(t *testing.T) {
	t.Parallel()
	l := local{edit: func(s string) string { return strings.Replace(s, "lease=20", "lease=7", 1) }}
	got := collect(t, l, smi(t, "ok"), Options{}, 11)
	if d := got[10].TakenAt.Sub(got[0].TakenAt); d < 8*time.Second {
		t.Errorf("11 samples in %v", d)
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	f := smi(t, "procs", fmt.Sprintf("PID=%d", child.Process.Pid))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := Once(ctx, local{}, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Processes) != 2 || !s.Hidden {
		t.Fatalf("processes = %+v, hidden %v", s.Processes, s.Hidden)
	}
	p := s.Processes[0]
	if p.Command != "sleep 60" || p.User == "" || p.GPUIndex != 0 || time.Since(p.StartedAt) > 10*time.Second {
		t.Errorf("process = %+v", p)
	}
	has(t, "process memory", p.Mem, 20000<<20)
	if p := s.Processes[1]; p.User != "" || p.Mem.State != NA || !p.StartedAt.IsZero() {
		t.Errorf("hidden process = %+v", p)
	}
	if s.Host.CPU.State != OK {
		t.Errorf("CPU of one sample = %+v", s.Host.CPU)
	}
	// In a container the same PID may be another process: nobody is named.
	f.Container = "docker"
	if s, err = Once(ctx, local{}, f, Options{}); err != nil {
		t.Fatal(err)
	}
	if p := s.Processes[0]; p.User != "" || p.Command != "" || !s.Hidden {
		t.Errorf("process that holds no GPU file = %+v", p)
	}
}
