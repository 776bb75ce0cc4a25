//go:build unix

package far

import (
	"context"
	"io/fs"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rentop/remote/agent/link"
	"rentop/sync/tree"
)

// Benchmarks over a link on a socket pair, both ends in this process; run them
// with -benchtime 1x or 3x.

// socketPair are two ends of one stream.
func socketPair(t testing.TB) (a, b net.Conn) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn := func(fd int) net.Conn {
		f := os.NewFile(uintptr(fd), "link")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return conn(fds[0]), conn(fds[1])
}

// pair is a client with its server.
func pair(t testing.TB) *Client {
	here, there := socketPair(t)
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { served <- Serve(ctx, link.New(there, link.Options{})) }()
	c := NewClient(link.New(here, link.Options{}))
	t.Cleanup(func() {
		c.Close()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("the helper ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the helper does not end")
		}
		cancel()
	})
	return c
}

// shm is a folder in memory.
func shm(t testing.TB) string {
	base := "/dev/shm"
	if fi, err := os.Stat(base); err != nil || !fi.IsDir() {
		base = ""
	}
	dir, err := os.MkdirTemp(base, "far-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// itemsOf lists a tree as items.
func itemsOf(t testing.TB, root string) []Item {
	var out []Item
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		e := entryOf(root, filepath.ToSlash(rel), fi)
		switch {
		case e.Mode.IsDir():
			out = append(out, Item{Op: Mkdir, Entry: e, Fresh: true})
		case e.Mode.IsRegular():
			out = append(out, Item{Op: Send, Entry: e, Fresh: true})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func feed(items []Item) <-chan Item {
	c := make(chan Item, 64)
	go func() {
		defer close(c)
		for _, it := range items {
			c <- it
		}
	}()
	return c
}

func copyTree(t testing.TB, src, dst string) {
	for _, it := range itemsOf(t, src) {
		p := filepath.Join(dst, it.Entry.Path)
		if it.Op == Mkdir {
			os.MkdirAll(p, 0o755)
			continue
		}
		b, err := os.ReadFile(filepath.Join(src, it.Entry.Path))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchmarkMove(b *testing.B, src string, pull bool) {
	items := itemsOf(b, src)
	var size int64
	for _, it := range items {
		if it.Op == Send {
			size += it.Entry.Size
		}
	}
	c := pair(b)
	b.SetBytes(size)
	start := cpu()
	for b.Loop() {
		b.StopTimer()
		dst := shm(b)
		b.StartTimer()
		o := Options{Done: func(it Item, err error) {
			if err != nil {
				b.Errorf("%s: %v", it.Entry.Path, err)
			}
		}}
		var err error
		if pull {
			err = c.Pull(context.Background(), src, dst, feed(items), o)
		} else {
			err = c.Push(context.Background(), src, dst, feed(items), o)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		os.RemoveAll(dst)
		b.StartTimer()
	}
	b.ReportMetric(float64((cpu()-start).Milliseconds())/float64(b.N), "cpu-ms/op")
}

func BenchmarkSmallFiles(b *testing.B) {
	src := shm(b)
	copyTree(b, filepath.Join(goroot(b), "src"), src)
	b.Run("push", func(b *testing.B) { benchmarkMove(b, src, false) })
	b.Run("pull", func(b *testing.B) { benchmarkMove(b, src, true) })
}

func BenchmarkRandom(b *testing.B) {
	src := shm(b)
	data := make([]byte, 512<<20)
	rand.New(rand.NewSource(1)).Read(data)
	os.WriteFile(filepath.Join(src, "random"), data, 0o644)
	b.Run("push", func(b *testing.B) { benchmarkMove(b, src, false) })
	b.Run("pull", func(b *testing.B) { benchmarkMove(b, src, true) })
}

func BenchmarkList(b *testing.B) {
	root := filepath.Join(goroot(b), "src")
	c := pair(b)
	n := 0
	for b.Loop() {
		if _, err := c.List(context.Background(), root, Walk{}, func(tree.Entry) error { n++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/float64(b.N), "entries/op")
}

// goroot is Go's own source, which every machine that builds has.
func goroot(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
