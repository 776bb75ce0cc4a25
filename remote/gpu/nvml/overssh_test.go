//go:build linux && cgo

package nvml

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/agent/link"
	"rentop/remote/gpu"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
)

// The whole way: a real sshd, the helper sent and started over it, the stand-in for
// the driver's library and one for nvidia-smi. The first sample of the helper comes
// soon after nvidia-smi's first, also where the helper must be sent.
func TestOverSSH(t *testing.T) {
	bin, err := agent.FromFile(linked(t, "../../agent/rentop-gpu"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	b := start(t, 590, "590.48.01")
	b.cmd.Process.Kill()
	b.set(gpus, 8)
	for from, to := range map[string]string{standin(t, 590): "libnvidia-ml.so.1", "../testdata/smi.sh": "nvidia-smi", b.path: "control"} {
		raw, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), raw, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(filepath.Join(dir, "control"), 0o666)
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	srv := sshtest.Start(t, sshtest.Options{Extra: []string{"SetEnv LD_LIBRARY_PATH=" + dir + " STANDIN_CONTROL=" + dir + "/control STANDIN_DRIVER=590.48.01"}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	conn := dialtest.Conn(t, srv, srv.Addr)
	facts := &remote.Facts{NvidiaSMI: filepath.Join(dir, "nvidia-smi")}
	binaries := agent.NewBinaries(map[string]*agent.Binary{runtime.GOARCH: bin})

	first := map[string]time.Duration{}
	for _, what := range []string{"with the helper to be sent", "with the helper there"} {
		clear(first)
		watch, done := context.WithCancel(ctx)
		begun := time.Now()
		var helper *agent.Session
		err = gpu.Follow(watch, conn, facts, gpu.Options{}, func(ctx context.Context) (link.Link, error) {
			s, err := agent.Open(ctx, conn, facts, "gpu", agent.Options{Binaries: binaries, MaxStripes: 1})
			if err != nil {
				return nil, err
			}
			helper = s
			return s.Link(), nil
		}, func(s gpu.Sample) {
			if len(s.GPUs) == 0 {
				return
			}
			if _, ok := first[s.Source]; !ok {
				first[s.Source] = time.Since(begun)
			}
			if len(first) == 2 || s.Source == "nvml" && time.Since(begun) > 5*time.Second {
				if s.Source == "nvml" && (len(s.GPUs) != 8 || s.Driver != "590.48.01" || !strings.HasPrefix(s.GPUs[0].Name, "Stand-in")) {
					t.Errorf("the helper's = %+v", s)
				}
				done()
			}
		})
		done()
		if _, ok := first["nvml"]; !ok {
			t.Fatalf("%s: %v, first samples %v", what, err, first)
		}
		t.Logf("%s: first samples after %v", what, first)
		// The promise is a second; a machine that does much else gets more.
		if smi, ok := first["nvidia-smi"]; ok && first["nvml"] > smi+5*time.Second {
			t.Errorf("%s: the helper's first sample comes %v after nvidia-smi's", what, first["nvml"]-smi)
		}
		if helper != nil {
			helper.Close()
		}
	}
}
