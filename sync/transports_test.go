//go:build unix

package sync_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"rentop/remote"
	"rentop/remote/needtest"
	"rentop/sync"
	"rentop/sync/transporttest"
)

// local is this machine as an instance: sh, and an SFTP server on a pipe.
type local struct {
	home   string
	path   string // "" for this process's PATH
	noExec bool
	noSFTP bool
	cut    int // see channel
}

func (l local) Run(ctx context.Context, c remote.Cmd) error {
	if l.noExec {
		return errors.New("exec request refused")
	}
	sh := "/bin/sh"
	if l.path != "" {
		sh = filepath.Join(l.path, "sh")
	}
	cmd := exec.Command(sh, "-c", c.Script)
	cmd.Dir = l.home
	cmd.Env = append(os.Environ(), "HOME="+l.home)
	if l.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+l.path)
	}
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	outR, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = c.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	// a cut ends the streams and kills nothing, as sshd does
	stop := context.AfterFunc(ctx, func() { in.Close(); outR.Close() })
	defer stop()
	go func() {
		if c.Stdin != nil {
			io.Copy(in, c.Stdin)
		}
		in.Close()
	}()
	out := c.Stdout
	if out == nil {
		out = io.Discard
	}
	io.Copy(out, outR)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	var x *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &x):
		return &remote.ExitError{Code: x.ExitCode()}
	}
	return err
}

func (l local) SFTP(context.Context) (*sftp.Client, error) {
	if l.noSFTP {
		return nil, errors.New("subsystem request refused")
	}
	cmd := exec.Command(sftpServer, "-d", l.home)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c, err := sftp.NewClientPipe(out, &channel{WriteCloser: in, cut: l.cut})
	go func() { // the server ends with its stdin
		if c != nil {
			c.Wait()
		}
		in.Close()
		cmd.Wait()
	}()
	return c, err
}

// channel is closed at its write number cut, if that is not 0, and says io.EOF
// from then on, as one of golang.org/x/crypto/ssh does.
type channel struct {
	io.WriteCloser
	writes, cut int
}

func (c *channel) Write(b []byte) (int, error) { // pkg/sftp writes one packet at a time
	if c.writes++; c.cut > 0 && c.writes >= c.cut {
		c.WriteCloser.Close()
		return 0, io.EOF
	}
	return c.WriteCloser.Write(b)
}

const sftpServer = "/usr/lib/openssh/sftp-server"

// tools makes a PATH of some programs only.
func tools(t *testing.T, names ...string) string {
	dir := t.TempDir()
	for _, n := range names {
		p, err := filepath.EvalSymlinks(needtest.Program(t, n))
		if err != nil {
			t.Fatal(err)
		}
		os.Symlink(p, filepath.Join(dir, n))
	}
	return dir
}

var base = []string{"sh", "find", "xargs", "sha256sum", "mv", "rm", "mkdir", "rmdir", "chmod", "ln", "touch", "cat", "head", "tail", "dd", "tar", "stat", "readlink", "grep", "wc", "true", "sync", "printf"}

func busybox(t *testing.T) string {
	bb := needtest.Program(t, "busybox")
	dir := t.TempDir()
	out, err := exec.Command(bb, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range strings.Fields(string(out)) {
		os.Symlink(bb, filepath.Join(dir, n))
	}
	return dir
}

func TestTransports(t *testing.T) {
	needtest.File(t, sftpServer)
	for _, c := range []struct {
		name, as string
		make     func(t *testing.T, l *local)
		exact    bool
		brief    bool // large files go as with "auto", batches as in the next case
	}{
		{"auto", "tar+zstd, sftp", func(t *testing.T, l *local) {}, true, false},
		{"no sftp", "tar+zstd", func(t *testing.T, l *local) { l.noSFTP = true }, true, false},
		{"gzip", "tar+gzip, sftp", func(t *testing.T, l *local) { l.path = tools(t, append(base, "gzip")...) }, true, true},
		{"plain", "tar", func(t *testing.T, l *local) { l.path = tools(t, base...); l.noSFTP = true }, true, false},
		{"busybox", "tar+gzip, sftp", func(t *testing.T, l *local) { l.path = busybox(t) }, false, true},
		{"busybox no sftp", "tar+gzip", func(t *testing.T, l *local) { l.path = busybox(t); l.noSFTP = true }, false, false},
		{"sftp", "sftp", func(t *testing.T, l *local) { l.noExec = true }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			transporttest.Run(t, func(t *testing.T) transporttest.Env {
				l := local{home: t.TempDir()}
				c.make(t, &l)
				tr, err := sync.Open(t.Context(), l, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tr.Close() })
				if name, _ := tr.Name(); name != c.as {
					t.Fatalf("opened %q, want %q", name, c.as)
				}
				return transporttest.Env{Transport: tr, Home: l.home, Exact: c.exact, Small: small(t), Brief: c.brief}
			})
		})
	}
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		transporttest.Run(t, func(t *testing.T) transporttest.Env {
			home := t.TempDir()
			return transporttest.Env{Transport: sync.Local{Home: home}, Home: home, Exact: true, Unsafe: true, Small: small(t)}
		})
	})
}

// TestCutIsNoChange: a connection that is cut while requests are written
// does not look like a file that became shorter; its part is kept.
func TestCutIsNoChange(t *testing.T) {
	needtest.File(t, sftpServer)
	l := local{home: t.TempDir(), cut: 700}
	if err := os.WriteFile(filepath.Join(l.home, "big"), make([]byte, 40<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	tr, err := sync.Open(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	dst := t.TempDir()
	if _, err := sync.Run(t.Context(), tr, sync.Spec{Direction: sync.Pull, Remote: "big", Local: filepath.Join(dst, "big")}, nil); err == nil {
		t.Error("cut, and not said so")
	}
	if parts, _ := filepath.Glob(filepath.Join(dst, ".big*")); len(parts) != 2 {
		t.Errorf("of the part and its journal there are %q", parts)
	}
}

// small mounts a file system of 1 MB, where the test may.
func small(t *testing.T) string {
	if os.Getuid() != 0 || !strings.HasSuffix(t.Name(), "/disk_full") {
		return ""
	}
	dir, err := os.MkdirTemp("", "rentop-small-") // t.TempDir lies below a folder that other users cannot enter
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o777)
	t.Cleanup(func() { os.Remove(dir) })
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", dir).Run(); err != nil {
		t.Logf("no small file system: %v", err)
		return ""
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	return dir
}
