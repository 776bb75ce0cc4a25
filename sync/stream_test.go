//go:build unix

package sync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/sync"
	"rentop/sync/tree"
)

// TestEngineOverAgent runs the engine's tests over a transport that streams.
func TestEngineOverAgent(t *testing.T) {
	for _, c := range []struct {
		name string
		fn   func(*testing.T)
	}{
		{"push and pull", TestPushAndPull}, {"files by name", TestFilesByName}, {"ignored stays", TestIgnoredStaysAndIsKept},
		{"pull keeps what is ignored here", TestPullKeepsWhatIsIgnoredHere}, {"young parts", TestPullKeepsYoungParts},
		{"delete is refused", TestDeleteIsRefused}, {"dry run", TestDryRunTouchesNothing}, {"flipped byte", TestVerifyFindsAFlippedByte},
		{"type changes", TestTypeChanges}, {"symlinks in", TestPullKeepsSymlinksIn}, {"changing source", TestChangingSourceIsSentAgain},
		{"record", TestRecordOfATransfer}, {"trash", TestTrashAndUndo}, {"lost times", TestLostTimesSendNothing}, {"patterns", TestPatterns},
		{"checksum", TestChecksumWithHashes}, {"short results", TestResultsStayShort},
	} {
		t.Run(c.name, c.fn)
	}
}

// TestFirstByteBeforeTheScanEnds: files leave while the walk of the source waits.
func TestFirstByteBeforeTheScanEnds(t *testing.T) {
	p := &pair{T: t, src: t.TempDir(), home: t.TempDir()}
	t.Setenv("HOME", p.home)
	p.write(p.home+"/proj/old", "x")
	for i := range 2000 {
		p.write(fmt.Sprintf("%s/d%02d/f%04d", p.src, i%40, i), "content")
	}
	s := &slowWalk{Streamer: newAgent(t), arrived: make(chan struct{})}
	r, err := sync.Run(t.Context(), s, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj"}, nil)
	if err != nil || len(r.Failed) > 0 || r.Files != 2000 {
		t.Fatal(err, r)
	}
	p.same(p.src, p.home+"/proj", "old")
}

// slowWalk shows the instance's last entries only once a file has arrived.
type slowWalk struct {
	sync.Streamer
	arrived chan struct{}
	once    stdsync.Once
}

func (s *slowWalk) Walk(ctx context.Context, root string, emit func(sync.Entry) error) error {
	// what is before these is compared now
	for i := range 20 {
		if err := emit(sync.Entry{Path: fmt.Sprintf("d00+%02d", i), Mode: os.ModeDir | 0o755}); err != nil {
			return err
		}
	}
	select {
	case <-s.arrived:
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("nothing arrived before the walk's end")
	}
}

func (s *slowWalk) Push(ctx context.Context, src, root string, acts <-chan sync.Action, m sync.Meter, done func(sync.Action, error)) error {
	return s.Streamer.Push(ctx, src, root, acts, m, func(a sync.Action, err error) {
		if a.Op == sync.Send {
			s.once.Do(func() { close(s.arrived) })
		}
		done(a, err)
	})
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

// TestMovedFileCostsNothing: a large file under another name, and a copy of one,
// travel as references.
func TestMovedFileCostsNothing(t *testing.T) {
	for _, del := range []bool{false, true} {
		p := &pair{T: t, src: t.TempDir(), home: t.TempDir()}
		t.Setenv("HOME", p.home)
		p.tr = newAgent(t)
		big := random(1, 12<<20)
		p.write(p.src+"/a/model.bin", string(big))
		for i := range 5 {
			p.write(fmt.Sprintf("%s/s%d", p.src, i), "small")
		}
		p.run(sync.Spec{Direction: sync.Push})
		os.MkdirAll(p.src+"/b/c", 0o755)
		if err := os.Rename(p.src+"/a/model.bin", p.src+"/b/c/renamed.bin"); err != nil {
			t.Fatal(err)
		}
		p.write(p.src+"/model.bin", string(big)+"and more") // of the same name elsewhere, and another time
		r := p.run(sync.Spec{Direction: sync.Push, Delete: del, Verify: true})
		if len(r.Failed) > 0 || !r.Verified || r.Files != 2 {
			t.Fatal(r)
		}
		if r.Wire > 1<<20 {
			t.Errorf("delete %v: %d bytes crossed", del, r.Wire)
		}
		if _, err := os.Stat(p.home + "/proj/a/model.bin"); (err == nil) == del {
			t.Errorf("delete %v: the old place: %v", del, err)
		}
	}
}

func TestHardLinksArrive(t *testing.T) {
	p := &pair{T: t, src: t.TempDir(), home: t.TempDir()}
	t.Setenv("HOME", p.home)
	p.tr = newAgent(t)
	p.write(p.src+"/a", string(random(1, 3<<20)))
	os.Mkdir(p.src+"/d", 0o755)
	os.Link(p.src+"/a", p.src+"/d/b")
	os.Link(p.src+"/a", p.src+"/z")
	r := p.run(sync.Spec{Direction: sync.Push, Verify: true})
	if len(r.Failed) > 0 || !r.Verified || r.Wire > 4<<20 {
		t.Fatal(r)
	}
	var ids []os.FileInfo
	for _, n := range []string{"a", "d/b", "z"} {
		fi, err := os.Stat(p.home + "/proj/" + n)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fi)
	}
	if !os.SameFile(ids[0], ids[1]) || !os.SameFile(ids[0], ids[2]) {
		t.Error("three files arrived")
	}
	if r := p.run(sync.Spec{Direction: sync.Push}); r.Files > 0 || r.Unchanged != 3 {
		t.Error(r)
	}
}

// TestTrashAndUndo: what --delete removes can be had back, and nothing is overwritten.
func TestTrashAndUndo(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/kept", "x")
	for i := range 10 {
		p.write(fmt.Sprintf("%s/k%d", p.src, i), "x")
	}
	p.run(sync.Spec{Direction: sync.Push})
	p.write(p.home+"/proj/we\nird/-n '\\", "odd")
	p.write(p.home+"/proj/old/deep/a", "A")
	p.write(p.home+"/proj/old/deep/b", "B")
	os.Symlink("deep/a", p.home+"/proj/old/link")
	os.MkdirAll(p.home+"/proj/old/empty", 0o755)
	before := p.list(p.home + "/proj")
	r := p.run(sync.Spec{Direction: sync.Push, Delete: true, Force: true})
	if len(r.Failed) > 0 || len(r.Deleted) != 8 {
		t.Fatal(r.Failed, r.Deleted)
	}
	p.same(p.src, p.home+"/proj", tree.TrashDir)
	if b, err := os.ReadFile(p.home + "/proj/" + tree.TrashDir + "/.gitignore"); err != nil || string(b) != "*\n" {
		t.Errorf("git sees the trash: %q %v", b, err)
	}
	// the trash is no part of what is moved
	if r := p.run(sync.Spec{Direction: sync.Push, Delete: true}); len(r.Deleted)+int(r.Files)+len(r.Failed) > 0 {
		t.Error(r)
	}
	if r := p.run(sync.Spec{Direction: sync.Pull, Local: t.TempDir()}); r.Files != 11 {
		t.Error("pulled", r.Files)
	}
	back, err := sync.Undo(t.Context(), p.tr, "proj")
	if err != nil || len(back) != 8 {
		t.Fatal(back, err)
	}
	if after := p.list(p.home + "/proj"); after != before {
		t.Errorf("after undo:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := sync.Undo(t.Context(), p.tr, "~/proj"); !errors.Is(err, sync.ErrNothingToUndo) {
		t.Error(err)
	}
	// two generations, and something new in a place
	p.run(sync.Spec{Direction: sync.Push, Delete: true, Force: true})
	p.write(p.home+"/proj/second", "2")
	p.run(sync.Spec{Direction: sync.Push, Delete: true})
	if back, err := sync.Undo(t.Context(), p.tr, "proj"); err != nil || !slices.Equal(back, []string{"second"}) {
		t.Error(back, err)
	}
	p.write(p.home+"/proj/old/deep/a", "newer")
	back, err = sync.Undo(t.Context(), p.tr, "proj")
	var left *sync.UndoError
	if !errors.As(err, &left) || len(left.Left) != 1 || left.Left[0].Path != "old/deep/a" || !slices.Contains(back, "old/deep/b") {
		t.Error(back, err)
	}
	if b, _ := os.ReadFile(p.home + "/proj/old/deep/a"); string(b) != "newer" {
		t.Errorf("overwritten by %q", b)
	}
	// for good
	if r := p.run(sync.Spec{Direction: sync.Push, Delete: true, Force: true, NoTrash: true}); len(r.Failed) > 0 || len(r.Deleted) == 0 {
		t.Error(r)
	}
	// old trash goes
	p.write(p.home+"/proj/third", "3")
	in31Days := func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }
	p.run(sync.Spec{Direction: sync.Push, Delete: true, Now: in31Days})
	gens, _ := filepath.Glob(p.home + "/proj/" + tree.TrashDir + "/2*")
	if len(gens) != 1 {
		t.Errorf("in the trash: %q", gens)
	}
	// a pull keeps one too
	p.write(p.src+"/mine", "m")
	if r := p.run(sync.Spec{Direction: sync.Pull, Delete: true}); !slices.Equal(r.Deleted, []string{"mine"}) {
		t.Error(r)
	}
	if back, err := sync.Undo(t.Context(), sync.Local{}, p.src); err != nil || !slices.Equal(back, []string{"mine"}) {
		t.Error(back, err)
	}
}

// list is a folder with contents, the empty trash left out.
func (p *pair) list(root string) string {
	out, err := exec.Command("sh", "-c", `cd "$1" && find . -name `+tree.TrashDir+` -prune -o -printf '%p %y %m %l ' -type f -exec cat {} \; -o -printf '\n' | sort`, "sh", root).CombinedOutput()
	if err != nil {
		p.Fatalf("%s %v", out, err)
	}
	return string(out)
}

// TestLostTimesSendNothing: a copy without times, and a clock that was wrong.
func TestLostTimesSendNothing(t *testing.T) {
	p := newPair(t)
	for i := range 50 {
		p.write(fmt.Sprintf("%s/d%d/f%d", p.src, i%5, i), fmt.Sprint("content ", i))
	}
	p.run(sync.Spec{Direction: sync.Push})
	for name, at := range map[string]func(i int) time.Time{
		"skewed": func(int) time.Time { return time.Now().Add(-3 * time.Hour) },
		"lost":   func(i int) time.Time { return time.Unix(1_000_000_000+int64(i)*1000, 0) },
	} {
		for i := range 50 {
			os.Chtimes(fmt.Sprintf("%s/d%d/f%d", p.src, i%5, i), time.Time{}, at(i))
		}
		p.write(p.src+"/d1/f1", "c0ntent 1")
		os.Chtimes(p.src+"/d1/f1", time.Time{}, at(99))
		r := p.run(sync.Spec{Direction: sync.Push, Verify: true})
		if r.Files > 1 || !r.Verified || len(r.Failed) > 0 {
			t.Errorf("%s: sent %d files, verified %v, failed %v", name, r.Files, r.Verified, r.Failed)
		}
		if r := p.run(sync.Spec{Direction: sync.Push}); r.Files > 0 || r.Unchanged != 50 {
			t.Errorf("%s, again: %+v", name, r)
		}
	}
}

func TestPatterns(t *testing.T) {
	p := newPair(t)
	for _, n := range []string{"a.py", "b.pyc", "out/best.pt", "out/last.pt", "data/1"} {
		p.write(p.src+"/"+n, "x")
	}
	p.write(p.src+"/.gitignore", "out/\n")
	p.run(sync.Spec{Direction: sync.Push, Include: []string{"out/best.pt"}, Exclude: []string{"*.pyc", "/data"}})
	p.same(p.src, p.home+"/proj", "b.pyc", "last.pt", "data")
	for _, n := range []string{"b.pyc", "out/last.pt", "data"} {
		if _, err := os.Stat(p.home + "/proj/" + n); err == nil {
			t.Errorf("%s was sent", n)
		}
		p.write(p.home+"/proj/"+n+"/x", "x") // and is not deleted
	}
	if r := p.run(sync.Spec{Direction: sync.Push, Delete: true, Force: true, Include: []string{"out/best.pt"}, Exclude: []string{"*.pyc", "/data"}}); len(r.Deleted) > 0 {
		t.Errorf("deleted %q", r.Deleted)
	}
	dst := t.TempDir()
	p.run(sync.Spec{Direction: sync.Pull, Local: dst, Exclude: []string{"out/*", "*.py"}, Include: []string{"best.pt"}})
	var got []string
	filepath.Walk(dst, func(f string, fi os.FileInfo, _ error) error {
		if !fi.IsDir() {
			got = append(got, f[len(dst)+1:])
		}
		return nil
	})
	if want := []string{".gitignore", "b.pyc/x", "data/x", "out/best.pt"}; !slices.Equal(got, want) {
		t.Errorf("pulled %q", got)
	}
}

// TestHashesAreNoProof: they say what to think of times that are off, and nothing
// to who asked for contents to be read.
func TestHashesAreNoProof(t *testing.T) {
	p := newPair(t)
	ago := time.Now().Add(-time.Hour)
	for i := range 20 {
		p.write(fmt.Sprintf("%s/f%d", p.src, i), "content")
		os.Chtimes(fmt.Sprintf("%s/f%d", p.src, i), time.Time{}, ago)
	}
	p.run(sync.Spec{Direction: sync.Push})
	h := tree.NewHashes(t.TempDir()+"/hashes", func() time.Time { return time.Now().Add(time.Minute) })
	lie := func(shift time.Duration) {
		for i := range 20 {
			name := fmt.Sprintf("%s/f%d", p.src, i)
			os.Chtimes(name, time.Time{}, ago.Add(shift))
			fi, err := os.Lstat(name)
			if err != nil {
				t.Fatal(err)
			}
			h.Put(name, fi, strings.Repeat("ab", 32))
		}
	}
	lie(0)
	if r := p.run(sync.Spec{Direction: sync.Push, Checksum: true, Verify: true, Hashes: h}); r.Files != 0 || !r.Verified {
		t.Error("what should be read was looked up", r)
	}
	lie(time.Minute)
	if r := p.run(sync.Spec{Direction: sync.Push, Hashes: h}); r.Files != 20 {
		t.Error("what should be looked up was read", r)
	}
}

// TestChecksumWithHashes: what was read is remembered, unless it was touched.
func TestChecksumWithHashes(t *testing.T) {
	p := newPair(t)
	for i := range 5 {
		p.write(fmt.Sprintf("%s/f%d", p.src, i), "content")
		os.Chtimes(fmt.Sprintf("%s/f%d", p.src, i), time.Time{}, time.Now().Add(-time.Hour))
	}
	p.run(sync.Spec{Direction: sync.Push})
	file := t.TempDir() + "/state/hashes"
	later := func() time.Time { return time.Now().Add(time.Minute) }
	h := tree.NewHashes(file, later)
	if r := p.run(sync.Spec{Direction: sync.Push, Checksum: true, Hashes: h}); r.Files > 0 || r.Unchanged != 5 {
		t.Fatal(r)
	}
	if err := h.Save(); err != nil {
		t.Fatal(err)
	}
	h = tree.NewHashes(file, later)
	known := func(n string) bool {
		fi, err := os.Lstat(n)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := h.Lookup(n, fi)
		return ok
	}
	if !known(p.src+"/f0") || !known(p.src+"/f4") {
		t.Error("nothing is known")
	}
	at, _ := os.Stat(p.src + "/f0")
	p.write(p.src+"/f0", "c0ntent")
	os.Chtimes(p.src+"/f0", time.Time{}, at.ModTime()) // the change time tells
	if known(p.src + "/f0") {
		t.Error("a changed file is taken for the old one")
	}
	if r := p.run(sync.Spec{Direction: sync.Push, Checksum: true, Hashes: h, Verify: true}); r.Files != 1 || !r.Verified {
		t.Error(r)
	}
	b, _ := os.ReadFile(file)
	os.WriteFile(file, b[:len(b)-3], 0o600)
	if h = tree.NewHashes(file, later); known(p.src + "/f4") {
		t.Error("a torn file is believed")
	}
}

func TestResultsStayShort(t *testing.T) {
	p := newPair(t)
	for i := range 1200 {
		p.write(fmt.Sprintf("%s/d%d/f%d", p.src, i%7, i), "x")
	}
	rec, err := sync.OpenRecord(t.TempDir() + "/r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var manifest bytes.Buffer
	r := p.run(sync.Spec{Direction: sync.Push, Record: rec, Verify: true, Manifest: &manifest})
	all, err := rec.All()
	if r.Files != 1200 || len(r.Sent) != 1000 || !r.Verified || err != nil || len(all) != 1200 || strings.Count(manifest.String(), "\n") != 1200 {
		t.Errorf("%d files, %d named, %d recorded, %d in the manifest, verified %v", r.Files, len(r.Sent), len(all), strings.Count(manifest.String(), "\n"), r.Verified)
	}
}

// broken ends a Push after its first files.
type broken struct {
	sync.Streamer
	end func() error
}

func (b *broken) Push(ctx context.Context, src, root string, acts <-chan sync.Action, m sync.Meter, done func(sync.Action, error)) error {
	some := make(chan sync.Action)
	go func() {
		defer close(some)
		for range 50 {
			select {
			case a, more := <-acts:
				if !more {
					return
				}
				some <- a
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := b.Streamer.Push(ctx, src, root, some, m, done); err != nil {
		return err
	}
	return b.end()
}

// TestStreamEndsEarly: the connection or the person ends it; what arrived is told,
// and nothing goes on.
func TestStreamEndsEarly(t *testing.T) {
	p := &pair{T: t, src: t.TempDir(), home: t.TempDir()}
	t.Setenv("HOME", p.home)
	for i := range 3000 {
		p.write(fmt.Sprintf("%s/d%02d/f%04d", p.src, i%40, i), "content")
	}
	p.write(p.home+"/proj/x", "x")
	agent := newAgent(t)
	cut := errors.New("cut")
	r, err := sync.Run(t.Context(), &broken{agent, func() error { return cut }}, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj"}, nil)
	if !errors.Is(err, cut) || r == nil || r.Files == 0 || r.Files >= 3000 {
		t.Fatal(err, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err = sync.Run(ctx, &broken{agent, func() error { cancel(); <-ctx.Done(); return ctx.Err() }}, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj"}, nil)
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatal(err, r)
	}
	r, err = sync.Run(t.Context(), agent, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj", Verify: true}, nil)
	if err != nil || !r.Verified || r.Files+r.Unchanged != 3000 || r.Unchanged < 40 {
		t.Fatal(err, r.Files, r.Unchanged, r.Failed)
	}
}
