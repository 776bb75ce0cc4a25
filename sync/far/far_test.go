//go:build unix

package far

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rentop/sync/tree"
)

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 7}).Read(b)
	return b
}

func write(t *testing.T, dir, name string, data []byte) tree.Entry {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	return entryOf(dir, name, fi)
}

// entryOf makes an entry of what lstat found.
func entryOf(root, p string, fi fs.FileInfo) tree.Entry {
	e := tree.Entry{Path: p, Mode: fi.Mode() & (fs.ModeType | fs.ModePerm), ModTime: fi.ModTime()}
	if e.Mode.IsRegular() {
		e.Size = fi.Size()
	}
	return e
}

// moved is what a transfer did.
type moved struct {
	mu      sync.Mutex
	content int64
	wire    int64
	errs    map[string]error
	order   []Item
}

func (m *moved) options() Options {
	m.errs = map[string]error{}
	return Options{Retry: true,
		Content: func(n int64) { m.mu.Lock(); m.content += n; m.mu.Unlock() },
		Wire:    func(n int64) { m.mu.Lock(); m.wire += n; m.mu.Unlock() },
		Done: func(it Item, err error) {
			m.errs[it.Entry.Path] = err
			m.order = append(m.order, it)
		}}
}

// move pushes or pulls items.
func move(t *testing.T, c *Client, pull bool, src, dst string, items ...Item) *moved {
	t.Helper()
	m := &moved{}
	var err error
	if pull {
		err = c.Pull(t.Context(), src, dst, feed(items), m.options())
	} else {
		err = c.Push(t.Context(), src, dst, feed(items), m.options())
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(m.order) != len(items) {
		t.Fatalf("%d of %d items were reported", len(m.order), len(items))
	}
	return m
}

func (m *moved) fine(t *testing.T) {
	t.Helper()
	for p, err := range m.errs {
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func want(t *testing.T, file string, data []byte) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, data) {
		t.Errorf("%s: %d bytes, want %d, or with other content", file, len(got), len(data))
	}
}

// clean looks for what should be gone.
func clean(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if strings.Contains(filepath.Base(p), ".rentop-") {
				t.Errorf("left behind: %s", p)
			}
			return nil
		})
	}
}

func both(t *testing.T, f func(t *testing.T, c *Client, pull bool, src, dst string)) {
	for _, pull := range []bool{false, true} {
		t.Run(map[bool]string{false: "push", true: "pull"}[pull], func(t *testing.T) {
			src, dst := t.TempDir(), t.TempDir()
			f(t, pair(t), pull, src, dst)
			clean(t, src, dst)
		})
	}
}

// TestInsertAtTheFront: what is there already does not travel, wherever it lies.
func TestInsertAtTheFront(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		old := random(1, 6<<20)
		now := append(random(2, 13), old...)
		copy(now[3<<20:], random(3, 4096))
		for _, size := range []int{len(now), 300 << 10} {
			name := fmt.Sprint("f", size)
			write(t, dst, name, old[:size-13])
			e := write(t, src, name, now[:size])
			m := move(t, c, pull, src, dst, Item{Op: Send, Entry: e})
			m.fine(t)
			want(t, filepath.Join(dst, name), now[:size])
			if m.wire > 200<<10 {
				t.Errorf("%d bytes changed little and cost %d", size, m.wire)
			}
			if m.content != int64(size) {
				t.Errorf("counted %d of %d bytes", m.content, size)
			}
		}
	})
}

// TestCandidates: a file that was renamed or joined from others is made from them.
func TestCandidates(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		a, b := random(1, 3<<20), random(2, 5<<20)
		write(t, dst, "a", a)
		write(t, dst, "sub/b", b)
		all := append(append(bytes.Clone(b), a...), random(3, 100)...)
		e := write(t, src, "new", all)
		m := move(t, c, pull, src, dst, Item{Op: Send, Entry: e, Fresh: true, Basis: []string{"a", "gone", "sub/b", "sub"}})
		m.fine(t)
		want(t, filepath.Join(dst, "new"), all)
		if m.wire > 300<<10 {
			t.Errorf("%d bytes travelled", m.wire)
		}
	})
}

// TestPartAndBasis: a cut delta goes on from its part and the older version.
func TestPartAndBasis(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		old := random(1, 2<<20)
		now := append(random(2, 24<<20), old...)
		write(t, dst, "f", old)
		e := write(t, src, "f", now)
		for i := range 3 {
			c := slowPair(t, 16e6, 10*time.Millisecond) // else all has come before it is cut
			ctx, cancel := context.WithCancel(t.Context())
			var n int64
			o := Options{Content: func(k int64) {
				if n += k; n > int64(4+2*i)<<20 {
					cancel()
				}
			}}
			run := c.Push
			if pull {
				run = c.Pull
			}
			if err := run(ctx, src, dst, feed([]Item{{Op: Send, Entry: e}}), o); err == nil {
				t.Fatal("cut, and not said so")
			}
			cancel()
			want(t, filepath.Join(dst, "f"), old)
		}
		m := move(t, c, pull, src, dst, Item{Op: Send, Entry: e})
		m.fine(t)
		want(t, filepath.Join(dst, "f"), now)
		if m.wire > 20<<20 {
			t.Errorf("%d bytes travelled again", m.wire)
		}
	})
}

// TestOrder: folders are there before what lies in them, and what replaces
// something comes after that has gone; modes that forbid writing come last.
func TestOrder(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		if os.Getuid() == 0 {
			t.Log("as root no mode forbids anything")
		}
		write(t, dst, "was a file", nil)
		dir := func(p string, perm fs.FileMode) tree.Entry {
			return tree.Entry{Path: p, Mode: fs.ModeDir | perm}
		}
		items := []Item{
			{Op: Delete, Entry: tree.Entry{Path: "was a file"}},
			{Op: Mkdir, Entry: dir("was a file", 0o755)},
			{Op: Send, Entry: write(t, src, "was a file/x", []byte("x")), Fresh: true},
			{Op: Mkdir, Entry: dir("closed", 0o500)},
			{Op: Attr, Entry: dir("closed", 0o500)},
			{Op: Mkdir, Entry: dir("closed/below", 0o755)},
			{Op: Send, Entry: write(t, src, "closed/y", random(1, 2<<20)), Fresh: true},
			{Op: Send, Entry: write(t, src, "closed/below/z", random(1, 9)), Fresh: true},
			{Op: Link, Entry: tree.Entry{Path: "closed/l", Mode: fs.ModeSymlink, Target: "y"}},
			{Op: Move, Entry: tree.Entry{Path: "never was"}, To: "trash/x"},
		}
		m := move(t, c, pull, src, dst, items...)
		defer os.Chmod(filepath.Join(dst, "closed"), 0o700)
		m.fine(t)
		want(t, filepath.Join(dst, "closed/l"), random(1, 2<<20))
		if fi, err := os.Stat(filepath.Join(dst, "closed")); err != nil || fi.Mode().Perm() != 0o500 {
			t.Error(fi.Mode(), err)
		}
		if last := m.order[len(m.order)-1]; last.Op != Attr {
			t.Errorf("the last was %v", last)
		}
	})
}

// TestMove: what To names must be free.
func TestMove(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		write(t, dst, "a/f", []byte("f"))
		write(t, dst, "b", []byte("b"))
		m := move(t, c, pull, src, dst, Item{Op: Move, Entry: tree.Entry{Path: "a"}, To: "x/y/a"})
		m.fine(t)
		want(t, filepath.Join(dst, "x/y/a/f"), []byte("f"))
		m = move(t, c, pull, src, dst, Item{Op: Move, Entry: tree.Entry{Path: "b"}, To: "x/y"})
		if m.errs["b"] == nil {
			t.Error("moved onto something")
		}
		want(t, filepath.Join(dst, "b"), []byte("b"))
	})
}

// TestHardLinks are made as such, and sent where that cannot be.
func TestHardLinks(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		data := random(1, 3<<20)
		first := write(t, src, "first", data)
		os.Link(filepath.Join(src, "first"), filepath.Join(src, "second"))
		os.Link(filepath.Join(src, "first"), filepath.Join(src, "third"))
		second, third := first, first
		second.Path, second.Link = "second", "first"
		third.Path, third.Link = "third", "not there"
		m := move(t, c, pull, src, dst, Item{Op: Send, Entry: second, Fresh: true}, Item{Op: Send, Entry: first, Fresh: true}, Item{Op: Send, Entry: third, Fresh: true})
		m.fine(t)
		ino := func(n string) uint64 {
			fi, err := os.Stat(filepath.Join(dst, n))
			if err != nil {
				t.Fatal(err)
			}
			return fi.Sys().(*syscall.Stat_t).Ino
		}
		if ino("first") != ino("second") || ino("third") == ino("first") {
			t.Error("first and second should be one file, third another")
		}
		want(t, filepath.Join(dst, "third"), data)
		if m.wire > 7<<20 {
			t.Errorf("%d bytes travelled", m.wire)
		}
	})
}

// TestHoles: long runs of zeros take no room.
func TestHoles(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		data := make([]byte, 10<<20)
		copy(data[4<<20+777:], random(1, 5000))
		m := move(t, c, pull, src, dst, Item{Op: Send, Entry: write(t, src, "f", data), Fresh: true})
		m.fine(t)
		want(t, filepath.Join(dst, "f"), data)
		fi, _ := os.Stat(filepath.Join(dst, "f"))
		if n := fi.Sys().(*syscall.Stat_t).Blocks * 512; n > 1<<20 {
			t.Errorf("%d bytes of disk for 5000", n)
		}
		if m.wire > 5<<20/2 { // a block that is not all zeros may go as it is
			t.Errorf("%d bytes travelled", m.wire)
		}
	})
}

// TestChangedIsSentAgain: what changes once while it is read arrives as it is then.
func TestChangedIsSentAgain(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	c := pair(t)
	for _, size := range []int{1000, 6 << 20} {
		e := write(t, src, "f", random(1, size))
		var once sync.Once
		m := &moved{}
		o := m.options()
		o.Reading = func(int64) {
			once.Do(func() { os.WriteFile(filepath.Join(src, "f"), random(2, size+5), 0o644) })
		}
		if err := c.Push(t.Context(), src, dst, feed([]Item{{Op: Send, Entry: e, Fresh: true}}), o); err != nil {
			t.Fatal(err)
		}
		m.fine(t)
		want(t, filepath.Join(dst, "f"), random(2, size+5))
		if got := m.order[0].Entry; got.Size != int64(size+5) {
			t.Errorf("reported with %d bytes", got.Size)
		}
	}
	clean(t, dst)
}

// TestOpenChannel: what waits in an open channel is sent all the same.
func TestOpenChannel(t *testing.T) {
	both(t, func(t *testing.T, c *Client, pull bool, src, dst string) {
		items := make(chan Item)
		done := make(chan string, 10)
		o := Options{Done: func(it Item, err error) {
			if err != nil {
				t.Error(err)
			}
			done <- it.Entry.Path
		}}
		ended := make(chan error, 1)
		go func() {
			if pull {
				ended <- c.Pull(t.Context(), src, dst, items, o)
			} else {
				ended <- c.Push(t.Context(), src, dst, items, o)
			}
		}()
		for i, size := range []int{5, 2 << 20, 0} {
			name := fmt.Sprint("f", i)
			items <- Item{Op: Send, Entry: write(t, src, name, random(1, size)), Fresh: true}
			select {
			case p := <-done:
				if p != name {
					t.Errorf("%s was done, not %s", p, name)
				}
			case <-time.After(5 * time.Second):
				t.Fatalf("%s waits", name)
			}
		}
		close(items)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestManyCalls: calls do not disturb each other, nor does one that is cut.
func TestManyCalls(t *testing.T) {
	c := pair(t)
	src := t.TempDir()
	var items []Item
	for i := range 40 {
		items = append(items, Item{Op: Send, Entry: write(t, src, fmt.Sprint("f", i), random(uint64(i), i*50_000)), Fresh: true})
	}
	var wg sync.WaitGroup
	for i := range 8 {
		dst := t.TempDir()
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := Options{Content: func(int64) {
				if i%4 == 3 {
					cancel()
				}
			}}
			var err error
			if i%2 == 0 {
				err = c.Push(ctx, src, dst, feed(items), o)
			} else {
				err = c.Pull(ctx, src, dst, feed(items), o)
			}
			if i%4 == 3 {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("call %d was cut: %v", i, err)
				}
				return
			}
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			for j := range items {
				want(t, filepath.Join(dst, fmt.Sprint("f", j)), random(uint64(j), j*50_000))
			}
		})
	}
	wg.Wait()
}

// TestCutKeepsWhatIsCounted: whatever was told to have moved when a transfer is given
// up is there for the next run, which does not send it again.
func TestCutKeepsWhatIsCounted(t *testing.T) {
	both(t, func(t *testing.T, _ *Client, pull bool, src, dst string) {
		const size = 16 << 20
		e := write(t, src, "f", random(1, size))
		c := slowPair(t, 16e6, 20*time.Millisecond)
		run := c.Push
		if pull {
			run = c.Pull
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var counted, kept, reused int64
		began := time.Now()
		err := run(ctx, src, dst, feed([]Item{{Op: Send, Entry: e, Fresh: true}}), Options{
			Content: func(n int64) {
				if counted += n; counted > size/2 {
					cancel()
				}
			}, Kept: func(n int64) { kept = n }})
		if err == nil {
			t.Fatal("it was given up, and is not said to be")
		}
		t.Logf("%d counted, %d kept after %v", counted, kept, time.Since(began))
		if most := int64(16e6 * time.Since(began).Seconds()); counted > most {
			t.Errorf("%d bytes are counted where the link can carry %d", counted, most)
		}
		var part int64
		for name := range names(t, dst) {
			if fi, err := os.Stat(filepath.Join(dst, name)); err == nil && strings.Contains(name, tree.PartInfix) {
				part = fi.Size()
			}
		}
		if part < counted {
			t.Errorf("%d bytes are there of %d that were counted", part, counted)
		}
		m := &moved{}
		o := m.options()
		o.Reused = func(n int64) { reused += n }
		if err := run(t.Context(), src, dst, feed([]Item{{Op: Send, Entry: e, Fresh: true}}), o); err != nil {
			t.Fatal(err)
		}
		m.fine(t)
		want(t, filepath.Join(dst, "f"), random(1, size))
		// Until it hears of the part the sender goes on without.
		if m.content != size || reused < counted-partFrom || m.wire > size-reused+(1<<20) {
			t.Errorf("then %d bytes are counted, %d of them reused; %d travelled", m.content, reused, m.wire)
		}
	})
}
