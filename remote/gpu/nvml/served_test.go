//go:build linux && cgo

package nvml

// The reader as it travels: linked against an old C library, served over a link to
// a process of its own, and what it costs there.

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
	"rentop/remote/needtest"
)

// linked builds a program as a release does.
func linked(t testing.TB, what string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	flags, err := exec.Command("sh", filepath.Join(root, ".ci/oldlibc"), dir+"/libc", runtime.GOARCH).Output()
	needtest.Done(t, err, "a C compiler to link with")
	bin := dir + "/reader"
	build := exec.Command("go", "build", "-trimpath", "-tags", "osusergo,netgo", "-ldflags", "-s -w", "-o", bin, what)
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_LDFLAGS="+strings.TrimSpace(string(flags)), "CGO_CFLAGS=-O2 -Wno-deprecated-declarations")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the reader: %v\n%s", err, out)
	}
	return bin
}

func TestServedFromAnOldLink(t *testing.T) {
	bin := linked(t, "../../agent/rentop-gpu")
	out, err := exec.Command("objdump", "-T", bin).Output()
	needtest.Done(t, err, "the program objdump")
	for _, v := range regexp.MustCompile(`GLIBC_(\d+)\.(\d+)`).FindAllStringSubmatch(string(out), -1) {
		if minor, _ := strconv.Atoi(v[2]); v[1] != "2" || minor > 17 {
			t.Errorf("the reader needs %s: it would not start on glibc 2.17", v[0])
		}
	}
	for line := range strings.Lines(string(out)) { // what is bound to no library must be the driver's
		f := strings.Fields(line)
		if len(f) > 3 && strings.Contains(line, "*UND*") && !strings.Contains(line, "GLIBC") && !strings.HasPrefix(f[len(f)-1], "nvml") && f[len(f)-1] != "__gmon_start__" {
			t.Errorf("unbound: %s", strings.TrimSpace(line))
		}
	}
	flags, err := exec.Command("objdump", "-p", bin).Output()
	if err != nil || bytes.Contains(flags, []byte("BIND_NOW")) || bytes.Contains(flags, []byte("FLAGS_1              0x0000000000000001")) {
		t.Errorf("the reader binds at its start: it would not start with an older driver's library (%v)", err)
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}

	begun := time.Now()
	helper := serving(t, bin, cards(t, 8))
	var d sample.Decoder
	const seconds = 6
	total := 0 // bytes, past what is told once
	var first time.Duration
	pid := helper.cmd.Process.Pid
	var atFirst float64
	for n := 0; n < seconds; n++ {
		m, err := helper.link.Recv()
		if err != nil || m.Kind != sample.MessageSample {
			t.Fatalf("message %d: %v, kind %q", n, err, m.Kind)
		}
		s, err := d.Decode(m.Payload)
		if err != nil || len(s.GPUs) != 8 || s.GPUs[7].Util != sample.Of(97) {
			t.Fatalf("sample %d: %v, %+v", n, err, s)
		}
		switch {
		case n == 0:
			first, atFirst = time.Since(begun), cpu(t, pid)
		case n > 1:
			total += len(m.Payload)
		}
	}
	perSample := total / (seconds - 2)
	if perSample >= 400 { // the slow figures come for the first time: it is a third of this later
		t.Errorf("%d bytes a sample, want less than 400 in the first seconds", perSample)
	}
	used, rss := cpu(t, pid)-atFirst, memory(t, pid)
	t.Logf("8 stand-in GPUs at 1 Hz: %d bytes of program, first sample after %v, %.2f MB resident, %.3f %% of a core over %d s, %d bytes a sample",
		info.Size(), first.Round(time.Millisecond), rss/1e6, 100*used/float64(seconds-1), seconds, perSample)
	if rss > 15e6 {
		t.Errorf("%.1f MB resident, want less than 15", rss/1e6)
	}
	if first > 3*time.Second {
		t.Errorf("the first sample took %v", first)
	}
	if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err != nil || !bytes.Contains(env, []byte("RENTOP_GPU_UNHURRIED=1")) {
		t.Errorf("the helper was not begun anew with its slack (%v)", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- helper.end() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the helper ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the helper outlives its link")
	}
}

// cpu is the seconds of CPU time that a process has used, threads included.
func cpu(t testing.TB, pid int) float64 {
	t.Helper()
	dirs, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	total := 0.0
	for _, d := range dirs {
		line, err := os.ReadFile(d)
		if f := strings.Fields(string(line)); err == nil && len(f) == 3 {
			ns, _ := strconv.ParseFloat(f[0], 64)
			total += ns / 1e9
		}
	}
	needtest.That(t, total > 0, "a kernel that counts a process's time")
	return total
}

func memory(t testing.TB, pid int) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(raw)
	if m == nil {
		t.Fatal("no VmRSS")
	}
	kb, _ := strconv.ParseFloat(string(m[1]), 64)
	return kb * 1024
}
