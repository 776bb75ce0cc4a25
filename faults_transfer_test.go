package main_test

// A file is at its destination whole and verified, or not there at all; a cut
// transfer goes on where it stopped.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote/needtest"
	"rentop/remote/sshtest"
)

// transfer is a push or a pull of one tree, seen alike.
type transfer struct {
	r        *rig
	verb     string
	dir      sshtest.Direction
	src, dst string
	total    int64
	args     []string
}

// transfers gives both ways of a tree that is on both sides' source.
func transfers(t *testing.T, r *rig, small int, big int64) (push, pull *transfer) {
	t.Helper()
	local := filepath.Join(r.dir, "src")
	total := growTree(t, local, small, big)
	far := filepath.Join(r.srv.Home, "proj")
	back := filepath.Join(r.dir, "back")
	push = &transfer{r, "push", sshtest.ToServer, local, far, total, []string{"push", "box", local, "proj", "--json"}}
	pull = &transfer{r, "pull", sshtest.ToClient, far, back, total, []string{"pull", "box", "proj", back, "--json"}}
	return push, pull
}

// result is what a transfer's --json says.
type result struct {
	Files, Bytes, Unchanged int64
	Wire                    int64 `json:"wire_bytes"`
	Failed                  []struct{ Path, Error string }
	Verified                bool
}

// rerun is the run after one that was killed or cut: everything is there, and
// what had arrived is not sent again.
func (x *transfer) rerun(extra ...string) {
	t := x.r.t
	t.Helper()
	files, size, part, _ := arrived(t, x.src, x.dst)
	passed := x.r.proxy.Passed(x.dir)
	var res result
	x.r.runJSON(&res, append(x.args, extra...)...)
	passed = x.r.proxy.Passed(x.dir) - passed
	if res.Unchanged != files || res.Bytes != x.total-size {
		t.Errorf("%s again: %d files unchanged and %d bytes sent; %d files were there, %d bytes missing", x.verb, res.Unchanged, res.Bytes, files, x.total-size)
	}
	// Names, sums, tar headers and the login are beside the content.
	most := (x.total-size-part)*103/100 + 400<<10
	if part > 0 {
		most += 4 << 20 // may be on its way before the other side has said what it has
	}
	if passed > most {
		t.Errorf("%s again moved %d bytes; with %d bytes there and %d in the part, at most %d are needed", x.verb, passed, size, part, most)
	}
	sameTrees(t, x.src, x.dst)
}

// fresh begins anew.
func (x *transfer) fresh() {
	if err := os.RemoveAll(x.dst); err != nil {
		x.r.t.Fatal(err)
	}
}

func TestFaultsTransferKilled9(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	push, pull := transfers(t, r, 40, 12<<20)
	rng := seeded(1)
	for _, x := range []*transfer{push, pull} {
		kills, parts := 0, 0
		for i := range 5 {
			x.fresh()
			if r.killed9(x.dir, rng.Int64N(x.total), x.args...) {
				kills++
			}
			if _, _, part, _ := arrived(t, x.src, x.dst); part > 0 {
				parts++
			}
			if i%2 == 0 { // else the next run meets what the killed one left at work
				r.settled()
			}
			if x.verb == "push" && i%2 == 1 {
				r.run(x.args...)
				sameTrees(t, x.src, x.dst)
				continue
			}
			x.rerun()
		}
		if kills < 4 || parts == 0 {
			t.Errorf("%s: killed %d times of 5, %d times within the large file: that proves little", x.verb, kills, parts)
		}
	}
}

func TestFaultsTransferCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	push, pull := transfers(t, r, 40, 12<<20)
	rng := seeded(2)
	for _, x := range []*transfer{push, pull} {
		for _, how := range []string{"RST", "FIN", "hole", "kill -9 of the sessions", "kill -9 of sshd"} {
			x.fresh()
			at := rng.Int64N(x.total)
			cut := map[string]sshtest.Cut{"RST": sshtest.RST, "FIN": sshtest.FIN, "hole": sshtest.Hole}
			c, byProxy := cut[how]
			fired := r.proxy.Fired()
			if byProxy {
				r.proxy.CutAfter(x.dir, at, c)
			}
			from := r.proxy.Passed(x.dir)
			cmd := r.cmd(x.args...)
			var errs strings.Builder
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, 20*time.Second, fmt.Sprint(how, " at byte ", at), func() bool {
				return byProxy && r.proxy.Fired() > fired || !byProxy && r.proxy.Passed(x.dir)-from >= at
			})
			switch how {
			case "hole":
				time.Sleep(500 * time.Millisecond) // how long nothing gets through
				r.proxy.Heal()
			case "kill -9 of the sessions":
				r.srv.KillSessions9()
			case "kill -9 of sshd":
				r.srv.Restart()
			}
			err := cmd.Wait()
			if err == nil {
				sameTrees(t, x.src, x.dst)
				continue
			}
			if how != "kill -9 of sshd" { // while it is down a command may give up
				t.Errorf("%s did not survive %s at byte %d: %v: %s", x.verb, how, at, err, &errs)
			}
			r.settled()
			x.rerun()
		}
	}
}

// TestFaultsTransferServers kills rentop against servers that can do little.
func TestFaultsTransferServers(t *testing.T) {
	for i, c := range []struct {
		name string
		o    sshtest.Options
	}{
		{"no sftp", sshtest.Options{NoSFTP: true, Hide: []string{"sftp-server"}}},
		{"one session", sshtest.Options{MaxSessions: 1}},
		{"dropbear", sshtest.Options{Dropbear: true}},
		{"fish, noise", sshtest.Options{Shell: "fish", Noise: true}},
		{"tcsh, noise, no sftp, no zstd", sshtest.Options{Shell: "tcsh", Noise: true, NoSFTP: true, Hide: []string{"zstd", "sftp-server"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.o)
			push, pull := transfers(t, r, 30, 5<<20)
			rng := seeded(uint64(10 + i))
			for _, x := range []*transfer{push, pull} {
				r.killed9(x.dir, rng.Int64N(x.total), x.args...)
				r.settled()
				x.rerun("--verify")
			}
		})
	}
}

// TestFaultsFarDiskFull: one clear sentence, no half file, and room again for
// what does fit.
func TestFaultsFarDiskFull(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    sshtest.Options
	}{
		{"sftp", sshtest.Options{SmallHome: "8m"}},
		{"no sftp", sshtest.Options{SmallHome: "8m", NoSFTP: true, Hide: []string{"sftp-server"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.o)
			src := filepath.Join(r.dir, "src")
			growTree(t, src, 30, 12<<20)
			_, errs, code := r.try("push", "box", src, "proj")
			if code != 1 || !strings.Contains(errs, "full") || !strings.Contains(errs, "big.bin") {
				t.Errorf("ended with %d, %q", code, errs)
			}
			list := func() string {
				return r.run("exec", "box", "--", "cd proj && find . -type f -exec sha256sum {} + | sort -k2")
			}
			want := func() string {
				out, err := exec.Command("sh", "-c", "cd "+src+" && find . -type f -exec sha256sum {} + | sort -k2").Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			for line := range strings.Lines(list()) {
				if !strings.Contains(line, ".rentop-") && !strings.Contains(want(), line) {
					t.Errorf("on the full disk is half a file: %s", line)
				}
			}
			os.Remove(filepath.Join(src, "sub/big.bin"))
			os.WriteFile(filepath.Join(src, "sub/fits.bin"), make([]byte, 5<<20), 0o644)
			if _, errs, code := r.try("push", "box", src, "proj", "--verify"); code != 0 {
				t.Errorf("what fits is not pushed after a full disk: %d, %s", code, errs)
			}
			if got := list(); got != want() {
				t.Errorf("on the instance:\n%s\nhere:\n%s", got, want())
			}
		})
	}
}

func TestFaultsNearDiskFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	push, _ := transfers(t, r, 30, 12<<20)
	r.run(push.args...)
	small := filepath.Join(r.dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=8m small "$2" || exit 77
"$1" pull box proj "$2" 2>&1; echo "code $?"
cd "$2" && find . -type f -exec sha256sum {} + | sort -k2 | sed 's/^/sum /'
"$1" exec box -- 'rm proj/sub/big.bin; head -c 5000000 /dev/zero >proj/sub/fits.bin'
"$1" pull box proj "$2" --verify 2>&1; echo "code $?"
find . -name '*.rentop-*'`, "sh", r.bin, small)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	needtest.That(t, cmd.ProcessState.ExitCode() != 77, "a mount of one's own (unshare -m)")
	text := string(out)
	if err != nil || !strings.Contains(text, "code 1") || !strings.Contains(text, "code 0") || !strings.Contains(text, "full") || !strings.Contains(text, "big.bin") {
		t.Errorf("%v:\n%s", err, text)
	}
	want, err := exec.Command("sh", "-c", "cd "+push.src+" && find . -type f -exec sha256sum {} +").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if sum, is := strings.CutPrefix(line, "sum "); is && !strings.Contains(sum, ".rentop-") && !strings.Contains(string(want), sum) {
			t.Errorf("on the full disk is half a file: %s", line)
		}
	}
	if _, after, _ := strings.Cut(text, "code 0"); strings.TrimSpace(after) != "" {
		t.Errorf("left behind:%s", after)
	}
}
