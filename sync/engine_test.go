//go:build unix

package sync_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/sync"
)

// pair is a folder here and an instance, with a transport between.
type pair struct {
	*testing.T
	src, home string
	tr        sync.Transport
}

func newPair(t *testing.T) *pair {
	needtest.File(t, sftpServer)
	p := &pair{T: t, src: t.TempDir(), home: t.TempDir()}
	if strings.HasPrefix(t.Name(), "TestEngineOverAgent/") {
		t.Setenv("HOME", p.home)
		p.tr = newAgent(t)
		return p
	}
	tr, err := sync.Open(t.Context(), local{home: p.home}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	p.tr = tr
	return p
}

func (p *pair) write(name, text string) {
	p.Helper()
	os.MkdirAll(filepath.Dir(name), 0o755)
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

func (p *pair) run(s sync.Spec) *sync.Result {
	p.Helper()
	if s.Local == "" {
		s.Local = p.src
	}
	if s.Remote == "" {
		s.Remote = "proj"
	}
	r, err := sync.Run(p.Context(), p.tr, s, nil)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

func (p *pair) same(a, b string, exclude ...string) {
	p.Helper()
	args := []string{"-r", "--no-dereference"}
	for _, x := range exclude {
		args = append(args, "-x", x)
	}
	if out, err := exec.Command("diff", append(args, a, b)...).CombinedOutput(); err != nil {
		p.Errorf("the trees differ:\n%s", out)
	}
}

func (p *pair) tree() {
	p.write(p.src+"/a.py", "print(1)")
	p.write(p.src+"/pkg/b.py", "x")
	p.write(p.src+"/pkg/deep/c", strings.Repeat("c", 5<<20))
	p.write(p.src+"/we\nird/-n \xff", "odd")
	os.MkdirAll(p.src+"/empty", 0o755)
	os.MkdirAll(p.src+"/readonly", 0o755)
	p.write(p.src+"/readonly/x", "x")
	os.Chmod(p.src+"/readonly", 0o555)
	p.Cleanup(func() { os.Chmod(p.src+"/readonly", 0o755); os.Chmod(p.home+"/proj/readonly", 0o755) })
	os.Chmod(p.src+"/a.py", 0o755)
	os.Symlink("../a.py", p.src+"/pkg/link")
}

func TestPushAndPull(t *testing.T) {
	p := newPair(t)
	p.tree()
	var last sync.Progress
	reports := 0
	r, err := sync.Run(t.Context(), p.tr, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj", Verify: true}, func(g sync.Progress) { last = g; reports++ })
	if err != nil || len(r.Failed) > 0 || !r.Verified || len(r.Sent) != 5 {
		t.Fatal(err, r)
	}
	if last.Stage != "done" || reports == 0 || last.FilesAll != 5 {
		t.Errorf("last report %+v", last)
	}
	p.same(p.src, p.home+"/proj")
	if fi, _ := os.Stat(p.home + "/proj/readonly"); fi.Mode().Perm() != 0o555 {
		t.Errorf("the folder's mode is %v", fi.Mode())
	}
	again, err := sync.MakePlan(t.Context(), p.tr, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "~/proj", Delete: true}, nil)
	if err != nil || !again.Empty() || again.Unchanged != 6 {
		t.Fatal(again, err)
	}
	dst := t.TempDir() + "/new/dir"
	if r := p.run(sync.Spec{Direction: sync.Pull, Local: dst, Verify: true}); len(r.Failed) > 0 || !r.Verified {
		t.Fatal(r.Failed)
	}
	t.Cleanup(func() { os.Chmod(dst+"/readonly", 0o755) })
	p.same(p.src, dst)
	if r := p.run(sync.Spec{Direction: sync.Pull, Local: dst}); len(r.Sent) > 0 || r.Unchanged != 6 {
		t.Error(r)
	}
}

func TestFilesByName(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/a", "A")
	p.write(p.src+"/.gitignore", "a\n")
	os.Symlink("a", p.src+"/latest")
	os.MkdirAll(p.home+"/dir", 0o755)
	for _, c := range []struct{ local, remote, lands string }{
		{"a", "b", "b"}, {"a", "dir", "dir/a"}, {"a", "~/new/", "new/a"}, {"a", "deep/er/c", "deep/er/c"}, {"latest", "dir", "dir/latest"},
	} {
		r := p.run(sync.Spec{Direction: sync.Push, Local: p.src + "/" + c.local, Remote: c.remote})
		if b, err := os.ReadFile(p.home + "/" + c.lands); len(r.Failed) > 0 || string(b) != "A" {
			t.Errorf("%v: %v %v", c, r.Failed, err)
		}
	}
	os.Symlink("b", p.home+"/far link")
	dst := t.TempDir()
	for _, c := range []struct{ remote, local, lands string }{{"b", "x", "x"}, {"b", "", "b"}, {"far link", "", "far link"}, {"dir/a", "new/", "new/a"}} {
		r := p.run(sync.Spec{Direction: sync.Pull, Remote: c.remote, Local: dst + "/" + c.local})
		if b, err := os.ReadFile(dst + "/" + c.lands); len(r.Failed) > 0 || string(b) != "A" {
			t.Errorf("%v: %v %v", c, r.Failed, err)
		}
	}
	for _, s := range []sync.Spec{
		{Direction: sync.Push, Local: p.src + "/none", Remote: "x"},
		{Direction: sync.Push, Local: p.src, Remote: "b"},
		{Direction: sync.Pull, Local: dst, Remote: "none"},
		{Direction: sync.Pull, Local: dst + "/x", Remote: "dir"},
		{Direction: "sideways", Local: dst, Remote: "dir"},
	} {
		if _, err := sync.Run(t.Context(), p.tr, s, nil); !errors.Is(err, sync.ErrUsage) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestIgnoredStaysAndIsKept(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/a.py", "x")
	p.write(p.src+"/b.py", "x")
	p.write(p.src+"/out/local.pt", "here")
	p.write(p.src+"/.gitignore", "out/\n")
	p.write(p.home+"/proj/out/model.pt", "days of work")
	p.write(p.home+"/proj/old.py", "x")
	r := p.run(sync.Spec{Direction: sync.Push, Delete: true})
	if len(r.Failed) > 0 || !slices.Equal(r.Deleted, []string{"old.py"}) {
		t.Fatal(r.Failed, r.Deleted)
	}
	if _, err := os.Stat(p.home + "/proj/out/local.pt"); err == nil {
		t.Error("an ignored file was sent")
	}
	if b, _ := os.ReadFile(p.home + "/proj/out/model.pt"); string(b) != "days of work" {
		t.Error("an ignored file was deleted on the instance")
	}
	// a pull fetches results that git ignores, unless .rentopignore says so too
	dst := t.TempDir()
	p.run(sync.Spec{Direction: sync.Pull, Local: dst})
	if _, err := os.Stat(dst + "/out/model.pt"); err != nil {
		t.Error("results were left behind", err)
	}
	p.write(p.home+"/proj/.rentopignore", "*.pt\n")
	if q, err := sync.MakePlan(t.Context(), p.tr, sync.Spec{Direction: sync.Pull, Local: t.TempDir(), Remote: "proj"}, nil); err != nil || q.Ignored != 1 || strings.Contains(q.String(), "model.pt") {
		t.Error(q, err)
	}
}

// TestPullKeepsWhatIsIgnoredHere: a pull with --delete leaves alone what a push
// leaves here.
func TestPullKeepsWhatIsIgnoredHere(t *testing.T) {
	p := newPair(t)
	for _, n := range []string{"a", "b", "c"} {
		p.write(p.home+"/proj/"+n, "x")
		p.write(p.src+"/"+n, "x")
	}
	p.write(p.src+"/.gitignore", ".env\n.gitignore\n")
	p.write(p.src+"/.env", "the only key")
	p.write(p.src+"/old", "x")
	r := p.run(sync.Spec{Direction: sync.Pull, Delete: true})
	if b, err := os.ReadFile(p.src + "/.env"); err != nil || string(b) != "the only key" {
		t.Error("an ignored file was deleted here", err)
	}
	if !slices.Equal(r.Deleted, []string{"old"}) {
		t.Error(r.Deleted, r.Failed)
	}
}

// TestPullKeepsYoungParts: a pull into a folder leaves the parts of another
// transfer, which will go on with them.
func TestPullKeepsYoungParts(t *testing.T) {
	p := newPair(t)
	p.write(p.home+"/proj/a", "x")
	young, old := p.src+"/.big.rentop-part-0123456789abcdef", p.src+"/.big.rentop-part-fedcba9876543210"
	for name, age := range map[string]time.Duration{young: time.Minute, old: 48 * time.Hour} {
		p.write(name, "half")
		os.Chtimes(name, time.Now(), time.Now().Add(-age))
	}
	p.run(sync.Spec{Direction: sync.Pull})
	if _, err := os.Stat(young); err != nil {
		t.Error("a part that may be gone on with is gone", err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a part of the day before yesterday is still there")
	}
}

func TestDeleteIsRefused(t *testing.T) {
	p := newPair(t)
	p.write(p.home+"/proj/a", "x")
	_, err := sync.Run(t.Context(), p.tr, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj", Delete: true}, nil)
	var refused *sync.RefusedError
	if !errors.As(err, &refused) || len(refused.Deletes) != 1 {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.home + "/proj/a"); err != nil {
		t.Error("deleted all the same")
	}
	if r := p.run(sync.Spec{Direction: sync.Push, Delete: true, Force: true}); len(r.Deleted) != 1 {
		t.Error(r)
	}
	// a failure stops the deletes
	p.write(p.src+"/f", "x")
	p.write(p.src+"/g", "x")
	p.write(p.home+"/proj/f/kept", "x")
	p.write(p.home+"/proj/g", "x")
	p.write(p.home+"/proj/h", "x")
	os.Mkdir(p.src+"/unread", 0)
	if err := exec.Command("mkfifo", p.src+"/pipe").Run(); err != nil {
		t.Fatal(err)
	}
	r := p.run(sync.Spec{Direction: sync.Push, Delete: true, Force: true})
	if _, err := os.Stat(p.home + "/proj/h"); err != nil || len(r.Failed) < 2 {
		t.Error("deleted although something failed", r.Failed)
	}
}

func TestDryRunTouchesNothing(t *testing.T) {
	p := newPair(t)
	p.tree()
	p.write(p.home+"/proj/a.py", "old")
	p.run(sync.Spec{Direction: sync.Push, DryRun: true})
	if ents, _ := os.ReadDir(p.home + "/proj"); len(ents) != 1 {
		t.Error(ents)
	}
}

func TestVerifyFindsAFlippedByte(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/a\nb", "content")
	p.write(p.src+"/c", "other")
	p.run(sync.Spec{Direction: sync.Push})
	var manifest bytes.Buffer
	if r := p.run(sync.Spec{Direction: sync.Push, Verify: true, Manifest: &manifest}); !r.Verified || len(r.Sent) > 0 {
		t.Fatal(r)
	}
	check := exec.Command("sha256sum", "-c", "--strict")
	check.Dir, check.Stdin = p.home+"/proj", &manifest
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum -c: %s", out)
	}
	fi, _ := os.Stat(p.home + "/proj/c")
	p.write(p.home+"/proj/c", "0ther")
	os.Chtimes(p.home+"/proj/c", fi.ModTime(), fi.ModTime())
	r := p.run(sync.Spec{Direction: sync.Push, Verify: true})
	if r.Verified || len(r.Failed) != 1 || r.Failed[0].Path != "c" {
		t.Fatal(r.Failed)
	}
	if r := p.run(sync.Spec{Direction: sync.Push, Checksum: true, Verify: true}); !r.Verified || len(r.Sent) != 1 {
		t.Error("--checksum did not mend it", r)
	}
}

func TestTypeChanges(t *testing.T) {
	p := newPair(t)
	outside := t.TempDir()
	p.write(outside+"/x", "precious")
	p.write(p.src+"/dir/x", "mine")
	p.write(p.src+"/file", "f")
	os.Symlink("file", p.src+"/link")
	os.MkdirAll(p.home+"/proj/link", 0o755)
	os.MkdirAll(p.home+"/proj/file", 0o755)
	os.Symlink(outside, p.home+"/proj/dir")
	if r := p.run(sync.Spec{Direction: sync.Push, Verify: true}); len(r.Failed) > 0 {
		t.Fatal(r.Failed)
	}
	p.same(p.src, p.home+"/proj")
	if b, _ := os.ReadFile(outside + "/x"); string(b) != "precious" {
		t.Error("written through a symlink on the instance")
	}
}

func TestPullKeepsSymlinksIn(t *testing.T) {
	p := newPair(t)
	p.write(p.home+"/proj/a", "x")
	os.Symlink("/etc/passwd", p.home+"/proj/out")
	os.Symlink("a", p.home+"/proj/in")
	dst := t.TempDir()
	r := p.run(sync.Spec{Direction: sync.Pull, Local: dst})
	if len(r.Failed) != 1 || r.Failed[0].Path != "out" {
		t.Error(r.Failed)
	}
	if _, err := os.Lstat(dst + "/out"); err == nil {
		t.Error("the symlink was made")
	}
	if to, _ := os.Readlink(dst + "/in"); to != "a" {
		t.Error(to)
	}
}

// TestChangingSourceIsSentAgain: a log that grew once arrives in its last state.
func TestChangingSourceIsSentAgain(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/log", strings.Repeat("x", 7<<20))
	ctx := t.Context()
	plan, err := sync.MakePlan(ctx, p.tr, sync.Spec{Direction: sync.Push, Local: p.src, Remote: "proj"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var once stdsync.Once // uploads count on several goroutines
	r, err := sync.Execute(ctx, growing{p.tr, func() {
		once.Do(func() {
			f, _ := os.OpenFile(p.src+"/log", os.O_APPEND|os.O_WRONLY, 0)
			f.WriteString("the end")
			f.Close()
		})
	}}, plan, nil)
	if err != nil || len(r.Failed) > 0 {
		t.Fatal(err, r)
	}
	p.same(p.src, p.home+"/proj")
}

// growing calls a function when the first bytes of a Send have moved.
type growing struct {
	sync.Transport
	fn func()
}

func (g growing) Send(ctx context.Context, src, root string, files []sync.Entry, m sync.Meter, done func(sync.Entry, error)) error {
	return g.Transport.Send(ctx, src, root, files, hooked{m, g.fn}, done)
}

type hooked struct {
	sync.Meter
	fn func()
}

func (h hooked) Content(n int64) { h.fn(); h.Meter.Content(n) }
func (h hooked) Reading(int64)   { h.fn() }

func TestRecordOfATransfer(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/a", "x")
	rec, err := sync.OpenRecord(t.TempDir() + "/r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	p.run(sync.Spec{Direction: sync.Push, Record: rec})
	row, ok, err := rec.Lookup(p.home + "/proj/a")
	if err != nil || !ok || row.Local != p.src+"/a" || row.Size != 1 || len(row.SHA256) != 64 {
		t.Error(row, ok, err)
	}
}

// TestKilledRunsAreCleaned: what a script that was killed left goes with the next run.
func TestKilledRunsAreCleaned(t *testing.T) {
	p := newPair(t)
	p.write(p.src+"/d/a", "x")
	p.write(p.home+"/proj/d/.rentop-tmp-dead-1/a", "half")
	p.write(p.home+"/proj/.rentop-tmp-dead-1.ctl/pid", "999999999\n")
	p.run(sync.Spec{Direction: sync.Push})
	out, _ := exec.Command("find", p.home, "-name", ".rentop-*").Output()
	if len(out) > 0 {
		t.Errorf("left: %s", out)
	}
	dst := t.TempDir()
	p.write(dst+"/d/.rentop-tmp-0123", "half")
	os.Chtimes(dst+"/d/.rentop-tmp-0123", time.Now(), time.Now().Add(-time.Second))
	p.run(sync.Spec{Direction: sync.Pull, Local: dst})
	p.same(p.src, dst)
}
