//go:build unix

package sync_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/agent"
	"rentop/remote/agent/agenttest"
	"rentop/remote/agent/link"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
	"rentop/sync/far"
	"rentop/sync/transporttest"
)

// ownHelper is the helper of this source.
func ownHelper(t testing.TB) agent.Options {
	t.Helper()
	return agent.Options{Binaries: agenttest.Binaries(t)}
}

// openHelper opens the transport with the helper, and with nothing else.
func openHelper(t testing.TB, r sync.Remote) sync.Transport {
	t.Helper()
	tr, err := sync.OpenWith(t.Context(), r, nil, sync.OpenOptions{Agent: ownHelper(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	if name, why := tr.Name(); name != "agent" {
		t.Fatalf("opened %q: %s", name, why)
	}
	return tr
}

// TestAgentOverSSH runs the suite with the helper on a real server.
func TestAgentOverSSH(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	transporttest.Run(t, func(t *testing.T) transporttest.Env {
		home, err := os.MkdirTemp(s.Home, "t")
		if err != nil {
			t.Fatal(err)
		}
		os.Chmod(home, 0o777)
		tr := openHelper(t, dialtest.Conn(t, s, s.Addr))
		return transporttest.Env{Transport: moved{tr, home}, Home: home, Exact: true, Small: small(t), Own: own(t, s.Home)}
	})
}

// TestWithoutAgent: where the helper cannot be had the transport says why.
func TestWithoutAgent(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	for _, c := range []struct {
		o    sync.OpenOptions
		want string
	}{
		{sync.OpenOptions{NoAgent: true}, "switched off"},
		{sync.OpenOptions{NoAgent: true, WhyNot: "as the configuration says"}, "as the configuration says"},
		{sync.OpenOptions{Agent: agent.Options{Binaries: agent.NewBinaries(nil)}}, "helper"},
		{sync.OpenOptions{Agent: agent.Options{Binaries: agent.NewBinaries(map[string]*agent.Binary{"amd64": agent.FromBytes([]byte("#!/bin/false\n"))})}}, "helper"},
	} {
		tr, err := sync.OpenWith(t.Context(), dialtest.Conn(t, s, s.Addr), nil, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if name, why := tr.Name(); !strings.HasPrefix(name, "tar") || !strings.Contains(why, c.want) {
			t.Errorf("opened %q, which says %q and not %q", name, why, c.want)
		}
		tr.Close()
	}
}

// TestHelperKilled: what ends the helper is named, and the next call has another.
func TestHelperKilled(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	r := dialtest.Conn(t, s, s.Addr)
	tr := openHelper(t, r)
	home, _, err := tr.Resolve(t.Context(), "~")
	if err != nil {
		t.Fatal(err)
	}
	killed, err := remote.Output(t.Context(), r, `for d in /proc/[0-9]*; do
case $(readlink "$d/exe") in "$HOME"/*) kill -9 "${d#/proc/}" && echo "$d";; esac
done 2>/dev/null; true`)
	if err != nil || len(killed) == 0 {
		t.Fatalf("no helper was killed: %v", err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		_, _, err := tr.Resolve(t.Context(), "~")
		if err != nil && !strings.Contains(err.Error(), "killed") && !strings.Contains(err.Error(), "cut") {
			t.Errorf("the end was told as %v", err)
		}
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	if again, _, err := tr.Resolve(t.Context(), "~"); err != nil || again != home {
		t.Errorf("afterwards: %q, %v", again, err)
	}
}

// pipeLink is a link within this process.
type pipeLink struct {
	in, out *queue
}

type queue struct {
	mu     stdsync.Mutex
	cond   *stdsync.Cond
	list   []link.Message
	bytes  int
	closed bool
}

func newQueue() *queue { q := &queue{}; q.cond = stdsync.NewCond(&q.mu); return q }

func newPipe() (a, b link.Link) {
	x, y := newQueue(), newQueue()
	return &pipeLink{x, y}, &pipeLink{y, x}
}

func (p *pipeLink) Send(kind byte, parts ...[]byte) error {
	var b []byte
	for _, part := range parts {
		b = append(b, part...)
	}
	q := p.out
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > 4<<20 && !q.closed {
		q.cond.Wait()
	}
	if q.closed {
		return io.ErrClosedPipe
	}
	q.list = append(q.list, link.Message{Kind: kind, Payload: b})
	q.bytes += len(b)
	q.cond.Broadcast()
	return nil
}

func (p *pipeLink) Recv() (link.Message, error) {
	q := p.in
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.closed {
		q.cond.Wait()
	}
	if len(q.list) == 0 {
		return link.Message{}, io.EOF
	}
	m := q.list[0]
	q.list = q.list[1:]
	q.bytes -= len(m.Payload)
	q.cond.Broadcast()
	return m, nil
}

func (p *pipeLink) Close() error {
	for _, q := range []*queue{p.in, p.out} {
		q.mu.Lock()
		q.closed = true
		q.cond.Broadcast()
		q.mu.Unlock()
	}
	return nil
}

// newAgent is the transport to a helper in this process.
func newAgent(t *testing.T) sync.Streamer {
	here, there := newPipe()
	served := make(chan error, 1)
	go func() { served <- far.Serve(t.Context(), there) }()
	tr := sync.NewAgent(here)
	t.Cleanup(func() {
		tr.Close()
		if err := <-served; err != nil {
			t.Errorf("the helper ended with %v", err)
		}
	})
	return tr
}

func TestAgentTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Env {
		home := t.TempDir()
		t.Setenv("HOME", home)
		return transporttest.Env{Transport: newAgent(t), Home: home, Exact: true, Small: small(t)}
	})
}

// TestPersonOverAgent pushes and pulls a tree as a person would, and changes it
// between.
func TestPersonOverAgent(t *testing.T) {
	tr := newAgent(t)
	src, home := t.TempDir(), t.TempDir()
	dst := home + "/new/place"
	back := t.TempDir()
	write := func(name string, size, seed int) {
		t.Helper()
		p := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(seed), 3}).Read(b)
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 120 {
		write(fmt.Sprintf("d%d/e%d/f%d", i%5, i%3, i), i*97, i)
	}
	write("big", 9<<20, 200)
	write("middle", 300<<10, 201)
	os.Symlink("big", src+"/link")
	os.Link(src+"/middle", src+"/middle too")
	os.MkdirAll(src+"/empty", 0o750)
	same := func() {
		t.Helper()
		if out, err := exec.Command("diff", "-r", "--no-dereference", "--exclude=.rentop-trash", src, dst).CombinedOutput(); err != nil {
			t.Errorf("there: %s", out)
		}
		if out, err := exec.Command("diff", "-r", "--no-dereference", "--exclude=.rentop-trash", src, back).CombinedOutput(); err != nil {
			t.Errorf("back: %s", out)
		}
	}
	run := func(name string, s sync.Spec, wire int64) *sync.Result {
		t.Helper()
		r, err := sync.Run(t.Context(), tr, s, nil)
		if err != nil || len(r.Failed) > 0 {
			t.Fatalf("%s: %v, %v", name, err, r)
		}
		if wire > 0 && r.Wire > wire {
			t.Errorf("%s: %d bytes travelled", name, r.Wire)
		}
		return r
	}
	push := sync.Spec{Direction: sync.Push, Local: src, Remote: dst, NoIgnore: true}
	pull := sync.Spec{Direction: sync.Pull, Local: back, Remote: dst, NoIgnore: true}
	run("push", push, 0)
	run("pull", pull, 0)
	same()
	if r := run("again", push, 100<<10); r.Bytes != 0 {
		t.Errorf("again: %d bytes", r.Bytes)
	}
	write("big", 9<<20+5, 200)
	write("d1/new/x", 5, 1)
	os.Remove(src + "/d2/e2/f2")
	push.Delete, pull.Delete = true, true
	run("changed", push, 500<<10)
	run("changed back", pull, 500<<10)
	same()
	push.Verify = true
	if r := run("verified", push, 0); !r.Verified {
		t.Error("not verified")
	}
}
