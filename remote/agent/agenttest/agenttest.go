// Package agenttest builds the helper for tests that want a real one on a real
// server.
package agenttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"rentop/remote/agent"
	"rentop/remote/needtest"
)

var built struct {
	once sync.Once
	bin  *agent.Binary
	err  error
	out  []byte
}

// Binaries returns the helper of this source, built once in a test program. It
// skips the test where the helper does not run here.
func Binaries(t testing.TB) *agent.Binaries {
	t.Helper()
	needtest.That(t, runtime.GOOS == "linux", "Linux, which the helper runs on")
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "agenttest")
		if err != nil {
			built.err = err
			return
		}
		defer os.RemoveAll(dir) // read into memory below
		name := filepath.Join(dir, "rentop-agent")
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", name, "rentop/remote/agent/rentop-agent")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if built.out, built.err = cmd.CombinedOutput(); built.err != nil {
			return
		}
		program, err := os.ReadFile(name)
		if err != nil {
			built.err = err
			return
		}
		built.bin = agent.FromBytes(program)
	})
	if built.err != nil {
		t.Fatalf("build the helper: %v\n%s", built.err, built.out)
	}
	return agent.NewBinaries(map[string]*agent.Binary{runtime.GOARCH: built.bin})
}
