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

// build is one program, built once in a test program.
type build struct {
	once sync.Once
	bin  *agent.Binary
	err  error
	out  []byte
}

var helper, store, guard build

// Binaries returns the helper of this source, built once in a test program. It
// skips the test where the helper does not run here.
func Binaries(t testing.TB) *agent.Binaries {
	t.Helper()
	return helper.binaries(t, "rentop-agent")
}

// Store is Binaries of the helper that speaks to object storage.
func Store(t testing.TB) *agent.Binaries {
	t.Helper()
	return store.binaries(t, "rentop-store")
}

// Guard is Binaries of the helper that stays.
func Guard(t testing.TB) *agent.Binaries {
	t.Helper()
	return guard.binaries(t, "rentop-guard")
}

func (b *build) binaries(t testing.TB, program string) *agent.Binaries {
	t.Helper()
	needtest.That(t, runtime.GOOS == "linux", "Linux, which the helper runs on")
	b.once.Do(func() {
		dir, err := os.MkdirTemp("", "agenttest")
		if err != nil {
			b.err = err
			return
		}
		defer os.RemoveAll(dir) // read into memory below
		name := filepath.Join(dir, program)
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", name, "rentop/remote/agent/"+program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b.out, b.err = cmd.CombinedOutput(); b.err != nil {
			return
		}
		text, err := os.ReadFile(name)
		if err != nil {
			b.err = err
			return
		}
		b.bin = agent.FromBytes(text)
	})
	if b.err != nil {
		t.Fatalf("build %s: %v\n%s", program, b.err, b.out)
	}
	return agent.NewBinaries(map[string]*agent.Binary{runtime.GOARCH: b.bin})
}
