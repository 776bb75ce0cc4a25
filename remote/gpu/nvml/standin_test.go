//go:build linux && cgo

package nvml

// The real reader, in a process of its own as on an instance, over a stand-in for
// the driver's library. No GPU is here and none is pretended: the stand-in's cards
// are called so.

import (
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	stdsync "sync"
	"syscall"
	"testing"
	"time"

	"rentop/remote/gpu/sample"
	"rentop/remote/needtest"
)

// Words of the stand-in's control page; see testdata/standin.c.
const (
	gpus, hang, lost, xidSeq, xidGPU, xidCode, failCall, failRet   = 0, 1, 2, 3, 4, 5, 6, 7
	initHang, initRet, mig, reset, procs, pcieCalls, calls, linkUp = 8, 9, 10, 11, 12, 13, 14, 15
	oneEach, pids                                                  = 17, 32
	callUtil, callMemory, callPower, callECC, callReasons          = 1, 2, 3, 7, 6
)

// TestMain is also the reader's process: it writes each sample as gob.
func TestMain(m *testing.M) {
	if os.Getenv("STANDIN_READER") == "" {
		code := m.Run()
		if dir := builtDir; dir != "" {
			os.RemoveAll(dir)
		}
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	out := gob.NewEncoder(os.Stdout)
	o := Options{Library: os.Getenv("STANDIN_LIBRARY"), Interval: 100 * time.Millisecond, Slow: 300 * time.Millisecond, Holders: 200 * time.Millisecond, Hang: time.Second}
	if os.Getenv("STANDIN_PACE") == "real" {
		o = Options{Library: o.Library}
	}
	err := Run(ctx, o, func(s sample.Sample) { out.Encode(message{Sample: s}) })
	var none *Unavailable
	if errors.As(err, &none) {
		out.Encode(message{Refused: none.Problem.What})
	}
}

type message struct {
	Sample  sample.Sample
	Refused string
}

var (
	builtDir string
	build    stdsync.Mutex
)

// standin compiles the stand-in with the symbols of a driver's time.
func standin(t testing.TB, level int) string {
	t.Helper()
	build.Lock()
	defer build.Unlock()
	if builtDir == "" {
		dir, err := os.MkdirTemp("", "rentop-standin")
		if err != nil {
			t.Fatal(err)
		}
		builtDir = dir
	}
	lib := filepath.Join(builtDir, fmt.Sprintf("libnvidia-ml.%d.so.1", level))
	if _, err := os.Stat(lib); err == nil {
		return lib
	}
	compiled(t, "testdata/standin.c", lib, "-shared", "-fPIC", fmt.Sprintf("-DLEVEL=%d", level))
	return lib
}

// compiled builds a C file beside the driver's header.
func compiled(t testing.TB, from, to string, flags ...string) string {
	t.Helper()
	needtest.Program(t, "gcc")
	mod, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-O1", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS=1",
		"-I", filepath.Join(strings.TrimSpace(string(mod)), "pkg", "nvml"), "-o", to, from}
	if out, err := exec.Command("gcc", append(args, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", from, err, out)
	}
	return to
}

// bench is a reader's process over a stand-in.
type bench struct {
	t    testing.TB
	path string // of the control page
	page []byte
	cmd  *exec.Cmd
	in   chan message
}

type setting struct{ word, value int }

func start(t testing.TB, level int, driver string, set ...setting) *bench {
	t.Helper()
	b := &bench{t: t, in: make(chan message, 1000)}
	path := filepath.Join(t.TempDir(), "control")
	b.path = path
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b.page, err = syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	for _, s := range append([]setting{{hang, -1}, {lost, -1}, {reset, -1}, {gpus, 1}}, set...) {
		b.set(s.word, s.value)
	}
	lib := standin(t, level)
	b.cmd = exec.Command(os.Args[0])
	b.cmd.Env = append(os.Environ(), "STANDIN_READER=1", "STANDIN_CONTROL="+path, "STANDIN_LIBRARY="+lib, "STANDIN_DRIVER="+driver)
	b.cmd.Stderr = os.Stderr
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.in)
		for d := gob.NewDecoder(out); ; {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			b.in <- m
		}
	}()
	t.Cleanup(func() {
		b.cmd.Process.Kill()
		for range b.in {
		}
		b.cmd.Wait()
		syscall.Munmap(b.page)
	})
	return b
}

func (b *bench) set(word, value int) {
	binary.NativeEndian.PutUint32(b.page[4*word:], uint32(int32(value)))
}
func (b *bench) get(word int) int { return int(int32(binary.NativeEndian.Uint32(b.page[4*word:]))) }

// until waits for a sample that holds what is asked for.
func (b *bench) until(what string, ok func(sample.Sample) bool) sample.Sample {
	b.t.Helper()
	var last sample.Sample
	deadline := time.After(20 * time.Second)
	for {
		select {
		case m, open := <-b.in:
			if !open || m.Refused != "" {
				b.t.Fatalf("waiting for %s: the reader ended (%v, %q); the last sample was %+v", what, b.cmd.ProcessState, m.Refused, last)
			}
			if last = m.Sample; ok(last) {
				return last
			}
		case <-deadline:
			b.t.Fatalf("%s did not come; the last sample was %+v", what, last)
		}
	}
}

// whole waits for a sample with every tier read.
func (b *bench) whole(n int) sample.Sample {
	b.t.Helper()
	return b.until("a whole sample", func(s sample.Sample) bool {
		if len(s.GPUs) != n {
			return false
		}
		for _, g := range s.GPUs {
			if g.Fan.Why == notTold || g.NVLinkRx.State != sample.OK {
				return false
			}
		}
		return true
	})
}
