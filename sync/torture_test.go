//go:build unix

package sync_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
	"rentop/sync/tree"
)

// Torture: random trees, random edits, and at a random moment of each transfer
// the connection is cut, a side is killed, the disk is full, or the source is
// edited. After each, every path is the old one, the new one, or listed as
// failed; never else. The same seed does the same edits and picks the same faults
// (where within the transfer a kill strikes is the machine's affair):
//
//	go test ./sync -run TestTorture -torture.rounds 500
//	go test ./sync -run TestTorture -torture.for 10m
//	go test ./sync -run TestTorture -torture.seed 17 -torture.rounds 1
var (
	tortureSeed   = flag.Uint64("torture.seed", 1, "first seed of TestTorture")
	tortureRounds = flag.Int("torture.rounds", 0, "seeds that TestTorture runs (0: as many as fit into -torture.for)")
	tortureFor    = flag.Duration("torture.for", 60*time.Second, "how long TestTorture begins new seeds")
)

// empty is what contents says of a file without any.
const empty = "0 bytes e3b0c442"

func TestTorture(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := sshtest.Start(t, sshtest.Options{})
	proxy := sshtest.NewProxy(t, s.Addr)
	began := time.Now()
	if testing.Short() && *tortureFor > 5*time.Second {
		*tortureFor = 5 * time.Second
	}
	n := 0
	for seed := *tortureSeed; ; seed++ {
		if *tortureRounds > 0 && n >= *tortureRounds || *tortureRounds == 0 && time.Since(began) > *tortureFor {
			break
		}
		n++
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { torture(t, s, proxy, seed) }) {
			break // what it left would blame the next
		}
	}
	t.Logf("%d seeds in %v", n, time.Since(began).Round(time.Second))
}

// torment is one tree on its way, with everything it has ever been.
type torment struct {
	*testing.T
	rnd      *rand.Rand
	s        *sshtest.Server
	proxy    *sshtest.Proxy
	spec     sync.Spec
	src, dst string // as this process sees them
	versions map[string]map[string]bool
	names    int
}

// torture does a few transfers of one tree with a fault in each, then a quiet
// one, after which both sides are equal.
func torture(t *testing.T, s *sshtest.Server, proxy *sshtest.Proxy, seed uint64) {
	x := &torment{T: t, rnd: rand.New(rand.NewPCG(seed, 0x70727572)), s: s, proxy: proxy, versions: map[string]map[string]bool{}}
	here := t.TempDir()
	there, err := os.MkdirTemp(s.Home, "torture-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(there)
	os.Chmod(there, 0o777)
	x.spec = sync.Spec{Direction: sync.Push, Local: here, Remote: there}
	x.src, x.dst = here, there
	if x.rnd.IntN(2) == 0 {
		x.spec.Direction, x.src, x.dst = sync.Pull, there, here
	}
	x.spec.Delete = x.rnd.IntN(3) == 0
	x.spec.Force = x.spec.Delete // more than half may go here
	x.spec.Checksum = x.rnd.IntN(4) == 0
	x.spec.NoIgnore = true
	for range 8 + x.rnd.IntN(30) {
		x.create()
	}
	for range 2 + x.rnd.IntN(3) {
		x.edit()
		x.round()
		if t.Failed() {
			return
		}
	}
	x.quiet()
}

// round is one transfer with one fault.
func (x *torment) round() {
	before := x.contents(x.dst)
	x.remember()
	fault := x.rnd.IntN(7)
	dir := sshtest.ToServer
	if x.spec.Direction == sync.Pull {
		dir = sshtest.ToClient
	}
	ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
	defer cancel()
	tr := openHelper(x.T, dialtest.Conn(x.T, x.s, x.proxy.Addr))
	defer tr.Close()
	// A part of the bytes that a transfer of this size takes, so that most faults strike.
	at := x.rnd.Int64N(x.bytes() + 20_000)
	wait := time.Duration(x.rnd.IntN(60)) * time.Millisecond
	var strike func()
	edited := false
	switch fault {
	case 0:
	case 1:
		x.proxy.CutAfter(dir, at, sshtest.RST)
	case 2:
		x.proxy.CutAfter(1-dir, at/20, sshtest.FIN)
	case 3:
		strike = x.s.KillSessions9
	case 4:
		strike = cancel
	case 5:
		strike = func() { x.edit(); x.remember() }
		edited = true
	case 6:
		strike = func() { x.s.KillUser9("rentop-agent") }
	}
	struck := make(chan struct{})
	if strike != nil {
		timer := time.AfterFunc(wait, func() { defer close(struck); strike() })
		defer func() {
			if !timer.Stop() {
				<-struck
			}
		}()
	}
	res, err := sync.Run(ctx, tr, x.spec, nil)
	if strike != nil && edited {
		<-struck
	}
	x.proxy.Heal()
	if errors.Is(err, context.DeadlineExceeded) {
		x.Fatalf("fault %d: hangs", fault)
	}
	if err != nil && fault == 0 {
		x.Fatalf("no fault, but: %v", err)
	}
	x.check(fmt.Sprintf("fault %d, err %v", fault, err), before, res, err, edited)
}

// check is the promise: old, new, or listed as failed.
func (x *torment) check(what string, before map[string]string, res *sync.Result, err error, edited bool) {
	x.Helper()
	failed := map[string]bool{}
	if res != nil {
		for _, f := range res.Failed {
			failed[f.Path] = true
		}
	}
	now, src := x.contents(x.dst), x.contents(x.src)
	for p, c := range now {
		if c != before[p] && !x.versions[p][c] {
			x.Errorf("%s: %q is %s, neither what it was (%q) nor what the source ever had", what, p, c, before[p])
		}
	}
	for p, c := range before {
		if now[p] == "" && !x.spec.Delete && !strings.HasPrefix(c, "link") && c != "dir" && !x.covered(p, src) {
			x.Errorf("%s: %q is gone (was %s)", what, p, c)
		}
	}
	if err == nil && !edited && len(failed) == 0 {
		x.same(what, src, now)
	}
}

// covered says whether the source has something else where p or a folder above it was.
func (x *torment) covered(p string, src map[string]string) bool {
	for ; p != "."; p = filepath.Dir(p) {
		if c, ok := src[p]; ok && c != "dir" || len(x.versions[p]) > 1 {
			return true
		}
	}
	return false
}

func (x *torment) same(what string, src, dst map[string]string) {
	x.Helper()
	for p, c := range src {
		if dst[p] != c {
			x.Errorf("%s: %q is %q at the destination, %q at the source", what, p, dst[p], c)
		}
	}
	if x.spec.Delete {
		for p := range dst {
			if src[p] == "" {
				x.Errorf("%s: %q is only at the destination", what, p)
			}
		}
	}
}

// quiet is the last transfer: nothing disturbs it, and afterwards both sides are
// equal, to the last mode and time, with no litter beside.
func (x *torment) quiet() {
	x.remember()
	for try := 0; ; try++ {
		tr := openHelper(x.T, dialtest.Conn(x.T, x.s, x.s.Addr))
		spec := x.spec
		spec.Verify = true
		res, err := sync.Run(x.Context(), tr, spec, nil)
		tr.Close()
		if err != nil || len(res.Failed) > 0 || !res.Verified {
			// A side that was killed may still be dying on its files.
			if try < 3 && (err == nil || errors.Is(err, fs.ErrExist)) {
				time.Sleep(200 * time.Millisecond)
				continue
			}
			x.Fatalf("in the end: %v %+v", err, res)
		}
		break
	}
	src, dst := x.contents(x.src), x.contents(x.dst)
	x.same("in the end", src, dst)
	for p := range src {
		a, err1 := os.Lstat(filepath.Join(x.src, p))
		b, err2 := os.Lstat(filepath.Join(x.dst, p))
		if err1 != nil || err2 != nil {
			x.Error(err1, err2)
			continue
		}
		if a.Mode()&fs.ModeSymlink == 0 && a.Mode() != b.Mode() {
			x.Errorf("%q: mode %v became %v", p, a.Mode(), b.Mode())
		}
		if a.Mode().IsRegular() && !tree.SameTime(a.ModTime(), b.ModTime()) {
			x.Errorf("%q: time %v became %v", p, a.ModTime(), b.ModTime())
		}
	}
	filepath.WalkDir(x.dst, func(p string, d fs.DirEntry, err error) error {
		if err == nil && tree.Ours(d.Name()) && !strings.HasPrefix(d.Name(), ".rentop-trash") {
			if strings.Contains(d.Name(), tree.PartInfix) {
				x.Logf("left for a day: %s", p) // of a source that is no more, as it was then
			} else {
				x.Errorf("left behind: %s", p)
			}
		}
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".rentop-trash") {
			return fs.SkipDir
		}
		return nil
	})
}

// TestFullDiskMeanwhile: files that do not fit are named, the rest is there, and
// when there is room again the next run brings what was missing.
func TestFullDiskMeanwhile(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	dir := filepath.Join(s.Home, "disk")
	os.Mkdir(dir, 0o777)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=6m,mode=777", "tmpfs", dir).CombinedOutput(); err != nil {
		needtest.Done(t, fmt.Errorf("%w: %s", err, out), "a small file system (root may mount one)")
	}
	defer exec.Command("umount", "-l", dir).Run()
	src := t.TempDir()
	rnd := rand.NewChaCha8([32]byte{3})
	for i := range 40 {
		data := make([]byte, []int{2_000, 300_000, 1_500_000}[i%3])
		rnd.Read(data)
		os.WriteFile(filepath.Join(src, fmt.Sprintf("f%02d", i)), data, 0o644)
	}
	spec := sync.Spec{Direction: sync.Push, Local: src, Remote: dir}
	res, err := sync.Run(t.Context(), openHelper(t, dialtest.Conn(t, s, s.Addr)), spec, nil)
	if err != nil || len(res.Failed) == 0 {
		t.Fatalf("a full disk: %v %+v", err, res)
	}
	failed := map[string]bool{}
	for _, f := range res.Failed {
		failed[f.Path] = true
		if !errors.Is(f.Err, sync.ErrFull) {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
	}
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		want, _ := os.ReadFile(filepath.Join(src, name))
		got, err := os.ReadFile(filepath.Join(dir, name))
		if here := err == nil; here == failed[name] || here && !bytes.Equal(got, want) {
			t.Errorf("%s: there %v, failed %v, %d of %d bytes", name, here, failed[name], len(got), len(want))
		}
	}
	if out, err := exec.Command("mount", "-o", "remount,size=60m", dir).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if res, err = sync.Run(t.Context(), openHelper(t, dialtest.Conn(t, s, s.Addr)), spec, nil); err != nil || len(res.Failed) > 0 {
		t.Fatal(err, res)
	}
	if out, err := exec.Command("diff", "-r", src, dir).CombinedOutput(); err != nil {
		t.Errorf("after the room came back: %s", out)
	}
}
