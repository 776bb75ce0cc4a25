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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/remote/sshtest"
	"rentop/remote/sshtest/dialtest"
	"rentop/sync"
)

// picture is a folder as text, for a comparison of two.
func picture(t *testing.T, root string, seconds bool) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, full)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%q %v", rel, fi.Mode())
		switch {
		case rel == ".":
			return nil
		case fi.Mode().IsRegular():
			text, _ := os.ReadFile(full)
			at := fi.ModTime()
			if seconds {
				at = at.Truncate(time.Second)
			}
			line += fmt.Sprintf(" %d %x %v", len(text), text[:min(len(text), 16)], at)
		case fi.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(full)
			line += " -> " + to
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

func fill(t *testing.T, dir string, large int) {
	t.Helper()
	r := rand.NewChaCha8([32]byte{9})
	write := func(name string, n int) {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n)
		r.Read(b)
		if err := os.WriteFile(full, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		write(fmt.Sprintf("d%d/f%d", i%7, i), i*7)
	}
	write("empty", 0)
	write("with a space/and\nnewline", 10)
	write("中文/文件", 99)
	write("large.bin", large)
	write("sub/large2.bin", large/2)
	os.Mkdir(filepath.Join(dir, "nothing"), 0o755)
	os.Symlink("d0/f0", filepath.Join(dir, "link"))
	os.Chmod(filepath.Join(dir, "d1/f1"), 0o755)
}

// TestCopyBetween copies from one real server to another, with each pair of what
// they can do, and looks at what is there.
func TestCopyBetween(t *testing.T) {
	plain, bare := sshtest.Options{}, sshtest.Options{InternalSFTP: true, Extra: []string{"ForceCommand internal-sftp"}}
	for _, c := range []struct {
		name string
		a, b sshtest.Options
	}{
		{"sshd to sshd", plain, plain},
		{"no zstd, no sftp", sshtest.Options{NoSFTP: true, Hide: []string{"zstd", "sftp-server"}}, plain},
		{"from sftp alone", bare, plain},
		{"to sftp alone", plain, bare},
		{"dropbear", sshtest.Options{Dropbear: true}, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name != "sshd to sshd" {
				needtest.Time(t, "a difficult pair")
			}
			A, B := sshtest.Start(t, c.a), sshtest.Start(t, c.b)
			a, b := open(t, dialtest.Conn(t, A, A.Addr)), open(t, dialtest.Conn(t, B, B.Addr))
			src := t.TempDir()
			fill(t, src, 9<<20)
			if _, err := sync.Run(t.Context(), a, sync.Spec{Direction: sync.Push, Local: src, Remote: "src", NoIgnore: true}, nil); err != nil {
				t.Fatal(err)
			}
			run := func(from, to string) *sync.Result {
				t.Helper()
				p, err := sync.PlanCopy(t.Context(), a, b, sync.CopySpec{From: from, To: to}, nil)
				if err != nil {
					t.Fatal(err)
				}
				r, err := sync.Copy(t.Context(), a, b, p, nil)
				if err != nil || len(r.Failed) > 0 {
					t.Fatalf("%v, failed %v", err, r.Failed)
				}
				return r
			}
			r := run("~/src", "deep/dst")
			if len(r.Sent) != 305 || r.Wire == 0 || r.Bytes < 13<<20 {
				t.Errorf("sent %d files, %d bytes, %d on the wire", len(r.Sent), r.Bytes, r.Wire)
			}
			for _, e := range r.Sent {
				if len(e.SHA256) != 64 {
					t.Fatalf("%s has no sum", e.Path)
				}
			}
			seconds := strings.Contains(c.name, "sftp alone") || c.name == "dropbear"
			if x, y := picture(t, filepath.Join(A.Home, "src"), seconds), picture(t, filepath.Join(B.Home, "deep/dst"), seconds); x != y {
				t.Errorf("they differ:\n%s\n\n%s", x, y)
			}
			if r := run("~/src", "deep/dst"); len(r.Sent) != 0 {
				t.Errorf("sent again: %d", len(r.Sent))
			}
			// One file: to a name, and into a folder.
			run("src/large.bin", "one.bin")
			run("src/large.bin", "deep")
			for _, n := range []string{"one.bin", "deep/large.bin"} {
				x, _ := os.ReadFile(filepath.Join(A.Home, "src/large.bin"))
				if y, err := os.ReadFile(filepath.Join(B.Home, n)); err != nil || !bytes.Equal(x, y) {
					t.Errorf("%s: %d bytes, %v", n, len(y), err)
				}
			}
			if _, err := sync.PlanCopy(t.Context(), a, b, sync.CopySpec{From: "nowhere", To: "x"}, nil); !errors.Is(err, sync.ErrUsage) {
				t.Errorf("a source that is not there: %v", err)
			}
		})
	}
}

// TestCopyFailures: what cannot be read or written is named, the rest goes on.
func TestCopyFailures(t *testing.T) {
	A, B := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	ra, rb := dialtest.Conn(t, A, A.Addr), dialtest.Conn(t, B, B.Addr)
	a, b := open(t, ra), open(t, rb)
	for r, script := range map[sync.Remote]string{
		ra: "mkdir -p s/ro && cd s && for i in 1 2 3; do echo $i >ok$i; done; echo x >shut; chmod 0 shut; head -c 6000000 /dev/urandom >shutbig; chmod 0 shutbig; echo y >ro/y; head -c 5000000 /dev/urandom >ro/big",
		rb: "mkdir -p d/ro; chmod 555 d/ro",
	} {
		if err := r.Run(t.Context(), remote.Cmd{Script: script}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := sync.PlanCopy(t.Context(), a, b, sync.CopySpec{From: "s", To: "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sync.Copy(t.Context(), a, b, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, f := range r.Failed {
		failed[f.Path] = f.Err.Error()
	}
	if len(r.Sent) != 3 || len(failed) != 4 {
		t.Errorf("sent %v, failed %v", r.Sent, failed)
	}
	for _, n := range []string{"shut", "shutbig", "ro/y", "ro/big"} {
		if !strings.Contains(failed[n], "ermission") {
			t.Errorf("%s: %q", n, failed[n])
		}
	}
	if found, _ := filepath.Glob(filepath.Join(B.Home, "d/.rentop*")); len(found) > 0 {
		t.Errorf("left %v", found)
	}
}

// TestCopyResumes: cut on either side, a large file goes on where it stood.
func TestCopyResumes(t *testing.T) {
	A, B := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	for _, side := range []string{"from", "to"} {
		la, lb := sshtest.NewProxy(t, A.Addr), sshtest.NewProxy(t, B.Addr)
		ra := dialtest.Conn(t, A, la.Addr)
		if err := ra.Run(t.Context(), remote.Cmd{Script: "rm -rf s; mkdir s; head -c 24000000 /dev/urandom >s/big"}); err != nil {
			t.Fatal(err)
		}
		a, b := open(t, ra), open(t, dialtest.Conn(t, B, lb.Addr))
		if side == "from" {
			la.CutAfter(sshtest.ToClient, 12<<20, sshtest.RST)
		} else {
			lb.CutAfter(sshtest.ToServer, 12<<20, sshtest.RST)
		}
		once := func(a, b sync.Transport) (*sync.Result, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			p, err := sync.PlanCopy(ctx, a, b, sync.CopySpec{From: "s", To: "d" + side}, nil)
			if err != nil {
				return nil, err
			}
			return sync.Copy(ctx, a, b, p, nil)
		}
		if r, err := once(a, b); err == nil {
			t.Fatalf("%s: not cut: %+v", side, r)
		}
		time.Sleep(300 * time.Millisecond) // the part's writer ends with its connection
		a, b = open(t, dialtest.Conn(t, A, A.Addr)), open(t, dialtest.Conn(t, B, B.Addr))
		r, err := once(a, b)
		if err != nil || len(r.Failed) > 0 || r.Reused < 4<<20 {
			t.Errorf("%s: %v, %+v", side, err, r)
		}
		x, _ := os.ReadFile(filepath.Join(A.Home, "s/big"))
		if y, err := os.ReadFile(filepath.Join(B.Home, "d"+side, "big")); err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: not equal, %v", side, err)
		}
	}
}
