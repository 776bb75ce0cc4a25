package guard

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"rentop/remote/gpu/nvml"
	"rentop/remote/gpu/sample"
	"rentop/remote/needtest"
)

// TestSource: the reader first; where it dies or has nothing to read, nvidia-smi; and
// where that fails, the host with the reason.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	reader := filepath.Join(dir, "reader")
	build := exec.Command("go", "build", "-o", reader, "./testdata/reader")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	smi := "#!/bin/sh\necho 'a line of some hook'\nwhile [ -f " + dir + "/gpu ]; do echo '0, 7, 1024, 81920, 60.5, [N/A], 35'; echo '1, [N/A], 1024, 81920, 60.5, 400, 35'; sleep 0.1; done\nexit 9\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(smi), 0o755); err != nil {
		t.Fatal(err)
	}
	touch := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	touch("gpu")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	src := &source{reader: []string{reader}, host: nvml.NewHost(ctx), out: make(chan sample.Sample)}
	ended := make(chan struct{})
	go func() { defer close(ended); src.run(ctx) }()
	defer func() { cancel(); <-ended }()
	until := func(want string) sample.Sample {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			select {
			case s := <-src.out:
				if s.Source == want {
					return s
				}
			case <-deadline:
				t.Fatalf("no sample from %s", want)
			}
		}
	}
	if s := until("nvml"); len(s.GPUs) != 2 || s.GPUs[1].Util.V != 1 {
		t.Errorf("%+v", s.GPUs)
	}
	touch("refuse") // and the reader that runs dies
	killed := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		cmd, _ := os.ReadFile(d + "/cmdline")
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil && string(cmd) == reader+"\x00serve\x00gpu\x00" {
			syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	if killed != 1 {
		t.Errorf("%d readers ran", killed)
	}
	s := until("nvidia-smi")
	if len(s.GPUs) != 2 || s.GPUs[0].Util.V != 7 || s.GPUs[1].Util.State == sample.OK || s.GPUs[0].MemUsed.V != 1<<30 {
		t.Errorf("%+v", s.GPUs)
	}
	if err := os.Remove(filepath.Join(dir, "gpu")); err != nil {
		t.Fatal(err)
	}
	if s := until(hostOnly); s.Problem == nil || s.Problem.What != "a line of some hook" || len(s.GPUs) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestReaderOf: only a file that is there is started, and our own with our own words.
func TestReaderOf(t *testing.T) {
	t.Parallel()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program string
		want    int
	}{{"", 0}, {"/nowhere/rentop-gpu", 0}, {os.TempDir(), 0}, {me, 2}, {"/bin/sh", 1}} {
		if got := readerOf(c.program, []string{me, "agent"}); len(got) != c.want {
			t.Errorf("%q: %q", c.program, got)
		}
	}
}

// TestOtherTools: a guard hears of idle and busy cards of other makers from what their
// tools were recorded to print.
func TestOtherTools(t *testing.T) {
	for _, c := range []struct {
		tool, recorded string
		cards          int
	}{
		{"rocm-smi", "rocm-telegraf-mi100_rocm602.json", 4},
		{"npu-smi", "excerpt/npu-smi-25.2.0-910B4.txt", 2},
	} {
		answer := filepath.Join(needtest.Shared(t, "corpus", "gpu"), c.recorded)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.tool), []byte("#!/bin/sh\necho WARNING >&2\nexec /bin/cat '"+answer+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		ctx, cancel := context.WithCancel(t.Context())
		src := &source{host: nvml.NewHost(ctx), out: make(chan sample.Sample)}
		go src.run(ctx)
		select {
		case s := <-src.out:
			m := &Moment{Sample: &s}
			if _, ok := unread(&s); !ok || s.Source != c.tool || len(s.GPUs) != c.cards {
				t.Errorf("%s: %+v", c.tool, s)
			}
			if why, rests := working(m, 5); !rests {
				t.Errorf("%s: idle cards are taken for busy: %+v", c.tool, why)
			}
			s.GPUs[1].Util = sample.Of(40)
			if _, rests := working(m, 5); rests {
				t.Errorf("%s: a busy card is taken for idle", c.tool)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: no sample", c.tool)
		}
		cancel()
	}

	dir := t.TempDir() // one that fails is said in its own words
	if err := os.WriteFile(filepath.Join(dir, "amd-smi"), []byte("#!/bin/sh\necho 'no amdgpu driver' >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src := &source{host: nvml.NewHost(ctx), out: make(chan sample.Sample)}
	go src.run(ctx)
	if s := <-src.out; s.Source != hostOnly || s.Problem == nil || s.Problem.What != "amd-smi cannot be read (exit 3): no amdgpu driver" {
		t.Errorf("%+v", s)
	}
}
