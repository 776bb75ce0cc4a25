//go:build linux && cgo

package nvml

// What the helper costs the instance, beside what it stands in for. No driver is
// beneath any of them: what the driver itself takes for a call comes on top of each.

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"rentop/remote/agent/hello"
	"rentop/remote/agent/link"
	"rentop/remote/gpu/sample"
)

// BenchmarkBesidePeers runs the helper as an instance does, `nvidia-smi -l 1` and a
// fork of nvidia-smi each second, all at the same time over the same stand-in for
// the driver's library with 8 cards and a process on each; nvidia-smi is a stand-in
// too. RENTOP_MEASURE is for how many seconds.
func BenchmarkBesidePeers(b *testing.B) {
	seconds := 10
	if s := os.Getenv("RENTOP_MEASURE"); s != "" {
		seconds, _ = strconv.Atoi(s)
	}
	bin := linked(b, "../../agent/rentop-gpu")
	env := cards(b, 8)
	smi := compiled(b, "testdata/smi.c", b.TempDir()+"/nvidia-smi", "-ldl")
	for b.Loop() {
		helper := serving(b, bin, env)
		streamed := exec.Command(smi, "-l", "1")
		streamed.Env = env
		if err := streamed.Start(); err != nil {
			b.Fatal(err)
		}
		var d sample.Decoder
		var forked time.Duration
		bytes, people := 0, 0
		var before, beforeSMI float64
		for n := range seconds + 2 { // the first two are the beginning
			m, err := helper.link.Recv()
			if err != nil || m.Kind != sample.MessageSample {
				b.Fatalf("message %d: %v, kind %q", n, err, m.Kind)
			}
			s, err := d.Decode(m.Payload)
			if err != nil || len(s.GPUs) != 8 {
				b.Fatalf("sample %d: %v, %+v", n, err, s)
			}
			if n < 2 {
				before, beforeSMI = cpu(b, helper.cmd.Process.Pid), cpu(b, streamed.Process.Pid)
				continue
			}
			bytes += len(m.Payload)
			people = len(s.Processes)
			once := exec.Command(smi)
			once.Env = env
			if err := once.Run(); err != nil {
				b.Fatal(err)
			}
			forked += once.ProcessState.UserTime() + once.ProcessState.SystemTime()
		}
		percent := func(s float64) float64 { return 100 * s / float64(seconds) }
		b.ReportMetric(percent(cpu(b, helper.cmd.Process.Pid)-before), "helper-%core")
		b.ReportMetric(percent(cpu(b, streamed.Process.Pid)-beforeSMI), "smi-l-1-%core")
		b.ReportMetric(percent(forked.Seconds()), "smi-forked-%core")
		b.ReportMetric(memory(b, helper.cmd.Process.Pid)/1e6, "helper-MB")
		b.ReportMetric(memory(b, streamed.Process.Pid)/1e6, "smi-l-1-MB")
		b.ReportMetric(float64(bytes)/float64(seconds), "helper-B/sample")
		b.ReportMetric(0, "ns/op")
		if people != 8 {
			b.Errorf("%d processes are told, want one on each card", people)
		}
		if err := helper.end(); err != nil {
			b.Errorf("the helper ended with %v", err)
		}
		streamed.Process.Kill()
		streamed.Wait()
	}
}

// cards is the environment of a stand-in with n cards, each with a process of its
// own that has a file of the driver's open.
func cards(b testing.TB, n int) []string {
	page := start(b, 590, "590.48.01") // for its control page alone
	page.cmd.Process.Kill()
	page.set(gpus, n)
	page.set(linkUp, 18)
	page.set(oneEach, 1)
	file := filepath.Join(b.TempDir(), "nvidia0")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		holds := exec.Command("sleep", "3600")
		holds.Stdin = f
		if err := holds.Start(); err != nil {
			b.Fatal(err)
		}
		f.Close()
		b.Cleanup(func() { holds.Process.Kill(); holds.Wait() })
		page.set(pids+i, holds.Process.Pid)
	}
	lib := filepath.Join(b.TempDir(), "libnvidia-ml.so.1")
	if err := os.Symlink(standin(b, 590), lib); err != nil {
		b.Fatal(err)
	}
	return append(page.cmd.Env, "STANDIN_QUIET=1", "LD_LIBRARY_PATH="+filepath.Dir(lib))
}

// served is the helper with its "gpu" service.
type served struct {
	cmd  *exec.Cmd
	link *link.Carrier
}

// serving starts it as rentop does over SSH.
func serving(b testing.TB, bin string, env []string) *served {
	s := &served{cmd: exec.Command(bin, "serve", "gpu")}
	s.cmd.Env, s.cmd.Stderr = env, os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.cmd.Process.Kill() })
	if err := hello.New().Write(in); err != nil {
		b.Fatal(err)
	}
	if h, err := hello.Read(out); err != nil || h.Error != "" {
		b.Fatalf("the helper's greeting: %+v, %v", h, err)
	}
	s.link = link.New(struct {
		io.Reader
		io.WriteCloser
	}{out, in}, link.Options{MaxStripes: 1, Hasty: true})
	return s
}

// end ends the link, and with it the helper.
func (s *served) end() error {
	s.link.Close()
	return s.cmd.Wait()
}
