//go:build unix

package sync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
	"rentop/sync/transporttest"
)

func open(t *testing.T, r sync.Remote) sync.Transport {
	t.Helper()
	tr, err := sync.Open(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// TestTransportsOverSSH runs the suite over real servers with difficult shells.
// TestTransports runs all of it with each choice of programs.
func TestTransportsOverSSH(t *testing.T) {
	for _, c := range []struct {
		name string
		o    sshtest.Options
		as   string
	}{
		{"sshd", sshtest.Options{}, "tar+zstd, sftp"},
		{"fish, noise", sshtest.Options{Shell: "fish", Noise: true}, "tar+zstd, sftp"},
		{"tcsh, no sftp, no zstd", sshtest.Options{Shell: "tcsh", NoSFTP: true, Hide: []string{"zstd", "sftp-server"}}, "tar+gzip"},
		{"dropbear", sshtest.Options{Dropbear: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "sshd" {
				needtest.Time(t, "a difficult shell")
			}
			t.Parallel()
			s := sshtest.Start(t, c.o)
			// Hidden programs are hidden by mounts of the server's own, so that it does
			// not see a small disk of ours; and a Dropbear whose client's program ends
			// early may end as a whole (2022.83: `!channel->sent_close`), which
			// session answers by a new connection.
			apart := c.o.Dropbear || len(c.o.Hide) > 0
			transporttest.Run(t, func(t *testing.T) transporttest.Env {
				r := dialtest.Conn(t, s, s.Addr)
				home, err := os.MkdirTemp(s.Home, "t")
				if err != nil {
					t.Fatal(err)
				}
				os.Chmod(home, 0o777)
				tr := open(t, r)
				if name, _ := tr.Name(); c.as != "" && name != c.as {
					t.Fatalf("opened %q, want %q", name, c.as)
				}
				return transporttest.Env{Transport: moved{tr, home}, Home: home, Exact: true, Small: small(t), NoSmall: apart, Brief: c.name != "sshd", Own: own(t, s.Home)}
			})
		})
	}
}

// own gives files to whom home belongs.
func own(t *testing.T, home string) func(string) {
	fi, err := os.Stat(home)
	if err != nil {
		t.Fatal(err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	return func(p string) { os.Lchown(p, int(st.Uid), int(st.Gid)) }
}

// moved gives each test its own home on one server.
type moved struct {
	sync.Transport
	home string
}

func (m moved) Resolve(ctx context.Context, p string) (string, sync.Entry, error) {
	switch {
	case p == "~" || p == "":
		p = m.home
	case strings.HasPrefix(p, "~/"):
		p = filepath.Join(m.home, p[2:])
	case !filepath.IsAbs(p):
		p = filepath.Join(m.home, p)
	}
	return m.Transport.Resolve(ctx, p)
}

// TestCutAndResume cuts the connection at random bytes, both ways, and kills
// sshd; between, every file is the old or the new one, and the last run leaves
// the trees equal and nothing else.
func TestCutAndResume(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	proxy := sshtest.NewProxy(t, s.Addr)
	src := t.TempDir()
	for i := range 200 {
		name := fmt.Sprintf("%s/d%d/f%d", src, i%7, i)
		os.MkdirAll(filepath.Dir(name), 0o755)
		os.WriteFile(name, bytes.Repeat([]byte{byte(i)}, 5000+i), 0o644)
	}
	big := make([]byte, 20<<20)
	rand.NewChaCha8([32]byte{7}).Read(big)
	os.WriteFile(src+"/big", big, 0o644)
	far := filepath.Join(s.Home, "proj")
	os.Mkdir(far, 0o777)
	os.WriteFile(far+"/big", []byte("old"), 0o666)
	os.Chmod(far, 0o777)
	os.Chmod(far+"/big", 0o666)
	whole := func(dst, from string) {
		t.Helper()
		filepath.WalkDir(dst, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(p, ".rentop-") {
				return nil
			}
			rel, _ := filepath.Rel(dst, p)
			got, _ := os.ReadFile(p)
			want, _ := os.ReadFile(filepath.Join(from, rel))
			if !bytes.Equal(got, want) && string(got) != "old" {
				t.Errorf("%s is neither the old nor the new one", rel)
			}
			return nil
		})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	run := func(i int, spec sync.Spec, dir sshtest.Direction) {
		tr := open(t, dialtest.Conn(t, s, proxy.Addr))
		killed := i%4 == 3
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if killed {
			// The kill of this round is none of the next.
			struck := make(chan struct{})
			kill := time.AfterFunc(time.Duration(rnd.IntN(400))*time.Millisecond, func() { defer close(struck); s.KillSessions9() })
			defer func() {
				if !kill.Stop() {
					<-struck
				}
			}()
		} else {
			proxy.CutAfter(dir, rnd.Int64N(18<<20), []sshtest.Cut{sshtest.RST, sshtest.FIN}[i%2])
		}
		r, err := sync.Run(ctx, tr, spec, nil)
		if err == nil && len(r.Failed) > 0 {
			t.Errorf("cut %d: no error, but failures: %v", i, r.Failed)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("cut %d: hangs", i)
		}
		proxy.Heal()
	}
	push := sync.Spec{Direction: sync.Push, Local: src, Remote: "proj"}
	for i := range rounds {
		run(i, push, sshtest.ToServer)
		whole(far, src)
	}
	r, err := sync.Run(t.Context(), open(t, dialtest.Conn(t, s, proxy.Addr)), sync.Spec{Direction: sync.Push, Local: src, Remote: "proj", Verify: true}, nil)
	if err != nil || !r.Verified {
		t.Fatal(err, r)
	}
	time.Sleep(200 * time.Millisecond) // scripts of cut sessions are still cleaning
	if out, err := exec.Command("diff", "-r", src, far).CombinedOutput(); err != nil {
		t.Errorf("after the last push: %s", out)
	}
	dst := t.TempDir()
	pull := sync.Spec{Direction: sync.Pull, Local: dst, Remote: "proj"}
	for i := range rounds {
		run(i, pull, sshtest.ToClient)
		whole(dst, src)
	}
	if r, err := sync.Run(t.Context(), open(t, dialtest.Conn(t, s, proxy.Addr)), pull, nil); err != nil || len(r.Failed) > 0 {
		t.Fatal(err, r)
	}
	if out, err := exec.Command("diff", "-r", src, dst).CombinedOutput(); err != nil {
		t.Errorf("after the last pull: %s", out)
	}
}

// TestNotMine: what the login may not write is named, and the rest goes on.
func TestNotMine(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	src := t.TempDir()
	for _, n := range []string{"a/x", "b/x", "c/big"} {
		os.MkdirAll(filepath.Dir(filepath.Join(src, n)), 0o755)
		os.WriteFile(filepath.Join(src, n), bytes.Repeat([]byte("x"), map[bool]int{true: 5 << 20, false: 10}[n == "c/big"]), 0o644)
	}
	far := filepath.Join(s.Home, "proj")
	for _, d := range []string{far, far + "/b", far + "/c"} { // root's
		os.Mkdir(d, 0o755)
	}
	os.Chmod(far, 0o777)
	r, err := sync.Run(t.Context(), open(t, dialtest.Conn(t, s, s.Addr)), sync.Spec{Direction: sync.Push, Local: src, Remote: "proj"}, nil)
	if err != nil || len(r.Sent) != 1 || len(r.Failed) != 2 {
		t.Fatal(err, r)
	}
	for _, f := range r.Failed {
		if !errors.Is(f.Err, fs.ErrPermission) {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
	}
	os.WriteFile(far+"/secret", nil, 0o600)
	os.Mkdir(far+"/closed", 0o700)
	dst := t.TempDir()
	os.WriteFile(dst+"/mine", nil, 0o644)
	_, err = sync.Run(t.Context(), open(t, dialtest.Conn(t, s, s.Addr)), sync.Spec{Direction: sync.Pull, Local: dst, Remote: "proj", Delete: true}, nil)
	var refused *sync.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("deleted after an incomplete listing: %v", err)
	}
	r, err = sync.Run(t.Context(), open(t, dialtest.Conn(t, s, s.Addr)), sync.Spec{Direction: sync.Pull, Local: dst, Remote: "proj"}, nil)
	if err != nil || len(r.Sent) != 1 || len(r.Failed) != 2 {
		t.Fatal(err, r)
	}
}

// TestOneSession: a server that allows one session at a time is enough.
func TestOneSession(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{MaxSessions: 1})
	src := t.TempDir()
	for i := range 50 {
		os.WriteFile(filepath.Join(src, strconv.Itoa(i)), []byte{byte(i)}, 0o644)
	}
	os.WriteFile(src+"/big", make([]byte, 5<<20), 0o644)
	r, err := sync.Run(t.Context(), open(t, dialtest.Conn(t, s, s.Addr)), sync.Spec{Direction: sync.Push, Local: src, Remote: "proj", Verify: true}, nil)
	if err != nil || !r.Verified {
		t.Fatal(err, r)
	}
}

// TestNoWay: an instance that can do nothing says so.
func TestNoWay(t *testing.T) {
	if _, err := sync.Open(t.Context(), local{noExec: true, noSFTP: true}, nil); err == nil || !strings.Contains(err.Error(), "no way") {
		t.Error(err)
	}
}
