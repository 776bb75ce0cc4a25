package session

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/remote/sshtest"
	"rentop/session/config"
	"rentop/sync"
)

// told collects what a watch tells.
type told struct {
	mu     stdsync.Mutex
	events []WatchEvent
}

func (x *told) tell(e WatchEvent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = append(x.events, e)
}

// await returns the first event of that kind from the nth on, and its place.
func (x *told) await(t *testing.T, from int, kind WatchKind) (WatchEvent, int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		x.mu.Lock()
		for i := from; i < len(x.events); i++ {
			if x.events[i].Kind == kind {
				defer x.mu.Unlock()
				return x.events[i], i + 1
			}
		}
		x.mu.Unlock()
	}
	t.Fatalf("no %s after %d: %+v", kind, from, x.events)
	return WatchEvent{}, 0
}

func is(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

// TestWatchPush: saves arrive, also those made while the connection was away, and
// the end is clean.
func TestWatchPush(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{})
	link := sshtest.NewProxy(t, srv.Addr)
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, link.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	src, dst := t.TempDir(), filepath.Join(srv.Home, "proj")
	write := func(name, text string) {
		t.Helper()
		full := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		write(fmt.Sprintf("keep/%d", i), "k")
	}
	write("a.py", "one")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log told
	ended := make(chan error, 1)
	go func() {
		ended <- s.WatchPush(ctx, TransferSpec{Local: src, Remote: "~/proj", Delete: true}, nil, log.tell, nil)
	}()
	_, n := log.await(t, 0, WatchReady)
	is(t, filepath.Join(dst, "a.py"), "one")

	write("a.py", "two")
	saved := time.Now()
	e, n := log.await(t, n, WatchMoved)
	t.Logf("a save took %v, %v after it was quiet", time.Since(saved), e.Took)
	is(t, filepath.Join(dst, "a.py"), "two")
	if len(e.Change.Sent) != 1 || e.Change.Failed != nil {
		t.Errorf("%+v", e.Change.Result)
	}
	write("new/deep/b.py", "b")
	_, n = log.await(t, n, WatchMoved)
	is(t, filepath.Join(dst, "new/deep/b.py"), "b")

	link.CutNow(sshtest.RST)
	write("a.py", "three")
	if err := os.Remove(filepath.Join(src, "new/deep/b.py")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dst, "theirs"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, n = log.await(t, n, WatchLost)
	_, n = log.await(t, n, WatchReady)
	is(t, filepath.Join(dst, "a.py"), "three")
	if _, err := os.Stat(filepath.Join(dst, "new/deep/b.py")); err == nil {
		t.Error("what was removed while the connection was away is still there")
	}
	if _, err := os.Stat(filepath.Join(dst, "theirs")); err != nil {
		t.Error("coming back removed what nobody saw in a list")
	}
	write("a.py", "four")
	log.await(t, n, WatchMoved)
	is(t, filepath.Join(dst, "a.py"), "four")
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it did not end")
	}
	if err := s.WatchPush(t.Context(), TransferSpec{Local: filepath.Join(src, "a.py"), Remote: "~/x"}, nil, log.tell, nil); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file: %v", err)
	}
}

// TestWatchPull: finished files come, a checkpoint only whole and its mark last, and
// never one that is being written.
func TestWatchPull(t *testing.T) {
	srv := sshtest.Start(t, sshtest.Options{Files: map[string]string{"out/done.txt": "done"}})
	f := open(t, t.TempDir(), false, srv)
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr)}); err != nil {
		t.Fatal(err)
	}
	s := session(t, f, "box")
	there, here := filepath.Join(srv.Home, "out"), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		full := filepath.Join(there, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	growing, err := os.Create(filepath.Join(there, "growing.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer growing.Close()
	write("checkpoint-10/model.safetensors", "weights")
	write("checkpoint-10/trainer_state.json", "{}")
	write("checkpoint-20/model.safetensors", "weights")
	write("shards/model-00001-of-00002.safetensors", "1")
	write("x.tmp", "half")
	var log told
	ended := make(chan error, 1)
	go func() {
		ended <- s.WatchPull(ctx, TransferSpec{Local: here, Remote: "~/out"}, PullWatch{Every: 200 * time.Millisecond, Settle: 1500 * time.Millisecond}, log.tell, nil)
	}()
	_, n := log.await(t, 0, WatchReady)
	for range 12 { // a writer that pauses for less than the time of settling
		growing.WriteString("more")
		time.Sleep(300 * time.Millisecond)
		if _, err := os.Stat(filepath.Join(here, "growing.safetensors")); err == nil {
			t.Fatal("a file came that is being written")
		}
	}
	_, n = log.await(t, n, WatchMoved)
	is(t, filepath.Join(here, "done.txt"), "done")
	is(t, filepath.Join(here, "checkpoint-10/model.safetensors"), "weights")
	is(t, filepath.Join(here, "checkpoint-10/trainer_state.json"), "{}")
	for _, early := range []string{"checkpoint-20", "shards", "x.tmp"} {
		if _, err := os.Lstat(filepath.Join(here, early)); err == nil {
			t.Errorf("%s is not finished and came", early)
		}
	}
	write("checkpoint-20/trainer_state.json", "{}")
	write("shards/model-00002-of-00002.safetensors", "2")
	wait := func(name string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(here, name)); err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s did not come", name)
			}
		}
	}
	wait("checkpoint-20/trainer_state.json")
	is(t, filepath.Join(here, "checkpoint-20/model.safetensors"), "weights")
	wait("shards/model-00002-of-00002.safetensors")
	wait("shards/model-00001-of-00002.safetensors")
	wait("growing.safetensors")
	is(t, filepath.Join(here, "growing.safetensors"), strings.Repeat("more", 12))
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = n
}

// TestSettler: what is taken when, by the names that trainers use.
func TestSettler(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "checkpoint-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint-1/trainer_state.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	plan := func(files ...string) *sync.Plan {
		var src []sync.Entry
		dirs := map[string]bool{}
		for _, f := range files {
			for i := range len(f) {
				if f[i] == '/' && !dirs[f[:i]] {
					dirs[f[:i]] = true
					src = append(src, sync.Entry{Path: f[:i], Mode: fs.ModeDir | 0o755})
				}
			}
			src = append(src, sync.Entry{Path: f, Size: 1, Mode: 0o644, ModTime: noon})
		}
		return sync.Compare(src, nil, sync.Options{})
	}
	sends := func(p *sync.Plan) string {
		var out []string
		for _, a := range p.Actions {
			out = append(out, a.Entry.Path)
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		files       string
		first, last string // after the time of settling
		later       string // after six times that
	}{
		{"a.pt", "a.pt", "", "a.pt"},
		{"a.pt.tmp b.ckpt", "b.ckpt", "", "b.ckpt"},
		{"tmp-checkpoint-5/model.safetensors", "", "", ""},
		{"checkpoint-9/m.bin", "", "", "checkpoint-9 checkpoint-9/m.bin"},
		{"checkpoint-9/m.bin checkpoint-9/trainer_state.json", "checkpoint-9 checkpoint-9/m.bin", "checkpoint-9 checkpoint-9/trainer_state.json", "checkpoint-9 checkpoint-9/m.bin"},
		{"runs/checkpoint-9/fsdp/__0_0.distcp runs/checkpoint-9/fsdp/.metadata", "runs runs/checkpoint-9 runs/checkpoint-9/fsdp runs/checkpoint-9/fsdp/__0_0.distcp", "runs runs/checkpoint-9 runs/checkpoint-9/fsdp runs/checkpoint-9/fsdp/.metadata", "runs runs/checkpoint-9 runs/checkpoint-9/fsdp runs/checkpoint-9/fsdp/__0_0.distcp"},
		{"global_step12/x.pt", "", "", "global_step12 global_step12/x.pt"},
		{"checkpoint-1/late.bin", "checkpoint-1 checkpoint-1/late.bin", "", "checkpoint-1 checkpoint-1/late.bin"},
		{"m-00001-of-00003.safetensors m-00003-of-00003.safetensors", "", "", ""},
		{"m-00001-of-00002.safetensors m-00002-of-00002.safetensors m.safetensors.index.json", "m-00001-of-00002.safetensors m-00002-of-00002.safetensors", "m.safetensors.index.json", "m-00001-of-00002.safetensors m-00002-of-00002.safetensors"},
		{"m-00000-of-00002.bin m-00001-of-00002.bin", "m-00000-of-00002.bin m-00001-of-00002.bin", "", "m-00000-of-00002.bin m-00001-of-00002.bin"},
		{"m-999999-of-999999.safetensors", "", "", ""},
	} {
		s := newSettler(10 * time.Second)
		p := plan(strings.Fields(c.files)...)
		p = local(t, p, dir)
		if first, last, _ := s.sift(p, noon); sends(first) != "" || sends(last) != "" {
			t.Errorf("%s: at the first look %q, %q", c.files, sends(first), sends(last))
		}
		if first, last, _ := s.sift(p, noon.Add(9*time.Second)); sends(first) != "" || sends(last) != "" {
			t.Errorf("%s: too early %q, %q", c.files, sends(first), sends(last))
		}
		if first, last, _ := s.sift(p, noon.Add(10*time.Second)); sends(first) != c.first || sends(last) != c.last {
			t.Errorf("%s: %q and %q, want %q and %q", c.files, sends(first), sends(last), c.first, c.last)
		}
		if first, _, _ := s.sift(p, noon.Add(61*time.Second)); sends(first) != c.later {
			t.Errorf("%s: later %q, want %q", c.files, sends(first), c.later)
		}
	}
}

// local gives a plan its folder here, which only a real one has.
func local(t *testing.T, p *sync.Plan, dir string) *sync.Plan {
	t.Helper()
	real, err := sync.MakePlan(t.Context(), sync.Local{}, sync.Spec{Direction: sync.Pull, Local: dir, Remote: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	real.Actions, real.Bytes = p.Actions, p.Bytes
	return real
}
