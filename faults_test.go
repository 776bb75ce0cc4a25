package main_test

// What the promises are tried with: the real program against a real server,
// killed, cut off and filled up at moments that a seed chooses. The files
// faults_*_test.go hold one promise each.

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"rentop/remote/sshtest"
)

// rig is one instance, "box", behind a proxy, and rentop with folders of its own.
type rig struct {
	t     *testing.T
	bin   string
	dir   string
	srv   *sshtest.Server
	proxy *sshtest.Proxy
	env   []string
}

// newRig adds box with the flags and has its host key known.
func newRig(t *testing.T, o sshtest.Options, flags ...string) *rig {
	t.Helper()
	r := &rig{t: t, srv: sshtest.Start(t, o), dir: t.TempDir()}
	r.bin, r.proxy = build(t), sshtest.NewProxy(t, r.srv.Addr)
	r.env = append(os.Environ(), "HOME="+r.dir, "SSH_AUTH_SOCK=", "DBUS_SESSION_BUS_ADDRESS=", "RENTOP_LANG=en",
		"RENTOP_CONFIG_DIR="+filepath.Join(r.dir, "config"), "RENTOP_STATE_DIR="+filepath.Join(r.dir, "state"))
	host, port, err := net.SplitHostPort(r.proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("ssh -p %s -i %s %s@%s", port, r.srv.KeyFile, r.srv.User, host)
	r.run(append([]string{"add", line, "--name", "box", "--price", "36/h", "--currency", "CNY"}, flags...)...)
	r.run("exec", "box", "--accept-host-key", ssh.FingerprintSHA256(r.srv.HostKey()), "--", "true")
	// Built from source rentop is its own helper, and larger than what the tests move:
	// it is there before they count. Where it cannot be, they go without it.
	one := filepath.Join(r.dir, "one")
	if err := os.WriteFile(one, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := r.try("push", "box", one, ".cache/one"); code != 0 {
		t.Logf("no first push: %s", errs)
	}
	return r
}

func (r *rig) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(r.bin, args...)
	cmd.Env = r.env
	return cmd
}

// try runs rentop to its end.
func (r *rig) try(args ...string) (out, errs string, code int) {
	r.t.Helper()
	var o, e bytes.Buffer
	cmd := r.cmd(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// run is try that must do what it was asked.
func (r *rig) run(args ...string) string {
	r.t.Helper()
	out, errs, code := r.try(args...)
	if code != 0 {
		r.t.Fatalf("rentop %q ended with %d:\n%s%s", args, code, out, errs)
	}
	return out
}

// runJSON is run whose output is JSON.
func (r *rig) runJSON(to any, args ...string) {
	r.t.Helper()
	if out := r.run(args...); json.Unmarshal([]byte(out), to) != nil {
		r.t.Fatalf("rentop %q prints no JSON of that form: %s", args, out)
	}
}

// killed9 runs rentop and kills it when n bytes went in direction dir. It says
// whether rentop was still at work then.
func (r *rig) killed9(dir sshtest.Direction, n int64, args ...string) bool {
	r.t.Helper()
	n += r.proxy.Passed(dir)
	return r.killedWhen(func() bool { return r.proxy.Passed(dir) >= n }, args...)
}

// killedWhen kills rentop as soon as now says so.
func (r *rig) killedWhen(now func() bool, args ...string) bool {
	r.t.Helper()
	cmd := r.cmd(args...)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for {
		select {
		case <-ended:
			return false
		case <-limit:
			cmd.Process.Kill()
			<-ended
			r.t.Fatalf("rentop %q hangs", args)
		case <-tick.C:
			if now() {
				cmd.Process.Kill()
				<-ended
				return true
			}
		}
	}
}

// settled waits until nothing of a killed or cut run is left at work on the
// instance.
func (r *rig) settled() {
	r.t.Helper()
	until(r.t, 10*time.Second, "the instance is at rest", func() bool { return len(r.srv.Processes()) == 0 })
}

// until waits for a condition.
func until(t *testing.T, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", limit, what)
		}
	}
}

// seeded gives each test moments of its own, the same in each run.
func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 20)) }

// growTree makes small files in folders and one big file whose content does not
// compress. It returns the number of bytes.
func growTree(t *testing.T, dir string, small int, big int64) int64 {
	t.Helper()
	noise := rand.NewChaCha8([32]byte{byte(small)})
	total := big
	write := func(name string, size int64) {
		b := make([]byte, size)
		noise.Read(b)
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range small {
		size := int64(1000 + 37*i)
		write(fmt.Sprintf("d%d/é f%d", i%5, i), size)
		total += size
	}
	write("sub/big.bin", big)
	return total
}

// sums reads a tree: SHA-256 by path; temporary files of rentop are listed apart.
func sums(t *testing.T, dir string) (files map[string][32]byte, sizes map[string]int64, litter []string) {
	t.Helper()
	files, sizes = map[string][32]byte{}, map[string]int64{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if strings.Contains(rel, ".rentop-") {
			litter = append(litter, rel)
			return nil
		}
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(p)
		files[rel], sizes[rel] = sha256.Sum256(b), int64(len(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, sizes, litter
}

// arrived fails where a file is under its name and not whole. It returns how
// many are there, with how many bytes, and how much of the big file waits in its
// part.
func arrived(t *testing.T, src, dst string) (files, size, part int64, litter []string) {
	t.Helper()
	want, _, _ := sums(t, src)
	got, sizes, litter := sums(t, dst)
	for p, sum := range got {
		if sum != want[p] {
			t.Errorf("%s is there under its name, and not whole: %d bytes", p, sizes[p])
		}
		files, size = files+1, size+sizes[p]
	}
	for _, p := range litter {
		if fi, err := os.Stat(filepath.Join(dst, p)); err == nil && strings.Contains(p, ".rentop-part-") && !strings.HasSuffix(p, ".at") {
			if _, err := os.Stat(filepath.Join(dst, p+".at")); err != nil {
				part = fi.Size() // the helper's: no journal is kept, what is there is compared
			}
		}
	}
	for _, p := range litter {
		if b, err := os.ReadFile(filepath.Join(dst, p)); err == nil && strings.HasSuffix(p, ".at") {
			fmt.Sscan(string(b), &part)
		}
	}
	return files, size, part, litter
}

// sameTrees fails unless dst is src, without a temporary file left.
func sameTrees(t *testing.T, src, dst string) {
	t.Helper()
	want, _, _ := sums(t, src)
	n, _, _, litter := arrived(t, src, dst)
	if int(n) != len(want) || len(litter) > 0 {
		t.Errorf("%d of %d files are there, left behind: %q", n, len(want), litter)
	}
}
